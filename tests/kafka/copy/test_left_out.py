"""`errors.tolerance=all`: what cannot go over is left out, counted, and its place written down; all else goes over."""

from __future__ import annotations

import json
from threading import Timer
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from mirrorless.copy.flow.status import status_of
from mirrorless.metadata.fences import FENCED_BYTES
from tests.kafka.copy.test_every_batch import limit
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report


@pytest.fixture
def tolerant(world: World) -> World:
    """A flow that goes on, and says where."""
    world.write_settings(
        **{
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{world.source_alias}-left-out",
            "errors.deadletterqueue.topic.replication.factor": "1",
        }
    )
    return world


def copy(world: World) -> Report:
    (report,) = world.copy()
    return report


def dead_letters(world: World) -> list[dict[str, object]]:
    return [json.loads(record.value or b"") for record in read(world.target, f"{world.source_alias}-left-out")[0]]


def test_records_larger_than_the_remote_topic_takes(tolerant: World) -> None:
    world = tolerant
    topic = world.topic()
    world.discover()
    limit(world.target, world.remote(topic), 2_000)
    small = [b"%d" % n for n in range(50)]
    fill(world.source, topic, [*small[:20], b"x" * 5_000, *small[20:40], b"y" * 6_000, *small[40:]], linger_ms=300)
    report = copy(world)
    assert (report.state, report.records, report.left_out) == ("caught up", 50, 2)
    first, second = report.events.splitlines()
    assert first.startswith(f"{topic}-0: epoch 1: left out offset 20, 5")
    assert "MESSAGE_SIZE_TOO_LARGE (10)" in first
    assert second.startswith(f"{topic}-0: epoch 2: left out offset 41, 6")
    assert values(read(world.target, world.remote(topic))[0]) == small
    letters = dead_letters(world)
    assert [(letter["topic"], letter["partition"], letter["offset"]) for letter in letters] == [
        (topic, 0, 20),
        (topic, 0, 41),
    ]
    fill(world.source, topic, [b"more"])
    report = copy(world)
    assert (report.state, report.records, report.left_out) == ("caught up", 1, 0)


def test_a_record_whose_time_the_remote_topic_does_not_take(tolerant: World) -> None:
    world = tolerant
    topic = world.topic()
    world.discover()
    limit(world.target, world.remote(topic), 3_600_000, key="message.timestamp.before.max.ms")
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "linger.ms": 300})
    for n in range(10):
        client.produce(topic, value=b"%d" % n, timestamp=1_000 if n == 4 else 0)
    client.flush()
    report = copy(world)
    assert (report.state, report.records, report.left_out) == ("caught up", 9, 1)
    assert "INVALID_TIMESTAMP" in report.events
    assert values(read(world.target, world.remote(topic))[0]) == [b"%d" % n for n in range(10) if n != 4]


def test_a_transaction_whose_last_record_is_left_out_is_followed_by_the_next_one(tolerant: World) -> None:
    """The new epoch begins at a marker: it passes that, and has nothing on the target when the lease ends."""
    world = tolerant
    topic = world.topic()
    world.discover()
    limit(world.target, world.remote(topic), 2_000)
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "transactional.id": topic, "linger.ms": 0})
    client.init_transactions(30)

    def transaction(*values: bytes) -> None:
        client.begin_transaction()
        for value in values:
            client.produce(topic, value=value)
            client.flush()
        client.commit_transaction()

    transaction(*[b"%d" % n for n in range(5)], b"x" * 5_000)
    report = copy(world)
    assert (report.state, report.records, report.left_out) == ("caught up", 5, 1)
    transaction(*[b"%d" % n for n in range(5, 8)])
    report = copy(world)
    assert (report.state, report.records, report.gaps) == ("caught up", 3, 0)
    assert values(read(world.target, world.remote(topic))[0]) == [b"%d" % n for n in range(8)]


def test_records_written_while_the_remote_topic_is_fenced_arrive_afterwards(tolerant: World) -> None:
    """A fence of an operation is `max.message.bytes=78`: no record is left out because of it, and nothing halts."""
    world = tolerant
    topic = world.topic()
    records = [b"record %d " % n * 20 for n in range(30)]
    fill(world.source, topic, records[:10])
    assert copy(world).state == "caught up"
    limit(world.target, world.remote(topic), int(FENCED_BYTES))
    fill(world.source, topic, records[10:20], linger_ms=300)
    fill(world.source, topic, records[20:], linger_ms=0)
    for _ in range(6):
        report = world.copy_unbounded(seconds=5)[0]
        assert (report.records, report.left_out) == (0, 0)
        if report.state == "resuming":
            break
    assert report.state == "resuming"
    line = f"{world.remote(topic)} has the fence of an operation (max.message.bytes=78); its copy waits"
    assert line in (report.error or "")
    halted = status_of(world.place().load()).halted[topic, 0]
    assert (halted.offset, halted.reason.startswith(line)) == (10, True)
    fence_down = Timer(2.0, limit, (world.target, world.remote(topic), 1_048_588))
    fence_down.start()
    report = copy(world)  # one lease, during which the fence is removed
    fence_down.join()
    assert (report.state, report.records, report.left_out) == ("caught up", 20, 0)
    assert values(read(world.target, world.remote(topic))[0]) == records
    assert not status_of(world.place().load()).halted


def test_records_without_a_key_that_a_compacted_topic_refuses(tolerant: World) -> None:
    """They are left out batch by batch: each that is left out costs an epoch."""
    world = tolerant
    topic = world.topic()
    world.discover()
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "linger.ms": 300})
    for n in range(2_000):
        client.produce(topic, value=b"%d" % n)
        if n % 500 == 499:
            client.flush()
    limit(world.target, world.remote(topic), "compact", key="cleanup.policy")
    report = copy(world)
    assert (report.state, report.records) == ("caught up", 0)
    assert report.left_out <= 8
    for line in report.events.splitlines():
        assert f"cleanup.policy of {world.remote(topic)} is compact" in line
