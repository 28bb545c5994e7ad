"""The copier notes which offset went where: true pairs, runs without holes, the last record always."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from mirrorless.formats import OffsetSync
from tests.support.offsets import committed_records, transactions
from tests.support.world import World, fill


def syncs(world: World, topic: str) -> list[OffsetSync]:
    """What the source's syncs topic says of a topic's first partition, in order."""
    consumer = Consumer({"bootstrap.servers": world.source.bootstrap_servers, "group.id": "test"})
    consumer.assign([TopicPartition(f"mm2-offset-syncs.{world.target_alias}.internal", 0, OFFSET_BEGINNING)])
    found = []
    while messages := consumer.consume(1_000, timeout=2):
        for message in messages:
            sync = OffsetSync.parse(message.key(), message.value())
            assert isinstance(sync, OffsetSync)
            if (sync.topic, sync.partition) == (topic, 0):
                found.append(sync)
    consumer.close()
    return found


def assert_true(world: World, topic: str, found: list[OffsetSync]) -> None:
    """Every pair is one record on both sides, and so is everything in its run."""
    upstream = committed_records(world.source, topic)[0]
    for sync in found:
        assert upstream[sync.last_downstream] == sync.last_upstream
        run = sync.run or 1
        expected = list(range(sync.last_upstream - run + 1, sync.last_upstream + 1))
        assert upstream[sync.last_downstream - run + 1 : sync.last_downstream + 1] == expected


def test_one_run_over_batches_and_leases(world: World) -> None:
    topic = world.topic()
    for lease in range(3):
        for batch in range(5):
            fill(world.source, topic, (b"%d %d %d" % (lease, batch, n) for n in range(20)), linger_ms=200)
        world.copy()
    found = syncs(world, topic)
    assert_true(world, topic, found)
    last = found[-1]
    assert (last.last_upstream, last.last_downstream, last.run) == (299, 299, 300)


def test_markers_and_aborted_records_end_a_run(world: World) -> None:
    world.write_settings(**{"mirrorless.sync.index.records": "20"})
    topic = world.topic()
    transactions(world.source, topic, 12, records=10, aborted_every=3)
    world.copy()
    found = syncs(world, topic)
    assert_true(world, topic, found)
    assert found[-1].last_downstream == 79
    assert {sync.block for sync in found} > {None}


def test_none_are_written_where_none_are_wanted(world: World) -> None:
    world.write_settings(**{"emit.offset-syncs.enabled": "false"})
    topic = world.topic()
    fill(world.source, topic, [b"one"])
    (report,) = world.copy()
    assert (report.records, report.error) == (1, None)
