"""What groups would read again after their cluster dies under load, beside MirrorMaker 2 at its shortest interval.

    python -m bench.group_kills [--kills 20] [--groups 20] [--partitions 10] [--engines functions mm2]

Ten times a second records are appended to every partition, and every group commits that it has read all of them. At a
random moment the source's broker is killed. Then the target's offsets are compared with the last commits that the
source acknowledged: a record counts once for each group that has committed it, if the target holds it. Then the source
comes back, and what was missed arrives, before the next kill. The topic has no transactions, so both copies have the
source's offsets.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer

from bench.brokers import source_and_target
from bench.groups import commit_all, running
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Committed, GroupOffsets
from mirrorless.clusters.topics import high_watermarks
from mirrorless.errors import MirrorlessError
from tests.support.world import World

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow

_BATCH: Final = 10
_PAUSE_S: Final = 0.1
_EARLIEST_S, _LATEST_S = 4.0, 9.0
_LANDING_S: Final = 4.0
"""What was read before the broker died is written on the target by then."""
_PATIENCE_S: Final = 240.0


class Load:
    """Appends to every partition and commits for every group, while it may; `committed` is what was acknowledged."""

    def __init__(self, flow: Flow, topic: str, *, partitions: int, groups: list[str]) -> None:
        self.committed = 0
        self._topic = topic
        self._partitions = partitions
        self._names = groups
        self._offsets = GroupOffsets(flow.source)
        servers = flow.source.bootstrap_servers
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
        self._end = 0
        self._may = threading.Event()
        self._over = threading.Event()
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    @property
    def places(self) -> list[TopicPartition]:
        """The partitions."""
        return [(self._topic, partition) for partition in range(self._partitions)]

    def begin(self) -> None:
        """Write and commit from now on."""
        self._idle.clear()
        self._may.set()

    def rest(self) -> None:
        """Write no more, and wait until nothing is under way; what the source did not take is taken later."""
        self._may.clear()
        self._idle.wait()

    def close(self) -> None:
        """End."""
        self._over.set()
        self._may.set()
        self._thread.join()
        self._offsets.close()

    def _work(self) -> None:
        while not self._over.is_set():
            if not self._may.is_set():
                self._idle.set()
                self._may.wait(0.1)
                continue
            for _, partition in self.places:
                for _ in range(_BATCH):
                    self._producer.produce(self._topic, b"x" * 100, partition=partition)
            while self._producer.flush(1) and not self._over.is_set():
                pass
            self._end += _BATCH
            try:
                commit_all(self._offsets, self._names, dict.fromkeys(self.places, Committed(self._end, "")))
            except (AssertionError, MirrorlessError):
                continue  # nothing was acknowledged
            self.committed = self._end
            time.sleep(_PAUSE_S)


def read_again(load: Load, target: GroupOffsets, remote: dict[TopicPartition, int], groups: list[str]) -> int:
    """Count the committed records that the target holds, and that groups would read again there."""
    again = 0
    found = dict(target.committed(groups))
    for group in groups:
        offsets = found.get(group, {})
        assert not isinstance(offsets, str), offsets
        for place, end in remote.items():
            known = offsets[place].offset if place in offsets else 0
            again += max(0, min(load.committed, end) - known)
    return again


def measured(engine: str, given: argparse.Namespace) -> dict[str, object]:
    """Kill the source again and again, and return how many records groups would have read again each time."""
    groups = [f"group-{number:04}" for number in range(given.groups)]
    chance = random.Random(7)  # noqa: S311 -- moments, the same in each run
    counts: list[int] = []
    with source_and_target() as clusters, tempfile.TemporaryDirectory() as at:
        world = World(clusters["source"], clusters["target"], Path(at))
        topic = world.topic(partitions=given.partitions)
        flow = world.place().load()
        admin = Admin(flow.target)
        load = Load(flow, topic, partitions=given.partitions, groups=groups)
        places = [(world.remote(topic), partition) for _, partition in load.places]
        with closing(load), running(engine, world), closing(GroupOffsets(flow.target)) as target:

            def ends() -> dict[TopicPartition, int]:
                return high_watermarks(admin, places)[0]

            for _ in range(given.kills):
                load.begin()
                until = time.monotonic() + _PATIENCE_S
                goal = load.committed + _BATCH
                while load.committed < goal or read_again(load, target, ends(), groups) > 200 * len(groups) * _BATCH:
                    assert time.monotonic() < until, f"{engine}: nothing follows"
                    time.sleep(0.5)
                while not all(end >= goal for end in ends().values()) or len(ends()) < len(places):
                    assert time.monotonic() < until, f"{engine}: nothing is copied"
                    time.sleep(0.5)
                time.sleep(chance.uniform(_EARLIEST_S, _LATEST_S))
                clusters["source"].kill_broker(1)
                time.sleep(_LANDING_S)
                counts.append(read_again(load, target, ends(), groups))
                clusters["source"].start_broker(1)
                load.rest()
    return {
        "engine": engine,
        "kills": len(counts),
        "read_again": counts,
        "median": statistics.median(counts),
        "most": max(counts),
        "a_group": round(statistics.mean(counts) / len(groups), 1),
    }


def main() -> None:
    """Measure each engine."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--engines", nargs="+", default=["functions", "mm2"])
    given = parser.parse_args()
    for engine in given.engines:
        print(json.dumps(measured(engine, given)), flush=True)


if __name__ == "__main__":
    main()
