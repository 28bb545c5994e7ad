"""One lease copies what is there, unopened and equal; the next one goes on behind it."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from mirrorless.errors import SameClusterError
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster


def test_every_codec_arrives_equal(world: World) -> None:
    topics = {codec: world.topic(partitions=2) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}
    for codec, topic in topics.items():
        fill(world.source, topic, (b"%d " % n * 20 for n in range(4_000)), partitions=2, compression_type=codec)
    reports = world.copy()
    assert {report.state for report in reports} == {"caught up"}
    assert {codec: world.assert_equal(topic) for codec, topic in topics.items()} == dict.fromkeys(topics, 4_000)
    assert sum(report.records for report in reports) == 20_000


def test_where_nothing_is_in_the_way_nothing_is_resumed(world: World, troubles: list[str]) -> None:
    topic = world.topic(partitions=100)
    fill(world.source, topic, (b"first" for _ in range(100)), partitions=100)
    world.copy_to_the_end()
    troubles.clear()  # what is new may have no leader yet
    some = [random.randbytes(500).hex().encode() for _ in range(1_000)]
    client = producer(
        world.source, compression_type="lz4", batch_size=250_000, linger_ms=50, queue_buffering_max_messages=300_000
    )
    for number in range(60_000):
        hot = number % 100 < 90  # many small requests, of which large answers of the source come in between
        client.produce(topic, some[number % 1_000], partition=0 if hot else number % 100)
        client.poll(0)
    assert client.flush(60) == 0
    world.copy_to_the_end()
    assert world.assert_equal(topic) == 60_100
    assert not troubles


def test_keys_values_headers_and_timestamps_arrive_untouched(world: World) -> None:
    topic = world.topic()
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers})
    now_ms = int(time.time() * 1000)
    odd: list[tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]]]] = [
        (b"key", b"value", []),
        (None, b"no key", []),
        (b"tombstone", None, []),
        (b"", b"", []),
        (None, None, []),
        (
            b"\x00\xff",
            b"\xff\x00",
            [("same", b"1"), ("same", b"2"), ("", b""), ("none", None), ("\u00e4\u4e2d", b"\xfe")],
        ),
    ]
    for number, (key, value, headers) in enumerate(odd):
        # Going backwards, as clocks do.
        client.produce(topic, key=key, value=value, headers=headers, timestamp=now_ms - number * 1_000)
    client.flush()
    world.copy()
    assert world.assert_equal(topic) == len(odd)


def test_a_second_copy_copies_nothing_and_a_third_what_is_new(world: World) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"first %d" % n for n in range(1_000)), partitions=2)
    assert sum(report.records for report in world.copy()) == 1_000
    assert sum(report.records for report in world.copy()) == 0
    fill(world.source, topic, (b"second %d" % n for n in range(500)), partitions=2)
    assert sum(report.records for report in world.copy()) == 500
    assert world.assert_equal(topic) == 1_500


def test_new_topics_and_partitions_are_taken_up(world: World) -> None:
    first = world.topic(partitions=1)
    fill(world.source, first, [b"one"])
    world.copy()
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    admin.create_partitions([NewPartitions(first, 3)])[first].result()
    second = world.topic(partitions=2)
    fill(world.source, first, (b"%d" % n for n in range(30)), partitions=3)
    fill(world.source, second, (b"%d" % n for n in range(30)), partitions=2)
    world.copy()
    assert world.assert_equal(first) == 31
    assert world.assert_equal(second) == 30


def test_an_empty_topic_is_caught_up_at_once(world: World) -> None:
    topic = world.topic(partitions=4)
    assert world.copy() == []
    assert world.assert_equal(topic) == 0


@pytest.mark.nightly
def test_a_thousand_partitions_in_one_lease(world: World) -> None:
    topic = world.topic(partitions=1_000)
    fill(world.source, topic, (b"%d" % n for n in range(5_000)), partitions=1_000)
    reports = world.copy()
    assert len(reports) == 1_000
    assert world.assert_equal(topic) == 5_000


def test_a_cluster_is_never_mirrored_to_itself(source: EmbeddedCluster, tmp_path: Path) -> None:
    world = World(source, source, tmp_path)
    world.topic()
    before = set(_topics(source))
    with pytest.raises(
        SameClusterError, match=r"source and target are the same cluster \(id .*\); nothing was written"
    ):
        world.discover()
    assert set(_topics(source)) == before


def _topics(cluster: EmbeddedCluster) -> list[str]:
    return list(AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60).topics)
