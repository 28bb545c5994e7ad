"""Active/active: two clusters that replicate to each other, and a group that moves between them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.support.offsets import commit, committed, flow_of, transactions
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

TURNS = 6
_A_PART = 13
_EVERYTHING = 10_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a group that moved `TURNS` times read twice, by turn, and what it never read, in records."""

    again: list[int]
    missed: int


class Pair:
    """Two clusters with a topic each, whose flows bring it to the other one, and the group `group`."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, folder: Path, *, group: str) -> None:
        self.group = group
        self.there = World(source, target, folder / "there")
        self.back = World(target, source, folder / "back")
        self.back.source_alias, self.back.target_alias = self.there.target_alias, self.there.source_alias
        self.back.flow = f"{self.back.source_alias}->{self.back.target_alias}"
        self.worlds = (self.there, self.back)
        for world in self.worlds:
            world.folder.mkdir(parents=True)
        self.topics = [world.topic() for world in self.worlds]
        extra = {"groups": group, "sync.group.offsets.enabled": "true", "mirrorless.sync.index.records": "50"}
        self.flows = [flow_of(world, **extra) for world in self.worlds]

    def replicate(self) -> None:
        """One round of everything, both ways."""
        for world in self.worlds:
            world.copy()
        for flow, forward in zip(self.flows, reversed(self.flows), strict=True):
            passes = Checkpoints(flow.among(aliases=(), circle=[forward]))
            report = passes.emit()
            assert report.troubles == []
            assert report.how["nearest"] == 0
            assert passes.sync_groups().troubles == []
            passes.close()

    def there_and_back(self, *, uncommitted: int, replicate: Callable[[], None]) -> Outcome:
        """Let the group move to the other side six times, and `replicate` in between; records come all the time.

        Each time it reads but a part, so that its offsets lie anywhere. The last `uncommitted` records of each part
        are read and not committed, as by a member that is killed.
        """
        produced: set[bytes] = set()
        seen: Counter[bytes] = Counter()
        again: list[int] = []
        replicate()
        for turn in range(TURNS + 1):
            for world, topic in zip(self.worlds, self.topics, strict=True):
                values = [b"%s %d %d" % (topic.encode(), turn, number) for number in range(20)]
                fill(world.source, topic, values)
                transactions(world.source, topic, 4, records=3, aborted_every=2)
                produced |= set(values)
            last = turn == TURNS
            if last:
                replicate()
            found = [
                value
                for value in self.read(
                    turn % 2, at_most=_EVERYTHING if last else _A_PART, uncommitted=0 if last else uncommitted
                )
                if value in produced
            ]
            again.append(sum(seen[value] > 0 for value in found))
            seen.update(found)
            replicate()
        return Outcome(again=again, missed=len(produced - seen.keys()))

    def read(self, side: int, *, at_most: int, uncommitted: int) -> list[bytes]:
        """Go on with the group on one side, in its own topic and in the other's remote one; commit at the end."""
        world, other = self.worlds[side], self.worlds[1 - side]
        begin = committed(world.source, self.group)
        consumer = Consumer(
            {
                "bootstrap.servers": world.source.bootstrap_servers,
                "group.id": self.group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        values: list[bytes] = []
        positions: dict[tuple[str, int], int] = {}
        try:
            for topic in (self.topics[side], other.remote(self.topics[1 - side])):
                consumer.assign([TopicPartition(topic, 0, begin.get((topic, 0), 0))])
                messages = consumer.consume(at_most, timeout=3)
                assert [message.error() for message in messages] == [None] * len(messages)
                values += [message.value() or b"" for message in messages]
                if uncommitted and messages:
                    positions[topic, 0] = messages[-uncommitted:][0].offset() or 0
                elif messages:
                    (place,) = consumer.position([TopicPartition(topic, 0)])
                    positions[topic, 0] = place.offset
        finally:
            consumer.close()
        if positions:
            commit(world.source, self.group, positions)
        return values
