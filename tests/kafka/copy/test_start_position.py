"""Where a partition without progress begins."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer

from mirrorless.errors import ConfigurationError
from tests.support.world import World, fill, read, values


def remote_values(world: World, topic: str) -> list[bytes | None]:
    return values(read(world.target, world.remote(topic))[0])


def test_latest_leaves_out_what_was_there_before(world: World) -> None:
    topic = world.topic()
    world.write_settings(**{f"{world.source_alias}.consumer.auto.offset.reset": "latest"})
    fill(world.source, topic, [b"before"])
    world.copy_unbounded(seconds=5)
    fill(world.source, topic, [b"after"])
    world.copy_to_the_end()
    fill(world.source, topic, [b"later"])
    world.copy_to_the_end()
    assert remote_values(world, topic) == [b"after", b"later"]


def test_a_timestamp_begins_at_its_first_record(world: World) -> None:
    topic = world.topic()
    now_ms = int(time.time() * 1000)
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "linger.ms": 0})
    for number in range(10):
        client.produce(topic, value=b"%d" % number, timestamp=now_ms - 10_000 + number * 1_000)
        client.flush()
    world.write_settings(**{"mirrorless.start.timestamp": str(now_ms - 6_500)})
    world.copy()
    assert remote_values(world, topic) == [b"%d" % number for number in range(4, 10)]


def test_a_timestamp_behind_everything_begins_at_the_end(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"old"])
    world.write_settings(**{"mirrorless.start.timestamp": "2100-01-01T00:00:00Z"})
    world.copy()
    fill(world.source, topic, [b"new"])
    world.copy()
    assert remote_values(world, topic) == [b"new"]


def test_anything_else_is_refused(world: World) -> None:
    world.topic()
    world.write_settings(**{f"{world.source_alias}.consumer.auto.offset.reset": "none"})
    with pytest.raises(ConfigurationError, match=r"consumer.auto.offset.reset=none: must be earliest or latest"):
        world.discover()
