"""Hundreds of partitions begin at once: of two writers, the first one's announcement is stored."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.copy.flow.connections import FlowConnections
from mirrorless.copy.resume.epochs import Epochs
from mirrorless.progress.records import Announcement
from mirrorless.protocol.cluster_client import LATEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.protocol.requests import Offset
    from tests.support.world import World

PARTITIONS = 300


@pytest.fixture
def ends(world: World) -> Iterator[FlowConnections]:
    topic = world.topic(partitions=PARTITIONS)
    world.write_settings(**{"offset.storage.partitions": "25"})
    world.discover()
    flow = world.place().load()
    found = FlowConnections(flow)
    found.run(lambda: found.connect(flow, topics=[topic], remote_topics=[world.remote(topic)]))
    until = time.monotonic() + 120
    while any(one.error_code for one in found.run(lambda: journal_ends(world, found))):
        assert time.monotonic() < until
        time.sleep(0.1)  # the broker is still busy with the topic that was just made
    yield found
    found.close()


async def journal_ends(world: World, ends: FlowConnections) -> list[Offset]:
    node = ends.target.leader((world.progress_topic, 0))
    assert node is not None
    places = [(world.progress_topic, partition) for partition in range(25)]
    return list((await ends.target.offsets(node, places, at=LATEST)).values())


def writer(world: World, ends: FlowConnections) -> Epochs:
    return Epochs(
        net=ends.net,
        source=ends.source,
        target=ends.target,
        source_alias=world.source_alias,
        source_id=ends.source.cluster_id,
        progress_topic=world.progress_topic,
    )


def said_by(start: int, partition: int, *, reason: str = "first copy") -> Announcement:
    return Announcement(epoch=0, start=start + partition, downstream=0, reason=reason, topic_id=None)


def announce(ends: FlowConnections, wanted: list[tuple[Epochs, str, int, Announcement]]) -> list[Announcement]:
    async def all_of_them() -> list[Announcement]:
        asked: list[Any] = [
            ends.net.call_soon_with_future(one.announce((topic, partition), announcement))
            for one, topic, partition, announcement in wanted
        ]
        return [await one for one in asked]

    return ends.run(all_of_them)


def test_of_two_writers_the_first_ones_word_holds_for_both(world: World, ends: FlowConnections) -> None:
    (topic,) = world.topics
    here, there = writer(world, ends), writer(world, ends)
    both = [
        (one, topic, partition, said_by(begin, partition))
        for begin, one in ((0, here), (1_000, there))
        for partition in range(PARTITIONS)
    ]
    answers = announce(ends, both)
    assert answers[:PARTITIONS] == answers[PARTITIONS:]
    # And for whoever comes later.
    assert announce(ends, [(here, topic, 7, said_by(5_000, 7))]) == [answers[7]]


def test_announcements_too_long_to_be_read_back_with_others_are_read_alone(world: World, ends: FlowConnections) -> None:
    (topic,) = world.topics
    one = writer(world, ends)
    wanted = [said_by(0, partition, reason="why " * 20_000) for partition in range(40)]
    assert announce(ends, [(one, topic, partition, said) for partition, said in enumerate(wanted)]) == wanted
