"""The copy of one flow, as an AWS Glue streaming job; every finished lease is a line of JSON in the job's log."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from typing import TYPE_CHECKING

from mirrorless.copy.api import Control, FlowRef
from mirrorless.copy.engines.spark.job import copy_flow
from mirrorless.group_sync.following import following
from mirrorless.publishing.cloudwatch import CloudWatch
from mirrorless.publishing.glue_session import glue_session, job_arguments
from mirrorless.publishing.job_log import JobLog
from mirrorless.settings.locations import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.copy.api import CopyOutcome, Report


def main(
    given: Sequence[str] | None = None,
    *,
    control: Control | None = None,
    folder: str | None = None,
    told: Callable[[list[Report]], None] | None = None,
) -> CopyOutcome:
    """Copy until the end; on one machine `mirrorless run` passes the arguments, controls it, and gets its leases."""
    parser = job_arguments(__doc__)
    parser.add_argument("--MIRRORLESS_RELEASE", dest="release", help="what is deployed")
    parser.add_argument("--available-now", action="store_true", help="end when everything that is there was copied")
    arguments, _glues_own = parser.parse_known_args(given)
    with contextlib.ExitStack() as ended:
        # On the driver's own disk: it may be lost without harm, and needs no clean-up after a run.
        own = ended.enter_context(tempfile.TemporaryDirectory(prefix="mirrorless-", ignore_cleanup_errors=True))
        place = FlowRef(location=arguments.config, flow=arguments.flow, bounded=arguments.available_now)
        spark = glue_session(f"mirrorless {place.flow}", region=arguments.region)
        metrics = None
        if arguments.namespace:
            metrics = CloudWatch(place.flow, topics=place.load().cloudwatch_topics, namespace=arguments.namespace)
        log = JobLog(place.flow, metrics and ended.enter_context(metrics))
        if arguments.release:
            log.started(arguments.release, version=version_of(arguments.config))
        ended.enter_context(following(place.load(), None if told else log.noted))
        return copy_flow(
            spark,
            place,
            checkpoint=f"file://{folder or f'{own}/checkpoint'}",
            control=control or Control(own, for_slots=False),
            on_lease=told or log.lease_ended,
            on_trouble=None if told else log.trouble,
        )


if __name__ == "__main__":
    if main().stuck:
        sys.exit(1)
