"""The copy of one flow, as an AWS Glue streaming job; every finished lease is a line of JSON in the job's log."""

from __future__ import annotations

import argparse
import json
import threading
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from mirrorless.copy.control import Control
from mirrorless.copy.query import start_copy
from mirrorless.copy.rows import summary
from mirrorless.copy.slot import FlowPlace

if TYPE_CHECKING:
    from mirrorless.copy.rows import Report


def main() -> None:
    """Start the query and wait for its end; with `--available-now`, for all that was there at the start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", required=True, help="location of the MirrorMaker 2 configuration")
    parser.add_argument("--flow", required=True, help="the flow to copy, such as primary->backup")
    parser.add_argument("--checkpoint", required=True, help="a folder for Spark; losing it loses nothing")
    parser.add_argument("--available-now", action="store_true", help="end when everything that is there was copied")
    arguments, _glues_own = parser.parse_known_args()
    complete = threading.Event()

    def lease_ended(reports: list[Report]) -> None:
        totals = summary(reports)
        print(json.dumps({"flow": arguments.flow, "event": "Lease"} | totals.as_fields()), flush=True)  # noqa: T201
        if arguments.available_now and totals.over:
            complete.set()

    query = start_copy(
        SparkSession.builder.appName(f"mirrorless {arguments.flow}").getOrCreate(),
        FlowPlace(location=arguments.settings, flow=arguments.flow, bounded=arguments.available_now),
        checkpoint=arguments.checkpoint,
        control=Control(),
        on_reports=lease_ended,
    )
    while query.isActive and not complete.wait(0.5):
        pass
    query.stop()
    if not complete.is_set() and (failure := query.exception()) is not None:
        raise failure


if __name__ == "__main__":
    main()
