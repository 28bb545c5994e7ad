"""The documented manual move with MirrorMaker 2, with the applications of `bench.switchovers`.

    python -m bench.move_by_hand [--interval 60] [--rate 2000] [--groups 5] [--rounds 3]

Stop writers, wait for zero lag, wait for a checkpoint and its commit (`sync.group.offsets.interval.seconds`, 60 s by
default), stop consumers, start everything with the addresses of the other cluster. Writers are blocked until then. No
operator is as fast as this script.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.throughput import Ends
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.applications import Outcome, Writer, running
from tests.support.moving import PARTITIONS, Applications
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.world import World

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_WARM_S: Final = 40.0
_LOOK_S: Final = 0.2
_SPARE_S: Final = 2.0


def total(cluster: EmbeddedCluster, topic: str) -> int:
    """The records of a topic."""
    return Ends(cluster, {topic: PARTITIONS}).total()


def move(world: World, given: argparse.Namespace) -> tuple[float, int, int]:
    """Move once; returns how long writers were blocked, in seconds, and records read again and lost by all groups."""
    applications = Applications(world, rate=given.rate, groups=given.groups)
    settings = peer_settings(
        world,
        groups=f"{applications.topic}-.*",
        **{
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": str(given.interval),
            "emit.checkpoints.interval.seconds": str(given.interval),
        },
    )
    remote = world.remote(applications.topic)
    with MirrorMaker(world.folder, settings, as_shipped=True), running(applications.writer, applications.readers):
        time.sleep(_WARM_S)
        written = applications.writer.stop()
        began = time.monotonic()
        while total(world.target, remote) < sum(written):
            time.sleep(_LOOK_S)
        time.sleep(given.interval + _SPARE_S)
        applications.switch.write_text(world.target.bootstrap_servers)
        blocked_s = time.monotonic() - began
        second = Writer(applications.switch, applications.topic, PARTITIONS, given.rate)
        second.written = list(written)
        second.start()
        time.sleep(_SPARE_S)
        written = second.stop()
        for reader in applications.readers:
            reader.wait_for(written)
    outcomes = [Outcome(reader.read, written) for reader in applications.readers]
    return blocked_s, sum(one.repeated for one in outcomes), sum(one.lost for one in outcomes)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interval", type=int, default=60, help="of checkpoints and their commits, seconds")
    parser.add_argument("--rate", type=int, default=2_000, help="records/s")
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with start_clusters([ClusterSpec(name=name) for name in ("source", "target")]) as clusters:
        for _ in range(given.rounds):
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                world = World(clusters["source"], clusters["target"], Path(folder))
                blocked_s, again, lost = move(world, given)
                print(f"blocked {blocked_s:.1f} s, read again {again:,}, lost {lost}", flush=True)


if __name__ == "__main__":
    main()
