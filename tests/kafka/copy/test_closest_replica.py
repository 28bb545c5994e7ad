"""Three brokers in three racks, and a copy in the third: it reads the replica there, and every record arrives once."""

from __future__ import annotations

import itertools
import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from mirrorless.kafka_python.connection_manager import ExtraConnection
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.protocol.cluster_client import ClusterClient
from tests.kafka.copy.test_transactions import transactional
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report

NEAR = 3
RACKS = ("use1-az1", "use1-az2", "use1-az3")
SELECTOR = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "log.cleaner.backoff.ms": "200",
    "broker.session.timeout.ms": "4000",
}
VALUE = random.Random(1).randbytes(10_000)
_numbers = itertools.count()


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, EmbeddedCluster]]:
    specs = [ClusterSpec(name="source", brokers=3, settings=SELECTOR, racks=RACKS), ClusterSpec(name="target")]
    with start_clusters(specs) as started:
        yield started


@pytest.fixture
def world(clusters: dict[str, EmbeddedCluster], tmp_path: Path) -> World:
    found = World(clusters["source"], clusters["target"], tmp_path)
    found.write_settings(**{f"{found.source_alias}.consumer.client.rack": RACKS[NEAR - 1]})
    return found


def topic_led_elsewhere(world: World, partitions: int = 4, **config: str) -> str:
    """A topic with a replica on each broker, none of which is led in the rack of the copy."""
    name = f"far-{next(_numbers)}"
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    assignment = [[1 + number % 2, NEAR, 2 - number % 2] for number in range(partitions)]
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, replica_assignment=assignment, config=settings)])[name].result()
    until = time.monotonic() + 60
    while any(
        part.leader == NEAR or len(part.isrs) < len(assignment[0])
        for part in admin.list_topics(name, timeout=60).topics[name].partitions.values()
    ):
        assert time.monotonic() < until
        time.sleep(0.1)
    world.topics.append(name)
    world.write_settings()
    return name


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Bytes of records that each broker of the source sent, as counted here."""
    found = {1: 0, 2: 0, 3: 0}
    fetch = ClusterClient.fetch

    async def counted(self: ClusterClient, node: Any, *what: Any, **how: Any) -> Any:  # noqa: ANN401
        answer = await fetch(self, node, *what, **how)
        if how.get("isolation", 1):
            found[node.node if isinstance(node, ExtraConnection) else node] += sum(len(part.records) for part in answer)
        return answer

    monkeypatch.setattr(ClusterClient, "fetch", counted)
    return found


def share(reports: list[Report]) -> float:
    """The part of all bytes that the near follower sent."""
    return sum(one.follower_bytes for one in reports) / max(1, sum(one.fetched_bytes for one in reports))


def numbered(records: int) -> Iterator[bytes]:
    return (b"%09d" % number + VALUE for number in range(records))


@contextmanager
def copying(world: World, reports: list[Report], *, seconds: float) -> Iterator[None]:
    """Copy with one lease beside the caller."""
    failures: list[BaseException] = []

    def copy() -> None:
        try:
            reports.extend(world.copy_unbounded(seconds=seconds))
        except BaseException as error:  # noqa: BLE001 -- raised below
            failures.append(error)

    world.discover()
    thread = threading.Thread(target=copy)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert failures == []


def wait_until_some_are_copied(world: World, topic: str, *, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    until = time.monotonic() + 60
    while (have := _end(admin, world.remote(topic))) < records:
        assert time.monotonic() < until, f"{have} records"
        time.sleep(0.05)


def _end(admin: AdminClient, topic: str) -> int:
    if topic not in admin.list_topics(timeout=30).topics:
        return 0
    wanted = {TopicPartition(topic, 0): OffsetSpec.latest()}
    return sum(int(one.result().offset) for one in admin.list_offsets(wanted).values())


@pytest.mark.nightly
def test_nearly_all_bytes_come_from_the_near_replica(world: World, sent: dict[int, int]) -> None:
    plain = topic_led_elsewhere(world)
    fill(world.source, plain, numbered(4_000), partitions=4, acks="all")
    transactions = topic_led_elsewhere(world, 2)
    client = transactional(world.source, f"near-{transactions}")
    for number in range(20):
        client.begin_transaction()
        for value in numbered(20):
            client.produce(transactions, value=value, partition=number % 2)
        client.flush()
        client.abort_transaction() if number % 3 == 0 else client.commit_transaction()
    compacted = topic_led_elsewhere(
        world,
        1,
        cleanup_policy="compact",
        segment_bytes="1048576",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )
    with_holes(world, compacted)
    reports = world.copy_to_the_end()
    for topic in (plain, transactions):
        world.assert_equal(topic)
    latest = {record.key: record.value for record in read(world.target, world.remote(compacted))[0]}
    assert latest == {record.key: record.value for record in read(world.source, compacted)[0]}
    assert sum(one.fetched_bytes for one in reports) > 40_000_000
    followed = [one for one in reports if one.topic != compacted]
    assert share(followed) > 0.9
    assert sent[NEAR] == sum(one.follower_bytes for one in followed)
    # Each broker compacts its replica for itself, and positions are counted in the leader's.
    assert share([one for one in reports if one.topic == compacted]) == 0
    assert sum(one.gaps + one.left_out for one in reports) == 0


def with_holes(world: World, topic: str) -> None:
    """Overwrite keys until the cleaner has removed records, also at the end of what it cleans."""
    for _ in range(4):
        fill(world.source, topic, (b"%d" % number + VALUE for number in range(200)), acks="all")
    until = time.monotonic() + 60
    while len(read(world.source, topic)[0]) == 800:
        assert time.monotonic() < until, "the cleaner did nothing"
        time.sleep(0.2)


@pytest.mark.nightly
def test_records_that_are_deleted_while_they_are_copied_are_one_gap(world: World) -> None:
    topic = topic_led_elsewhere(world, 1)
    # Without idempotence a batch that is sent again, since its leader has just moved, may come after the next one.
    fill(world.source, topic, numbered(1_000), acks="all", batch_size=100_000, enable_idempotence="true")
    world.write_settings(**{"mirrorless.max.bytes.per.second": "1500000", "mirrorless.on.gap": "continue"})
    reports: list[Report] = []
    with copying(world, reports, seconds=5):
        wait_until_some_are_copied(world, topic, records=50)
        admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
        admin.delete_records([TopicPartition(topic, 0, 900)])[TopicPartition(topic, 0)].result()
    world.extra.pop("mirrorless.max.bytes.per.second")
    reports += world.copy_to_the_end()
    copied = [int((value or b"")[:9]) for value in values(read(world.target, world.remote(topic))[0])]
    before = [number for number in copied if number < 900]
    assert before == list(range(len(before)))
    assert 50 <= len(before) < 900
    assert copied[len(before) :] == list(range(900, 1_000))
    assert sum(one.gaps for one in reports) == 1


@pytest.mark.nightly
def test_a_follower_that_stops_meanwhile_loses_and_repeats_nothing(world: World, sent: dict[int, int]) -> None:
    topic = topic_led_elsewhere(world)
    fill(world.source, topic, numbered(2_000), partitions=4, acks="all")
    world.write_settings(**{"mirrorless.max.bytes.per.second": "3000000"})
    reports: list[Report] = []
    with copying(world, reports, seconds=5):
        wait_until_some_are_copied(world, topic, records=50)
        near = sent[NEAR]
        assert near > 0
        world.source.kill_broker(NEAR)
    elsewhere = sent[1] + sent[2]
    world.source.start_broker(NEAR)
    world.extra.pop("mirrorless.max.bytes.per.second")
    reports += world.copy_to_the_end()
    assert world.assert_equal(topic) == 2_000
    assert elsewhere > 0
    assert {one.error for one in reports if one.error} == set()
