"""The progress topic says what Connect would have said, where Connect would look for it."""

from __future__ import annotations

import json
import uuid

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from kafka.partitioner.default import murmur2

from tests.support.world import World, fill


@pytest.fixture
def world(world: World) -> World:
    world.write_settings(**{"offset.storage.partitions": "25"})
    return world


def records(world: World) -> list[tuple[int, bytes, bytes | None]]:
    """Partition, key and value of everything in the progress topic, in order."""
    consumer = Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": "test"})
    consumer.assign([TopicPartition(world.progress_topic, partition, OFFSET_BEGINNING) for partition in range(25)])
    found = []
    while messages := consumer.consume(1_000, timeout=2):
        found += [(message.partition() or 0, message.key() or b"", message.value()) for message in messages]
    consumer.close()
    return found


def test_key_bytes_value_and_partition_are_connects(world: World) -> None:
    topic = world.topic(partitions=4)
    fill(world.source, topic, (b"%d" % n for n in range(400)), partitions=4)
    world.copy()
    written = {key: (partition, json.loads(value or b"null")) for partition, key, value in records(world)}
    for partition in range(4):
        key = b'["MirrorSourceConnector",{"cluster":"%s","partition":%d,"topic":"%s"}]' % (
            world.source_alias.encode(),
            partition,
            topic.encode(),
        )
        where, value = written[key]
        assert where == (murmur2(key) & 0x7FFFFFFF) % 25
        assert value == {"offset": 99, "sequence": 100, "epoch": 0, "downstream": 99, "leaderEpoch": 0, "run": 100}


def test_every_epoch_is_announced_under_a_key_that_connect_does_not_ask_for(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"one"])
    world.copy()
    ((key, value),) = [(key, value) for _, key, value in records(world) if b'"epoch"' in key]
    assert key == b'["mirrorless",{"cluster":"%s","epoch":0,"partition":0,"topic":"%s"}]' % (
        world.source_alias.encode(),
        topic.encode(),
    )
    said = json.loads(value or b"")
    source_id, remote_id = (uuid.UUID(said.pop(name)) for name in ("topicId", "remoteId"))
    assert source_id.int
    assert remote_id.int
    assert source_id != remote_id
    assert said == {"start": 0, "downstream": 0, "reason": "first copy", "kind": "FIRST_COPY", "sourceEnd": 1}


def test_the_topic_is_made_as_connect_makes_it(world: World) -> None:
    world.topic()
    world.discover()
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    resource = ConfigResource(ResourceType.TOPIC, world.progress_topic)
    assert admin.describe_configs([resource])[resource].result()["cleanup.policy"].value == "compact"
    assert len(admin.list_topics(world.progress_topic).topics[world.progress_topic].partitions) == 25
