"""A target that forgets the producer, or loses the remote topic: the position is the end of its log all the same."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.kafka.copy.test_transactions import transactional
from tests.kafka.identical.test_identical_copy import identical, transactions
from tests.support.identical import assert_identical, delete_before, ends
from tests.support.world import World, delete, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAYS_AGO_MS = 3 * 86_400_000


@pytest.fixture
def forgetful() -> Iterator[EmbeddedCluster]:
    settings = {"producer.id.expiration.ms": "3000", "producer.id.expiration.check.interval.ms": "50"}
    with start_clusters([ClusterSpec(name="forgetful", settings=settings)]) as started:
        yield started["forgetful"]


def old_transactions(world: World, topic: str, rounds: int) -> None:
    client = transactional(world.source, f"old-{topic}")
    timestamp = int(time.time() * 1000) - DAYS_AGO_MS
    for number in range(rounds):
        client.begin_transaction()
        for _ in range(20):
            client.produce(topic, value=b"%200d" % number, timestamp=timestamp)
        if number % 5:
            client.commit_transaction()
        else:
            client.flush()
            client.abort_transaction()


def test_old_records_whose_producer_is_forgotten(
    source: EmbeddedCluster, forgetful: EmbeddedCluster, tmp_path: Path
) -> None:
    world = World(source, forgetful, tmp_path)
    topic = identical(world)
    copied = 0
    for _ in range(3):
        old_transactions(world, topic, 60)
        reports = world.copy_unbounded(seconds=2)
        copied += sum(report.records for report in reports)
        assert not [report.error for report in reports if report.state == "halted"]
    reports = world.copy_to_the_end()
    copied += sum(report.records for report in reports)
    assert copied == 3 * 48 * 20
    assert assert_identical(world, topic) == copied
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)


def test_a_remote_topic_that_is_created_again(world: World) -> None:
    topic = identical(world)
    fill(world.source, topic, [b"%d" % number for number in range(4_000)])
    transactions(world, topic, rounds=2)
    world.copy()
    delete_before(world.source, topic, 3_456)
    delete(world.target, world.remote(topic))
    fill(world.source, topic, [b"more"])
    (report,) = world.copy()
    assert (report.state, report.records) == ("halted", 0)
    assert "the target lost records, or the remote topic was deleted and recreated" in str(report.error)
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    (report,) = world.copy()
    assert (report.state, report.error) == ("caught up", None)
    assert assert_identical(world, topic) == 544 + 12 + 1
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)


def test_records_that_cannot_be_copied_are_left_out(world: World) -> None:
    topic = identical(world, max_message_bytes="2000000")
    world.write_settings(**{"errors.tolerance": "all", "config.properties.exclude": "max.message.bytes"})
    fill(world.source, topic, [b"1", b"2"])
    fill(world.source, topic, [b"x" * 1_500_000], message_max_bytes=2_000_000)
    fill(world.source, topic, [b"3"])
    (report,) = world.copy()
    assert (report.state, report.records, report.left_out, report.error) == ("caught up", 3, 1, None)
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)
