"""Clean copies of difficult topics are identical: what compaction, retention and time have done is no difference."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import ensure, offset_syncs_topic
from mirrorless.formats import OffsetSync
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import IDENTICAL, DifferenceKind, Method
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.offsets import transactions
from tests.support.planted import record, write
from tests.support.world import World, fill, producer, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.verify.findings import PartitionResult

KEYS = 40


def compacted(world: World) -> str:
    return world.topic(cleanup_policy="compact", segment_ms="1000", min_cleanable_dirty_ratio="0.01")


def keyed(world: World, cluster: EmbeddedCluster, topic: str, name: str, *, keys: int = KEYS, count: int = 300) -> None:
    client = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5})
    for number in range(count):
        client.produce(topic, key=b"%d" % (number % keys), value=b"%s %d" % (name.encode(), number))
    assert client.flush(30) == 0


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    place = TopicPartition(topic, 0, offset)
    admin.delete_records([place])[place].result()


class Clean:
    """One flow over all kinds of topics, copied, and then treated as time treats topics."""

    def __init__(self, world: World, spark: SparkSession) -> None:
        self.world = world
        self.transactional = world.topic(partitions=2)
        self.tiny = world.topic()
        self.stamped = world.topic(message_timestamp_type="LogAppendTime")
        self.compacted = compacted(world)
        self.headless = {name: world.topic() for name in ("source", "target", "both")}
        for partition in range(2):
            transactions(world.source, self.transactional, 12, records=3, aborted_every=4, partition=partition)
        fill(world.source, self.transactional, (b"%d" % n for n in range(100)), partitions=2)
        transactions(world.source, self.transactional, 5, records=2, aborted_every=5, partition=1)
        fill(world.source, self.tiny, (b"%d" % n for n in range(400)), batch_num_messages=1, linger_ms=0)
        write(world.source, self.stamped, map(record, range(120)))
        for topic in self.headless.values():
            write(world.source, topic, map(record, range(200)))
        keyed(world, world.source, self.compacted, "first")
        world.copy()
        # The source's cleaner runs before the second copy, the target's at some other time.
        keyed(world, world.source, self.compacted, "second", keys=KEYS // 2)
        tombstones = Producer({"bootstrap.servers": world.source.bootstrap_servers})
        tombstones.produce(self.compacted, key=b"3", value=None)
        tombstones.flush()
        self._wait_for_the_cleaner()
        world.copy()
        delete_before(world.source, self.headless["source"], 70)
        delete_before(world.target, world.remote(self.headless["target"]), 90)
        delete_before(world.source, self.headless["both"], 50)
        delete_before(world.target, world.remote(self.headless["both"]), 30)
        self.verdict, self.windows = verify_flow(
            spark, world.place().load(), ComparisonTerms(window_records=50), say=lambda _: None
        )

    def _wait_for_the_cleaner(self) -> None:
        until = time.monotonic() + 120
        while True:
            there = read(self.world.source, self.compacted)[0]
            if sum(1 for one in there if one.value and one.value.startswith(b"first")) <= KEYS:
                return
            assert time.monotonic() < until, "the cleaner did not run"
            keyed(self.world, self.world.source, self.compacted, "roll", keys=1, count=1)
            time.sleep(0.3)

    def of(self, topic: str) -> list[PartitionResult]:
        return [one for one in self.verdict.partitions if one.topic == topic]


@pytest.fixture(scope="module")
def clean(
    source: EmbeddedCluster, target: EmbeddedCluster, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Clean:
    return Clean(World(source, target, tmp_path_factory.mktemp("clean")), spark)


def test_nothing_differs_and_everything_was_compared(clean: Clean) -> None:
    assert clean.verdict.differences == ()
    assert clean.verdict.troubles == ()
    assert clean.verdict.status == IDENTICAL
    assert clean.verdict.not_copied == 0


def test_every_committed_record_of_a_transactional_topic_is_compared(clean: Clean) -> None:
    committed = read(clean.world.source, clean.transactional, isolation="read_committed")
    assert {one.partition: one.records for one in clean.of(clean.transactional)} == {
        partition: len(records) for partition, records in committed.items()
    }


def test_one_record_batches_and_append_times(clean: Clean) -> None:
    assert [one.records for one in clean.of(clean.tiny)] == [400]
    assert [one.records for one in clean.of(clean.stamped)] == [120]


def test_a_compacted_topic_is_compared_by_the_latest_value_of_each_key(clean: Clean) -> None:
    (result,) = clean.of(clean.compacted)
    assert (result.method, result.records) == (Method.LATEST, KEYS)


def test_a_head_that_retention_took_is_said_and_the_rest_is_compared(clean: Clean) -> None:
    found = {name: clean.of(topic)[0] for name, topic in clean.headless.items()}
    assert {name: (one.first_upstream, one.first_downstream, one.records) for name, one in found.items()} == {
        "source": (70, 70, 130),
        "target": (90, 90, 110),
        "both": (50, 50, 150),
    }
    assert found["source"].notes == ("retention: the source begins at 70",)
    assert found["target"].notes == ("retention: the target begins at 90",)
    assert len(found["both"].notes) == 2


def test_since_and_sample_compare_less(clean: Clean, spark: SparkSession) -> None:
    place = clean.world.place()
    begin = read(clean.world.source, clean.headless["both"])[0][100].timestamp[1]
    since, _ = verify_flow(
        spark, place.load(), ComparisonTerms(topics=(clean.headless["both"],), since_ms=begin), say=lambda _: None
    )
    assert [(one.first_upstream, one.records) for one in since.partitions] == [(150, 50)]
    sample, windows = verify_flow(
        spark,
        place.load(),
        ComparisonTerms(topics=(clean.tiny,), share=0.25, window_records=20),
        say=lambda _: None,
    )
    assert sample.status == IDENTICAL
    assert [one.records for one in sample.partitions] == [100]
    assert [one.window.first_upstream for one in windows] == [0, 80, 160, 240, 320]


def test_a_compacted_topic_that_does_differ(clean: Clean, spark: SparkSession) -> None:
    world, topic = clean.world, compacted(clean.world)
    keyed(world, world.source, topic, "value", count=KEYS)
    world.copy()
    client = producer(world.target)
    client.produce(world.remote(topic), key=b"7", value=b"other")
    client.produce(world.remote(topic), key=b"new", value=b"other")
    client.flush()
    # The copy goes on behind that, so that it is certain where the foreign records are.
    keyed(world, world.source, topic, "value", keys=1, count=1)
    world.copy()
    found, _ = verify_flow(spark, world.place().load(), ComparisonTerms(topics=(topic,)), say=lambda _: None)
    assert {(one.kind, one.upstream, one.downstream, one.fields) for one in found.differences} == {
        (DifferenceKind.CHANGED, 7, KEYS, ("value", "timestamp")),
        (DifferenceKind.EXTRA, None, KEYS + 1, ()),
    }


def test_a_compacted_topic_before_its_copy_begins_and_after(world: World, spark: SparkSession) -> None:
    topic = compacted(world)
    keyed(world, world.source, topic, "old", count=KEYS)
    world.write_settings(**{"mirrorless.start.timestamp": "2100-01-01T00:00:00Z"})
    world.discover()
    before, _ = verify_flow(spark, world.place().load(), ComparisonTerms(), say=lambda _: None)
    assert (before.status, before.differences, before.troubles) == (IDENTICAL, (), ())
    assert [(one.records, one.not_copied) for one in before.partitions] == [(0, KEYS)]
    world.copy()
    keyed(world, world.source, topic, "new", keys=5, count=5)
    world.copy()
    after, _ = verify_flow(spark, world.place().load(), ComparisonTerms(), say=lambda _: None)
    assert (after.status, after.differences, after.troubles) == (IDENTICAL, (), ())
    (result,) = after.partitions
    assert result.records == 5
    assert f"{KEYS - 5} keys whose last record is older than the copy are not compared" in result.notes


def test_retention_that_overtakes_the_comparison(world: World, spark: SparkSession) -> None:
    topic = world.topic()
    write(world.source, topic, map(record, range(300)))
    world.copy()
    steps: list[str] = []

    def say(text: str) -> None:
        if text == "records" and text not in steps:
            delete_before(world.source, topic, 110)
        steps.append(text)

    found, windows = verify_flow(spark, world.place().load(), ComparisonTerms(window_records=50), say=say)
    assert steps.count("records") == 2
    assert (found.status, found.differences, found.troubles) == (IDENTICAL, (), ())
    assert [(one.first_upstream, one.records) for one in found.partitions] == [(110, 190)]
    assert sum(one.window.records for one in windows) == 190


def test_a_topic_that_mirrormaker_2_copied_and_whose_head_is_gone(world: World, spark: SparkSession) -> None:
    topic = world.topic()
    world.discover()
    for cluster, name in ((world.source, topic), (world.target, world.remote(topic))):
        write(cluster, name, map(record, range(200)))
    flow = world.place().load()
    syncs = offset_syncs_topic(flow)
    assert ensure(Admin(flow.source), syncs) is None
    client = producer(world.source)
    for last in (0, 60):
        sync = OffsetSync(topic=topic, partition=0, last_upstream=last, last_downstream=last)
        client.produce(syncs.name, key=sync.key(), value=sync.value(), partition=0)
    assert client.flush(30) == 0
    delete_before(world.source, topic, 50)
    found, _ = verify_flow(spark, flow, ComparisonTerms(), say=lambda _: None)
    assert (found.status, found.differences, found.troubles) == (IDENTICAL, (), ())
    (result,) = found.partitions
    assert (result.first_upstream, result.first_downstream, result.records) == (60, 60, 140)
    assert result.notes == ("before upstream offset 60 it is not known how offsets correspond",)


def test_what_mirrormaker_2_copied_in_transactions_before_it_was_taken_over(world: World, spark: SparkSession) -> None:
    topic = world.topic()
    world.discover()
    write(world.source, topic, map(record, range(100)))
    client = Producer({"bootstrap.servers": world.target.bootstrap_servers, "transactional.id": f"theirs-{topic}"})
    client.init_transactions(30)
    for number, first in enumerate((0, *range(0, 100, 10))):  # of the first ten there is an attempt that failed
        client.begin_transaction()
        for one in map(record, range(first, first + 10)):
            client.produce(
                world.remote(topic), key=one.key, value=one.value, headers=one.headers, timestamp=one.timestamp_ms
            )
        client.flush()
        if number:
            client.commit_transaction()
        else:
            client.abort_transaction()
    write_progress(world, topic, b'{"offset":99}')
    write(world.source, topic, map(record, range(100, 150)))
    assert sum(report.records for report in world.copy()) == 50
    found, _ = verify_flow(spark, world.place().load(), ComparisonTerms(window_records=20), say=lambda _: None)
    assert (found.status, found.differences, found.troubles) == (IDENTICAL, (), ())
    (result,) = found.partitions
    assert (result.first_upstream, result.first_downstream, result.records) == (0, 0, 150)


def test_partitions_that_are_written_and_copied_meanwhile(world: World, spark: SparkSession) -> None:
    topic = world.topic(partitions=3)
    fill(world.source, topic, (b"%d" % n for n in range(3_000)), partitions=3)
    world.write_settings(**{"mirrorless.lease.seconds": "600"})
    world.copy()
    flow = world.place().load()  # the copy rewrites the file meanwhile
    over = threading.Event()

    def feed() -> None:
        client = producer(world.source, linger_ms=2)
        number = 0
        while not over.wait(0.01):
            for _ in range(30):
                client.produce(topic, value=b"more %d" % number, partition=number % 3)
                number += 1
            client.poll(0)
        client.flush()

    def copy() -> None:
        while not over.is_set():
            world.copy_unbounded(seconds=2)

    threads = [threading.Thread(target=work) for work in (feed, copy)]
    for thread in threads:
        thread.start()
    try:
        found = [verify_flow(spark, flow, ComparisonTerms(window_records=200), say=lambda _: None)[0] for _ in range(3)]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert [(one.status, one.differences, one.troubles) for one in found] == [(IDENTICAL, (), ())] * 3
    assert 3_000 <= found[0].records < found[-1].records
