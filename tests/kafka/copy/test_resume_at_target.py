"""Whatever the progress says, the target knows what it holds: nothing is repeated, nothing left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from mirrorless.progress.records import Progress, SourcePartition
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCHES = 40
BATCH = 25


def write_progress(world: World, topic: str, value: bytes | None, *, partition: int = 0) -> None:
    """Write a progress record as Connect would, after a tombstone: an older one than what is there would be ignored."""
    client = Producer({"bootstrap.servers": world.target.bootstrap_servers, "partitioner": "murmur2"})
    key = SourcePartition(world.source_alias, topic, partition).progress_key()
    for one in (None, value):
        client.produce(world.progress_topic, key=key, value=one)
    client.flush()


def fill_in_batches(world: World, topic: str, what: str) -> None:
    """Many batches, so that there is something to count."""
    for batch in range(BATCHES):
        fill(world.source, topic, (b"%s %d %d" % (what.encode(), batch, n) for n in range(BATCH)), linger_ms=500)


@pytest.fixture
def copied(world: World) -> Iterator[str]:
    """A topic that was copied once, and got more records since."""
    topic = world.topic()
    fill_in_batches(world, topic, "first")
    world.copy()
    fill_in_batches(world, topic, "second")
    yield topic
    world.copy()
    assert world.assert_equal(topic) == 2 * BATCHES * BATCH


def test_progress_that_is_older_than_the_target(world: World, copied: str) -> None:
    progress = Progress(last_offset=4 * BATCH - 1, sequence=4 * BATCH, epoch=0, last_downstream=4 * BATCH - 1)
    write_progress(world, copied, progress.to_bytes())


def test_progress_that_was_never_written(world: World, copied: str) -> None:
    write_progress(world, copied, None)


def test_progress_that_is_exact(world: World, copied: str) -> None:
    """Nothing to plant."""


def test_the_copy_goes_on_behind_mirrormakers_record_in_a_new_epoch(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(50)), linger_ms=500)
    fill(world.source, topic, (b"%d" % n for n in range(50, 80)), linger_ms=500)
    world.discover()
    # What MirrorMaker 2 would have left behind: the records, and its own progress.
    fill(world.target, world.remote(topic), (b"%d" % n for n in range(50)))
    write_progress(world, topic, b'{"offset":49}')
    reports = world.copy()
    assert [report.records for report in reports] == [30]
    assert values(read(world.target, world.remote(topic))[0]) == [b"%d" % n for n in range(80)]
    assert sum(report.records for report in world.copy()) == 0


def test_mirrormaker_may_have_stopped_in_the_middle_of_a_batch(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(80)), linger_ms=500)
    world.discover()
    fill(world.target, world.remote(topic), (b"%d" % n for n in range(33)))
    write_progress(world, topic, b'{"offset":32}')
    reports = world.copy()
    assert [report.records for report in reports] == [47]
    assert values(read(world.target, world.remote(topic))[0]) == [b"%d" % n for n in range(80)]


def test_a_target_that_lost_records_stops_the_partition_and_says_so(world: World) -> None:
    topic, other = world.topic(), world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(50)))
    world.copy()
    write_progress(world, topic, json.dumps({"offset": 59, "sequence": 60, "epoch": 0, "downstream": 59}).encode())
    for name in (topic, other):
        fill(world.source, name, (b"%d" % n for n in range(100)))
    reports = {report.topic: report for report in world.copy()}
    assert reports[topic].state == "halted"
    assert reports[topic].error == (
        f"{topic}-0: the remote partition ends at 50, before the acknowledged record 59: "
        "the target lost records, or the remote topic was deleted and recreated; "
        "set mirrorless.on.gap=continue to skip the gap, or run `mirrorless offsets reset` to restart the topic"
    )
    assert reports[other].state == "caught up"
    assert world.assert_equal(other) == 100


def test_one_batch_that_rotted_on_the_target_stops_its_partition_alone(world: World) -> None:
    topic, other = world.topic(), world.topic()
    for name in (topic, other):
        for batch in range(3):
            fill(world.source, name, (b"%d %d " % (batch, n) + b"." * 100 for n in range(50)), compression_type="lz4")
    world.copy()
    (segment,) = Path(world.target.directory).rglob(f"{world.remote(topic)}-0/*.log")
    content = segment.read_bytes()
    with segment.open("r+b") as file:
        file.seek(len(content) - 60)
        file.write(bytes(byte ^ 0xFF for byte in content[-60:-20]))
    for name in (topic, other):
        write_progress(world, name, b'{"offset":49,"sequence":50,"epoch":0,"downstream":49}')
        fill(world.source, name, [b"more"] * 10)
    reports = {report.topic: report for report in world.copy()}
    assert (reports[other].state, reports[other].records) == ("caught up", 10)
    assert reports[topic].state == "halted"
    assert "cannot be read" in (reports[topic].error or "")
    with segment.open("r+b") as file:
        file.write(content)
    world.copy()
    assert world.assert_equal(topic) == 160
    assert world.assert_equal(other) == 160
