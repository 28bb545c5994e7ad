"""How soon a group's commit on the source is on the target, beside MirrorMaker 2 at its shortest interval.

    python -m bench.groups [--groups 200] [--idle 4000] [--partitions 50] [--seconds 60] [--without-right]
                           [--engines functions spark mm2]

Each second a record is appended to every partition, and every active group commits that it has read those before. A
commit has arrived once the target has its offset, or a later one; the target's offsets topic is read for that. With
`--without-right` no client may read the source's offsets topic. The time of a commit is the moment before all groups
commit, so that the figures include those 0.2 to 0.5 s. Groups commit without members: both engines see them all the
same.

MirrorMaker 2 has `offset.lag.max=0` and intervals of one second. It translates only offsets near the end of what it has
copied: of those further back it keeps few offset syncs, and would answer with far earlier ones.
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

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from bench.brokers import source_and_target
from bench.engines import Family
from mirrorless.clusters.groups import Committed, GroupOffsets
from mirrorless.clusters.internal_topics import GROUP_COMMITS_TOPIC
from mirrorless.group_sync.commit_feeds import TopicFeed
from tests.support.peer import MirrorMaker, peer_settings
from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.settings import Cluster

_RECORDS: Final = 10
_DENIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_START_S: Final = 180.0
_SETTLES_S: Final = 5.0
_AFTER_S: Final = 10.0
_SETTINGS: Final = {"sync.group.offsets.enabled": "true", "groups": "group-.*"}
_MM2: Final = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.topic.acls.enabled": "false",
    "refresh.groups.interval.seconds": "1",
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


def delays(committed: list[tuple[float, int]], target: Arrivals, groups: list[str]) -> tuple[list[float], int]:
    """Return the seconds of each commit of each group that has arrived, and how many have not."""
    found: list[float] = []
    missing = 0
    for group in groups:
        there = deque(target.seen.get(group, ()))
        for at, offset in committed:
            while there and there[0][1] < offset:
                there.popleft()
            if there:
                found.append(max(0.0, there[0][0] - at))
            else:
                missing += 1
    return found, missing


def deny(cluster: EmbeddedCluster) -> None:
    """Refuse everybody to read the offsets topic."""
    binding = AclBinding(
        ResourceType.TOPIC,
        GROUP_COMMITS_TOPIC,
        ResourcePatternType.LITERAL,
        "User:ANONYMOUS",
        "*",
        AclOperation.READ,
        AclPermissionType.DENY,
    )
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})  # kept: its end would end the requests
    for future in client.create_acls([binding]).values():
        future.result()


def commit_all(groups: GroupOffsets, names: list[str], offsets: Mapping[TopicPartition, Committed]) -> None:
    """Commit the same offsets for every group."""
    for group, outcome in groups.commit(dict.fromkeys(names, offsets)).items():
        assert not isinstance(outcome, str), f"{group}: {outcome}"


def measured(engine: str, given: argparse.Namespace) -> dict[str, object]:
    """Run one engine on new clusters, and return its figures."""
    active = [f"group-{number:04}" for number in range(given.groups)]
    idle = [f"group-idle-{number:04}" for number in range(given.idle)]
    with (
        source_and_target(source=_DENIES if given.without_right else {}) as clusters,
        tempfile.TemporaryDirectory() as at,
    ):
        world = World(clusters["source"], clusters["target"], Path(at))
        topic = world.topic(partitions=given.partitions)
        places = [(topic, partition) for partition in range(given.partitions)]
        world.write_settings(**_SETTINGS)
        end = 0

        def append(records: int) -> None:
            nonlocal end
            values = (b"%d" % number for number in range(records * given.partitions))
            fill(world.source, topic, values, partitions=given.partitions)
            end += records

        def commit(some: list[str]) -> float:
            began = time.monotonic()
            commit_all(groups, some, dict.fromkeys(places, Committed(end, "")))
            return began

        append(_RECORDS)
        flow = world.place().load()
        with closing(GroupOffsets(flow.target)) as there:
            commit_all(there, ["another"], dict.fromkeys(places, Committed(0, "")))  # its offsets topic is created
        with closing(GroupOffsets(flow.source)) as groups:
            commit([*active, *idle])
            if given.without_right:
                deny(world.source)
            with running(engine, world) as family, closing(Arrivals(flow.target, world.remote(topic))) as target:
                until = time.monotonic() + _START_S
                while len(target.seen) < len(active):  # it has begun
                    assert time.monotonic() < until, f"{engine}: {len(target.seen)} groups are on the target"
                    commit(active)
                    append(1)
                    time.sleep(1.0)
                time.sleep(_SETTLES_S)
                committed: list[tuple[float, int]] = []
                before, began = family.look(), time.monotonic()
                while time.monotonic() < began + given.seconds:
                    due = time.monotonic() + 1.0
                    committed.append((commit(active), end))
                    append(1)
                    time.sleep(max(0.0, due - time.monotonic()))
                cpu = (family.look() - before) / (time.monotonic() - began)
                time.sleep(_AFTER_S)
            found, missing = delays(committed, target, active)
    ordered = sorted(found)
    figures: dict[str, object] = {
        "engine": engine,
        "right": not given.without_right,
        "commits": len(found) + missing,
        "missing": missing,
    }
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
    parser.add_argument("--without-right", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--engines", nargs="+", default=["functions", "spark", "mm2"])
    given = parser.parse_args()
    for engine in given.engines:
        print(json.dumps(measured(engine, given)), flush=True)


if __name__ == "__main__":
    main()
