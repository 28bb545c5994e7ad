"""Brokers forget a producer that was silent (`producer.id.expiration.ms`): the log says where the copy is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient, TopicPartition

from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.protocol.cluster_client import READ_COMMITTED, READ_UNCOMMITTED, ClusterClient
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import World, fill, producer, read, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORGETFUL = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "200"}


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    with start_clusters([ClusterSpec(name="forgetful", settings=FORGETFUL)]) as started:
        yield started["forgetful"]


@pytest.fixture
def world(source: EmbeddedCluster, forgetful: EmbeddedCluster, tmp_path: Path) -> World:
    return World(source, forgetful, tmp_path)


def wait_until_forgotten(world: World, topic: str) -> None:
    """Wait until no partition of a topic on the target remembers a producer."""
    admin = KafkaAdminClient(bootstrap_servers=world.target.bootstrap_servers)
    partitions = (
        AdminClient({"bootstrap.servers": world.target.bootstrap_servers}).list_topics().topics[topic].partitions
    )
    until = time.monotonic() + 120
    try:
        for place in [TopicPartition(topic, number) for number in partitions]:
            while admin.describe_producers([place])[place].active_producers:
                assert time.monotonic() < until
                time.sleep(0.2)
    finally:
        admin.close()


@pytest.fixture
def copied(world: World) -> str:
    topic = world.topic()
    for batch in range(20):
        fill(world.source, topic, (b"%d %d" % (batch, n) for n in range(10)), linger_ms=300)
    world.copy()
    return topic


def test_the_last_batch_says_it(world: World, copied: str) -> None:
    write_progress(world, copied, b'{"offset":39,"sequence":40,"epoch":0,"downstream":39}')
    wait_until_forgotten(world, world.remote(copied))
    fill(world.source, copied, [b"new"] * 10)
    (report,) = world.copy()
    assert report.records == 10
    assert world.assert_equal(copied) == 210


def test_the_log_was_emptied_by_retention(world: World, copied: str) -> None:
    write_progress(world, copied, b'{"offset":39,"sequence":40,"epoch":0,"downstream":39}')
    wait_until_forgotten(world, world.remote(copied))
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    for future in admin.delete_records([ConfluentPartition(world.remote(copied), 0, 200)]).values():
        future.result()
    fill(world.source, copied, [b"new"] * 10)
    (report,) = world.copy()
    assert (report.state, report.records, report.first_offset) == ("caught up", 10, 200)


def test_where_latest_was_holds_though_nothing_came_for_long(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"before"] * 5)
    world.write_settings(**{f"{world.source_alias}.consumer.auto.offset.reset": "latest"})
    world.copy_unbounded(seconds=3)
    wait_until_forgotten(world, world.progress_topic)
    fill(world.source, topic, [b"after"] * 10)
    (report,) = world.copy()
    assert (report.state, report.records, report.first_offset) == ("caught up", 10, 5)


@pytest.mark.nightly
def test_partitions_of_which_nothing_is_remembered_are_asked_for_together(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = world.topic(partitions=60)
    world.write_settings(**{"offset.storage.partitions": "25"})  # a request announces one epoch in each of them
    fill(world.source, topic, (b"%d" % n for n in range(600)), partitions=60)
    world.copy()
    wait_until_forgotten(world, world.remote(topic))
    asked = []
    fetch = ClusterClient.fetch

    async def counted(self: ClusterClient, node: int, wanted: Any, *what: Any, **how: Any) -> Any:  # noqa: ANN401
        asked.append(how.get("isolation", READ_COMMITTED))
        return await fetch(self, node, wanted, *what, **how)

    monkeypatch.setattr(ClusterClient, "fetch", counted)
    fill(world.source, topic, (b"%d" % n for n in range(600)), partitions=60)
    assert sum(report.records for report in world.copy()) == 600
    assert READ_UNCOMMITTED not in asked  # the progress says where the log ends
    wait_until_forgotten(world, world.remote(topic))
    for partition in range(60):
        write_progress(world, topic, b'{"offset":19}', partition=partition)
    fill(world.source, topic, (b"%d" % n for n in range(600)), partitions=60)
    assert sum(report.records for report in world.copy()) == 600
    assert asked.count(READ_UNCOMMITTED) < 20  # with those that read announcements back
    assert world.assert_equal(topic) == 1_800


class TestSeveralWriters:
    """With names that are kept, a registry or another flow appends to the remote topic too; records are old."""

    IDENTITY: Final = {"replication.policy.class": "IdentityReplicationPolicy"}

    def test_a_record_of_an_application_halts_nothing(self, world: World) -> None:
        world.extra |= self.IDENTITY
        topic = world.topic()
        world.write_settings()
        self.fill_old(world, topic, "a")
        world.copy()
        wait_until_forgotten(world, topic)
        fill(world.target, topic, [b"registered there"])
        for number in range(2):  # the second time its progress is from before the first
            fill(world.source, topic, [b"new %d" % number])
            (report,) = world.copy()
            assert (report.state, report.records) == ("caught up", 1), report
            write_progress(world, topic, b'{"offset":9,"sequence":10,"epoch":0,"downstream":9}')
            wait_until_forgotten(world, topic)
        found = values(read(world.target, topic)[0])
        assert found == [*(b"a %d" % n for n in range(30)), b"registered there", b"new 0", b"new 1"]

    def test_two_flows_into_one_topic(
        self, source: EmbeddedCluster, target: EmbeddedCluster, forgetful: EmbeddedCluster, tmp_path: Path
    ) -> None:
        """Each is killed again and again: its progress is behind what it appended."""
        worlds = [World(one, forgetful, tmp_path / name) for one, name in ((source, "one"), (target, "other"))]
        for world in worlds:
            world.folder.mkdir()
            world.extra |= self.IDENTITY
        topic = worlds[0].topic()
        worlds[1].topics.append(topic)
        admin = AdminClient({"bootstrap.servers": target.bootstrap_servers})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        worlds[1].write_settings()
        first_copied = {"a": 29, "b": 59}
        for turn in range(4):
            for world, name in zip(worlds, "ab", strict=True):
                self.fill_old(world, topic, f"{name} {turn}")
                (report,) = world.copy()
                assert (report.state, report.records) == ("caught up", 30), report
                last = b'{"offset":29,"sequence":30,"epoch":0,"downstream":%d}' % first_copied[name]
                write_progress(world, topic, last)
            if turn % 2:
                wait_until_forgotten(worlds[0], topic)
        found = values(read(forgetful, topic)[0])
        for name in "ab":
            wanted = [b"%s %d %d" % (name.encode(), turn, n) for turn in range(4) for n in range(30)]
            assert [one for one in found if one is not None and one.startswith(name.encode())] == wanted

    def fill_old(self, world: World, topic: str, name: str) -> None:
        """Three batches of 30 records, two days old."""
        client = producer(world.source)
        days_ago_ms = int((time.time() - 2 * 86_400) * 1000)
        for number in range(30):
            client.produce(topic, value=b"%s %d" % (name.encode(), number), timestamp=days_ago_ms)
            if number % 10 == 9:
                assert client.flush(60) == 0
