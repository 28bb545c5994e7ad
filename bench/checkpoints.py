"""Checkpoints of many groups from a cold start: seconds and memory of one pass in a process of its own.

    python -m bench.checkpoints [--groups 500] [--partitions 200]

The source's topic is made of transactions, so that its offsets have holes and translating them is work.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.offsets import commit, committed_records, transactions
from tests.support.world import World, fill

_ROOT = Path(__file__).parents[1]
_PLAIN, _IN_TRANSACTIONS = 400, 20


def emit_here(file: str, flow: str) -> None:
    """Emit once in this process and print what it took."""
    began = time.monotonic()
    from mirrorless.copy.flow.reference import FlowRef  # noqa: PLC0415 -- a cold start has the imports too
    from mirrorless.offsets.checkpoint_pass import Checkpoints  # noqa: PLC0415

    passes = Checkpoints(FlowRef(location=file, flow=flow, bounded=True).load())
    report = passes.emit()
    seconds = time.monotonic() - began
    passes.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "offsets": report.offsets,
                "emitted": report.emitted,
                "how": dict(report.how),
                "unknown": dict(report.unknown),
                "troubles": report.troubles,
                "seconds": seconds,
                "peak_bytes": peak,
            }
        )
    )


def main() -> None:
    """Fill, copy, commit, and measure one pass."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=200)
    given = parser.parse_args()
    chance = random.Random(6)  # noqa: S311
    with (
        start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters,
        tempfile.TemporaryDirectory() as folder,
    ):
        world = World(clusters["source"], clusters["target"], Path(folder))
        topic = world.topic(partitions=given.partitions)
        world.write_settings(groups="group-.*")
        fill(world.source, topic, (b"%d" % n for n in range(_PLAIN * given.partitions)), partitions=given.partitions)
        for partition in range(given.partitions):
            transactions(world.source, topic, _IN_TRANSACTIONS, records=2, partition=partition)
        world.copy()
        ends = {partition: offsets[-1] + 1 for partition, offsets in committed_records(world.source, topic).items()}
        for number in range(given.groups):
            offsets = {(topic, partition): chance.randint(0, end) for partition, end in ends.items()}
            commit(world.source, f"group-{number:04}", offsets)
        script = "import sys; from bench.checkpoints import emit_here; emit_here(sys.argv[1], sys.argv[2])"
        done = subprocess.run(
            [sys.executable, "-c", script, str(world.file), world.flow],
            check=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(_ROOT / "src"), str(_ROOT)))},
        )
        found = json.loads(done.stdout)
        print(
            f"{given.groups} groups by {given.partitions} partitions: {found['offsets']:,} offsets translated, "
            f"{found['emitted']:,} checkpoints in {found['seconds']:.1f} s, "
            f"peak memory {found['peak_bytes'] / 1e6:,.0f} MB; {found['how']} {found['unknown']} {found['troubles']}"
        )


if __name__ == "__main__":
    main()
