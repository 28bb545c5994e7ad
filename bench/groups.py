"""How soon a group's commit on the source is on the target, beside MirrorMaker 2 at its shortest interval.

    python -m bench.groups [--groups 200] [--idle 4000] [--partitions 50] [--seconds 60] [--engines functions spark mm2]

Each second every active group commits one offset more in every partition. Both clusters' offsets topics are read; a
commit has arrived once the target has its offset, or a later one. Groups commit without members: MirrorMaker 2 and a
flow that reads `__consumer_offsets` see them all the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections import deque
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.brokers import source_and_target
from bench.engines import Family
from mirrorless.clusters.groups import Committed, GroupOffsets
from mirrorless.group_sync.commit_feeds import TopicFeed
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster

_RECORDS: Final = 400
_START_S: Final = 180.0
_AFTER_S: Final = 20.0
_SETTINGS: Final = {"sync.group.offsets.enabled": "true", "groups": "group-.*"}
_MM2: Final = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.groups.interval.seconds": "10",
    "emit.heartbeats.enabled": "false",
    "offset.lag.max": "0",
    "tasks.max": "2",
}


@contextmanager
def running(engine: str, world: World) -> Iterator[Family]:
    """Run an engine for the flow of a world."""
    if engine == "mm2":
        with MirrorMaker(world.folder, peer_settings(world, groups="group-.*", **_MM2), as_shipped=True) as peer:
            yield Family(peer.pid)
        return
    world.write_settings(**_SETTINGS)
    with Mirrorless(world.file, "--engine", engine) as ours:
        yield Family(ours.process.pid)


class Arrivals:
    """When a cluster had which offset of the first partition, by group, in monotonic seconds."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.seen: dict[str, list[tuple[float, int]]] = {}
        self._feed = TopicFeed(cluster, wants=lambda _, name: name == topic)
        self._place = topic, 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._ended.is_set():
            for group, offsets in self._feed.take(0.05).items():
                if (found := offsets.get(self._place)) is not None:
                    self.seen.setdefault(group, []).append((time.monotonic(), found.offset))

    def close(self) -> None:
        """Read nothing more."""
        self._ended.set()
        self._thread.join()
        self._feed.close()


def delays(source: Arrivals, target: Arrivals) -> tuple[list[float], int]:
    """Return the seconds of each commit that has arrived, and how many have not."""
    found: list[float] = []
    missing = 0
    for group, commits in source.seen.items():
        there = deque(target.seen.get(group, ()))
        for at, offset in commits:
            while there and there[0][1] < offset:
                there.popleft()
            if there:
                found.append(max(0.0, there[0][0] - at))
            else:
                missing += 1
    return found, missing


def commit_all(groups: GroupOffsets, names: list[str], offsets: Mapping[TopicPartition, Committed]) -> None:
    """Commit the same offsets for every group."""
    for group, outcome in groups.commit(dict.fromkeys(names, offsets)).items():
        assert not isinstance(outcome, str), f"{group}: {outcome}"


def measured(engine: str, given: argparse.Namespace) -> dict[str, object]:
    """Run one engine on new clusters, and return its figures."""
    active = [f"group-{number:04}" for number in range(given.groups)]
    idle = [f"group-idle-{number:04}" for number in range(given.idle)]
    with source_and_target() as clusters, tempfile.TemporaryDirectory() as folder:
        world = World(clusters["source"], clusters["target"], Path(folder))
        topic = world.topic(partitions=given.partitions)
        places = [(topic, partition) for partition in range(given.partitions)]
        world.write_settings(**_SETTINGS)
        fill(
            world.source,
            topic,
            (b"%d" % number for number in range(_RECORDS * given.partitions)),
            partitions=given.partitions,
        )
        flow = world.place().load()
        with closing(GroupOffsets(flow.target)) as there:
            commit_all(there, ["another"], dict.fromkeys(places, Committed(0, "")))  # its offsets topic is created
        with closing(GroupOffsets(flow.source)) as groups:
            commit_all(groups, [*active, *idle], dict.fromkeys(places, Committed(1, "")))
            with running(engine, world) as family, closing(Arrivals(flow.target, world.remote(topic))) as target:
                until, number = time.monotonic() + _START_S, 2
                while len(target.seen) < len(active):  # it has begun
                    assert time.monotonic() < until, f"{engine}: {len(target.seen)} groups are on the target"
                    commit_all(groups, active, dict.fromkeys(places, Committed(number, "")))
                    number += 1
                    time.sleep(1.0)
                with closing(Arrivals(flow.source, topic)) as source:
                    time.sleep(1.0)
                    before, began = family.look(), time.monotonic()
                    while time.monotonic() < began + given.seconds:
                        due = time.monotonic() + 1.0
                        commit_all(groups, active, dict.fromkeys(places, Committed(number, "")))
                        number += 1
                        time.sleep(max(0.0, due - time.monotonic()))
                    cpu = (family.look() - before) / (time.monotonic() - began)
                    time.sleep(_AFTER_S)
                found, missing = delays(source, target)
    ordered = sorted(found)
    figures: dict[str, object] = {"engine": engine, "commits": len(found) + missing, "missing": missing}
    if ordered:  # MirrorMaker 2 may translate each commit to an earlier offset
        figures |= {
            "p50_s": round(statistics.median(ordered), 2),
            "p99_s": round(ordered[int(len(ordered) * 0.99)], 2),
            "most_s": round(ordered[-1], 2),
        }
    return figures | {"cores": round(cpu, 2)}


def main() -> None:
    """Measure each engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--idle", type=int, default=0)
    parser.add_argument("--partitions", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engines", nargs="+", default=["functions", "spark", "mm2"])
    given = parser.parse_args()
    for engine in given.engines:
        print(json.dumps(measured(engine, given)), flush=True)


if __name__ == "__main__":
    main()
