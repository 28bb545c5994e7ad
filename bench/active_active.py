"""One topic written on two or three clusters at once and replicated between all of them, while all flows are killed.

    python -m bench.active_active [--clusters 2] [--seconds 300] [--rate 1000] [--partitions 3] [--json FILE]

Every flow has `mirrorless.both.directions=skip` and keeps the topic's name. At the end each cluster must have the
records of every origin once and in order, and nothing else, and no group may be ahead on another cluster of what it has
read.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.active_active import ActiveActiveTerms, run_active_active


def main() -> int:
    """Run it once, print the outcome; returns 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clusters", type=int, default=2, choices=(2, 3))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rate", type=int, default=1_000, help="records/s written to each cluster")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--compact", action="store_true", help="compact the topic; then only groups are compared")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    specs = [ClusterSpec(name=name) for name in "ABC"[: given.clusters]]
    with start_clusters(specs) as clusters, tempfile.TemporaryDirectory() as folder:
        config = {"cleanup.policy": "compact", "segment.ms": "5000", "min.cleanable.dirty.ratio": "0.01"}
        terms = ActiveActiveTerms(
            seconds=given.seconds,
            rate=given.rate,
            partitions=given.partitions,
            config=config if given.compact else {},
        )
        outcome = run_active_active(clusters, Path(folder), terms)
    found = {"clusters": given.clusters, "seconds": given.seconds, "rate": given.rate, **asdict(outcome)}
    print(json.dumps(found, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
