"""Batches that cannot be appended as they are: rebuilt, split or coalesced, and never opened further than that."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mirrorless.cli import root
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster


def limit(cluster: EmbeddedCluster, topic: str, size: int | str, *, key: str = "max.message.bytes") -> None:
    """Set one of a topic's limits."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entry = ConfigEntry(key, str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def test_a_log_that_was_compacted(world: World) -> None:
    topic = world.topic(cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01")
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "compression.type": "lz4"})
    for number in range(60_000):
        value = None if number % 500 == 499 else b"%d" % number * 20
        client.produce(topic, key=b"%d" % (number * 7919 % 1_000 if number % 3 else number), value=value)
        if number % 5_000 == 0:
            client.flush()
    client.flush()
    until = time.monotonic() + 120
    while len(read(world.source, topic)[0]) >= 60_000:
        assert time.monotonic() < until, "the cleaner did not run"
        time.sleep(0.5)
    world.copy()
    # The cleaner may go on while both sides are read: the records that were copied are those that were there.
    assert world.assert_equal(topic) < 60_000
    fill(world.source, topic, (b"new %d" % n for n in range(100)))
    world.copy()
    assert values(read(world.target, world.remote(topic))[0])[-100:] == [b"new %d" % n for n in range(100)]


def test_append_time_becomes_the_records_own(world: World) -> None:
    topic = world.topic(message_timestamp_type="LogAppendTime")
    for codec in ("none", "zstd"):
        fill(world.source, topic, (b"%d" % n for n in range(1_000)), compression_type=codec)
    world.copy()
    ours, theirs = read(world.source, topic)[0], read(world.target, world.remote(topic))[0]
    assert [record.timestamp[1] for record in theirs] == [record.timestamp[1] for record in ours]
    assert [record._replace(timestamp=(0, 0)) for record in theirs] == [
        record._replace(timestamp=(0, 0)) for record in ours
    ]


def test_many_tiny_batches_are_coalesced(world: World) -> None:
    topic = world.topic()
    client = Producer({"bootstrap.servers": world.source.bootstrap_servers, "batch.num.messages": 1, "linger.ms": 0})
    for number in range(20_000):
        client.produce(topic, key=b"k%d" % number, value=b"%d" % number, headers=[("n", b"%d" % number)])
        if number % 1_000 == 0:
            client.poll(0)
    client.flush()
    (report,) = world.copy()
    assert world.assert_equal(topic) == 20_000
    # Had every record still a batch of its own, it would have a header of 61 bytes of its own.
    assert report.copied_bytes < 20_000 * 61


def status(world: World, *, exit_code: int) -> list[dict[str, Any]]:
    """Halted partitions by `mirrorless status`."""
    result = CliRunner().invoke(root, ["status", str(world.file), "--json"])
    assert result.exit_code == exit_code, result.output
    halted: list[dict[str, Any]] = json.loads(result.stdout)["flows"][world.flow]["halted"]
    return halted


def test_batches_larger_than_the_remote_topic_takes_are_split(world: World) -> None:
    topic = world.topic()
    world.discover()
    limit(world.target, world.remote(topic), 10_000)
    for codec in ("none", "lz4"):
        fill(world.source, topic, (b"%d" % n * 100 for n in range(1_000)), compression_type=codec, linger_ms=200)
    (report,) = world.copy()
    assert report.state == "caught up"
    assert world.assert_equal(topic) == 2_000


def test_a_single_record_that_the_remote_topic_does_not_take_stops_its_partition(world: World) -> None:
    topic, other = world.topic(), world.topic()
    world.discover()
    limit(world.target, world.remote(topic), 2_000)
    fill(world.source, topic, [b"small", b"x" * 5_000, b"behind"], linger_ms=200)
    fill(world.source, other, [b"fine"])
    reports = {report.topic: report for report in world.copy()}
    report = reports[topic]
    assert report.state == "halted"
    assert report.error is not None
    assert report.error.startswith(f"{topic}-0 at offset 1: {world.remote(topic)} refuses the batch of 5")
    assert (
        f"MESSAGE_SIZE_TOO_LARGE (10); max.message.bytes of {world.remote(topic)} is 2000; set it to 5" in report.error
    )
    assert values(read(world.target, world.remote(topic))[0]) == [b"small"]
    assert reports[other].state == "caught up"
    for _ in range(2):  # another lease meets the same, and changes nothing
        (halted,) = status(world, exit_code=1)
        assert (halted["topic"], halted["partition"], halted["offset"], halted["gap"]) == (topic, 0, 1, None)
        assert f"max.message.bytes of {world.remote(topic)} is 2000" in halted["reason"]
        assert [report.state for report in world.copy() if report.topic == topic] == ["halted"]
    limit(world.target, world.remote(topic), 1_000_000)
    world.copy()
    assert world.assert_equal(topic) == 3
    assert status(world, exit_code=0) == []


@pytest.mark.parametrize("padding", [0, 20_000], ids=["opened", "unopened"])
def test_bytes_that_rotted_are_never_appended(world: World, padding: int) -> None:
    topic, other = world.topic(), world.topic()
    for n in range(3):
        fill(world.source, topic, [b"batch %d" % n + b"." * padding])
    fill(world.source, other, [b"fine"])
    (segment,) = Path(world.source.directory).rglob(f"{topic}-0/*.log")
    content = segment.read_bytes()
    with segment.open("r+b") as file:
        file.seek(content.index(b"batch 1") + 6)
        file.write(b"7")
    reports = {report.topic: report for report in world.copy()}
    assert reports[topic].error == f"{topic}-0 at offset 1: the batch 1 to 1 does not match its checksum"
    assert reports[topic].state == "halted"
    assert [(one["topic"], one["offset"]) for one in status(world, exit_code=1)] == [(topic, 1)]
    assert values(read(world.target, world.remote(topic))[0]) == [b"batch 0" + b"." * padding]
    assert reports[other].state == "caught up"
    with segment.open("r+b") as file:
        file.write(content)
    world.copy()
    assert world.assert_equal(topic) == 3
