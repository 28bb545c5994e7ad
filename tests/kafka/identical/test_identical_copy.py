"""The same record at the same offset on both sides, and nothing else, whatever the source's log has."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, NewPartitions

from mirrorless.copy.resume.reset import Resetter
from mirrorless.protocol.cluster_client import EARLIEST
from tests.kafka.copy.test_cleaned_in_between import wait_for_the_cleaner, write
from tests.kafka.copy.test_transactions import transactional
from tests.support.identical import At, append_filler, assert_identical, delete_before, ends, records_at
from tests.support.world import World, delete, fill


def identical(world: World, partitions: int = 1, **config: str) -> str:
    topic = world.topic(partitions, **config)
    world.write_settings(**{"mirrorless.offsets": "identical"})
    return topic


def transactions(world: World, topic: str, rounds: int = 4) -> None:
    good = transactional(world.source, f"good-{topic}")
    bad = transactional(world.source, f"bad-{topic}")
    for round_ in range(rounds):
        good.begin_transaction()
        bad.begin_transaction()
        for number in range(5):
            good.produce(topic, value=b"good %d %d" % (round_, number))
            bad.produce(topic, value=b"bad %d %d" % (round_, number))
            good.flush()
            bad.flush()
        good.commit_transaction()
        bad.abort_transaction()
        fill(world.source, topic, [b"plain %d" % round_])


def test_markers_and_aborted_records_are_holes(world: World) -> None:
    topic = identical(world)
    transactions(world, topic)
    (report,) = world.copy()
    assert (report.state, report.records, report.foreign) == ("caught up", 24, 0)
    assert assert_identical(world, topic) == 24
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)
    transactions(world, topic, rounds=2)
    (report,) = world.copy()
    assert (report.state, report.records, report.error) == ("caught up", 12, None)
    assert assert_identical(world, topic) == 36
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)


def test_a_source_that_begins_later(world: World) -> None:
    topic = identical(world)
    append_filler(world.source, topic, 2_999_500)
    fill(world.source, topic, [b"%d" % number for number in range(1_000)])
    delete_before(world.source, topic, 3_000_000)
    transactions(world, topic, rounds=1)
    (report,) = world.copy()
    assert (report.state, report.records) == ("caught up", 500 + 6)
    assert assert_identical(world, topic) == 500 + 6
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)
    assert ends(world.source, topic)[0] == 3_000_000


def test_a_compacted_log_that_grows_in_partitions(world: World) -> None:
    topic = identical(
        world, cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01", segment_ms="1000"
    )
    write(world, topic, "first", 300)
    write(world, topic, "second", 300)
    wait_for_the_cleaner(world, topic)
    reports = world.copy()
    assert [(report.state, report.error) for report in reports] == [("caught up", None)]
    # The target's cleaner may remove more meanwhile, but moves nothing.
    theirs = {at.offset: at for at in records_at(world.target, world.remote(topic))[0]}
    ours = {at.offset: at for at in records_at(world.source, topic)[0]}
    assert theirs.keys() >= latest(ours)
    assert all(ours[offset] == theirs[offset] for offset in ours.keys() & theirs.keys())
    assert ends(world.target, world.remote(topic))[1] == ends(world.source, topic)[1]
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    fill(world.source, topic, [b"%d" % number for number in range(30)], partitions=3)
    reports = world.copy_to_the_end()
    assert not any(report.error for report in reports)
    remote = records_at(world.target, world.remote(topic))
    source = records_at(world.source, topic)
    assert [remote[number] for number in (1, 2)] == [source[number] for number in (1, 2)]
    assert remote[0][-1] == source[0][-1]


def latest(records: dict[int, At]) -> set[int]:
    """Offsets of the last record of each key."""
    return set({record.key: offset for offset, record in records.items()}.values())


def test_retention_removes_the_head(world: World) -> None:
    topic = identical(world)
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    world.copy()
    fill(world.source, topic, [b"%d" % number for number in range(5_000)])
    delete_before(world.source, topic, 3_000)
    (report,) = world.copy()
    assert report.state == "halted"
    assert "the source begins at 3000, 2900 offsets were deleted before they were copied" in (report.error or "")
    world.write_settings(**{"mirrorless.on.gap": "continue", "mirrorless.offsets.holes.max": "100"})
    (report,) = world.copy()
    assert (report.state, report.records) == ("halted", 0)
    assert "no records from offset 100 to 3000, 2900 offsets, more than mirrorless.offsets.holes.max (100)" in (
        report.error or ""
    )
    world.write_settings(**{"mirrorless.offsets.holes.max": "1000000"})
    (report,) = world.copy()
    assert (report.state, report.records) == ("caught up", 2_100)
    theirs = records_at(world.target, world.remote(topic))[0]
    assert [at.offset for at in theirs] == [*range(100), *range(3_000, 5_100)]
    assert theirs[100:] == records_at(world.source, topic)[0]


def test_a_dense_copy_is_refused_until_it_is_reset_into_an_empty_topic(world: World) -> None:
    topic = world.topic()
    transactions(world, topic, rounds=2)
    world.copy()
    fill(world.source, topic, [b"more"])
    world.write_settings(**{"mirrorless.offsets": "identical"})
    (report,) = world.copy()
    assert (report.state, report.records) == ("halted", 0)
    assert "delete it, then run `mirrorless offsets reset`" in (report.error or "")
    delete(world.target, world.remote(topic))
    delete_before(world.source, topic, 7)
    world.discover()
    resetter = Resetter(world.place().load())
    try:
        resetter.apply(resetter.plan(topic, EARLIEST))
    finally:
        resetter.close()
    (report,) = world.copy()
    assert (report.state, report.error) == ("caught up", None)
    assert assert_identical(world, topic) > 0
    assert ends(world.target, world.remote(topic)) == ends(world.source, topic)
