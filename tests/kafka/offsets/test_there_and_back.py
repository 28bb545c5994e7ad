"""Active/active: a group fails over and back, three times; nothing is missed or, stopped in order, read twice."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.support.offsets import commit, committed, flow_of, transactions
from tests.support.world import World, fill

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.kafka import EmbeddedCluster

GROUP = "there-and-back"
TURNS = 6


class Pair:
    """Two clusters that replicate one topic's name to each other."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, folder: Path) -> None:
        self.there = World(source, target, folder / "there")
        self.back = World(target, source, folder / "back")
        self.back.source_alias, self.back.target_alias = self.there.target_alias, self.there.source_alias
        self.back.flow = f"{self.back.source_alias}->{self.back.target_alias}"
        self.worlds = (self.there, self.back)
        for world in self.worlds:
            world.folder.mkdir()
        self.topics = [world.topic() for world in self.worlds]
        extra = {"groups": GROUP, "sync.group.offsets.enabled": "true", "mirrorless.sync.index.records": "50"}
        self.flows = [flow_of(world, **extra) for world in self.worlds]

    def replicate(self) -> None:
        """One round of everything, both ways."""
        for world in self.worlds:
            world.copy()
        for flow, forward in zip(self.flows, reversed(self.flows), strict=True):
            passes = Checkpoints(flow, forward=forward)
            report = passes.emit()
            assert report.troubles == []
            assert report.how["nearest"] == 0
            assert passes.sync_groups().troubles == []
            passes.close()

    def read(self, side: int, *, at_most: int, uncommitted: int) -> list[bytes]:
        """Go on with the group on one side, in its own topic and in the other's remote one; commit at the end.

        The last `uncommitted` records are read and not committed, as by a member that is killed.
        """
        world, other = self.worlds[side], self.worlds[1 - side]
        begin = committed(world.source, GROUP)
        consumer = Consumer(
            {
                "bootstrap.servers": world.source.bootstrap_servers,
                "group.id": GROUP,
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
            commit(world.source, GROUP, positions)
        return values


@pytest.mark.timeout(400)
@pytest.mark.parametrize("uncommitted", [0, 4], ids=["stopped in order", "killed"])
def test_three_times_there_and_back(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path, uncommitted: int
) -> None:
    pair = Pair(source, target, tmp_path)
    produced: list[bytes] = []
    seen: Counter[bytes] = Counter()
    for turn in range(TURNS + 1):
        for world, topic in zip(pair.worlds, pair.topics, strict=True):
            values = [b"%s %d %d" % (topic.encode(), turn, number) for number in range(20)]
            fill(world.source, topic, values)
            transactions(world.source, topic, 4, records=3, aborted_every=2)
            produced += values
        # In between only a part is read, so that offsets lie anywhere.
        at_most = 13 if turn < TURNS else 10_000
        seen.update(pair.read(turn % 2, at_most=at_most, uncommitted=uncommitted if turn < TURNS else 0))
        pair.replicate()
    pair.replicate()
    seen.update(pair.read(TURNS % 2, at_most=10_000, uncommitted=0))
    own = {value: count for value, count in seen.items() if value in set(produced)}
    missed = set(produced) - own.keys()
    again = sum(count - 1 for count in own.values())
    assert not missed
    assert again <= 2 * uncommitted * TURNS
