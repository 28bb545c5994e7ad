"""Earlier releases of Kafka as source and as target of the current one: everything that a flow carries, in one go."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.support.metadata import sync_configs
from tests.support.offsets import commit, committed, committed_records, downstream_of, flow_of, transactions
from tests.support.releases import CURRENT, OLD
from tests.support.world import World, fill, producer, read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.releases import Releases

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
KEYS: Final = 50
OVERWRITTEN: Final = 1_300
# A config of the source's release that the target's does not know.
UNKNOWN: Final = {
    ("2.8.2", CURRENT): {"message.format.version": "2.8-IV1"},
    ("3.9.1", CURRENT): {"message.format.version": "3.0-IV1"},
    (CURRENT, "2.8.2"): {"message.timestamp.before.max.ms": "1000000000000"},
}


def set_configs(cluster: EmbeddedCluster, topic: str, **configs: str) -> None:
    """Set configs of a topic, with `_` for `.` or not."""
    if not configs:
        return
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    admin.incremental_alter_configs([resource])[resource].result()


def grow(cluster: EmbeddedCluster, topic: str, partitions: int) -> None:
    """Add partitions to a topic, and wait until they are told of."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
    until = time.monotonic() + 60
    while len(admin.list_topics(topic, timeout=60).topics[topic].partitions) < partitions:
        assert time.monotonic() < until
        time.sleep(0.05)


def write_every_codec(world: World, topic: str, *, partitions: int) -> int:
    """Return how many records were written."""
    for codec in CODECS:
        values = (b"%s %d " % (codec.encode(), number) * 10 for number in range(300))
        fill(world.source, topic, values, partitions=partitions, compression_type=codec, linger_ms=100)
    return 300 * len(CODECS)


def overwrite(world: World, topic: str) -> None:
    """Fill more than one segment of 1 MiB; what is left of it and of the active one has room in one on the target."""
    client = producer(world.source, linger_ms=1_000)
    for number in range(OVERWRITTEN):
        value = None if number % 100 == 99 else b"%d" % number + b"." * 1_000
        client.produce(topic, key=b"%d" % (number * number % KEYS), value=value)
        if number % 10 == 9:
            client.flush()
    assert client.flush() == 0


def wait_for_the_cleaner(world: World, topic: str) -> None:
    until = time.monotonic() + 90
    while len(read(world.source, topic)[0]) >= OVERWRITTEN:
        assert time.monotonic() < until, "the cleaner did not run"
        time.sleep(0.2)


@contextmanager
def restarting(cluster: EmbeddedCluster) -> Iterator[None]:
    """Restart the broker meanwhile, in order."""

    def restart() -> None:
        time.sleep(1)  # until the lease runs
        cluster.stop_broker(1)
        cluster.start_broker(1)

    thread = Thread(target=restart)
    thread.start()
    yield
    thread.join()
    assert cluster.broker(1).process_id is not None


def own_configs(world: World, topic: str) -> dict[str, str | None]:
    """What the remote topic has of its own."""
    configs, _ = topic_configs(Admin(world.place().load().target), [world.remote(topic)])
    return {name: one.value for name, one in configs[world.remote(topic)].items() if one.origin == Origin.TOPIC}


def assert_groups_translated(world: World, topics: list[str]) -> None:
    """Commit offsets of groups all over the topics, translate and sync them, and compare with a full read."""
    truth = {topic: committed_records(world.source, topic) for topic in topics}
    ends = {topic: {at: offsets[-1] + 1 for at, offsets in truth[topic].items() if offsets} for topic in topics}
    flow = flow_of(world, groups=f"{topics[0]}-.*", **{"sync.group.offsets.enabled": "true"})
    groups = {
        f"{topics[0]}-{part}": {
            (topic, partition): end * part // 5 for topic in topics for partition, end in ends[topic].items()
        }
        for part in range(6)
    }
    for group, offsets in groups.items():
        commit(world.source, group, offsets)
    passes = Checkpoints(flow)
    report = passes.emit()
    assert (report.troubles, report.how["nearest"], report.unknown) == ([], 0, {})
    assert passes.sync_groups().troubles == []
    passes.close()
    for group, offsets in groups.items():
        assert committed(world.target, group) == {
            (world.remote(topic), partition): downstream_of(truth[topic][partition], offset)
            for (topic, partition), offset in offsets.items()
        }


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(*pair, marks=() if OLD[0] in pair else pytest.mark.nightly)
        for old in OLD
        for pair in ((old, CURRENT), (CURRENT, old))
    ],
    ids=lambda release: release,
)
def test_everything_goes_over(releases: Releases, tmp_path: Path, source: str, target: str) -> None:
    world = World(releases[source], releases[target], tmp_path)
    codecs, parted = world.topic(partitions=2, retention_ms="1000000000"), world.topic(partitions=2)
    cleaned = world.topic(cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01")
    topics = [codecs, parted, cleaned]
    overwrite(world, cleaned)
    written = write_every_codec(world, codecs, partitions=2)
    transactions(world.source, parted, 20, records=3, aborted_every=4)
    wait_for_the_cleaner(world, cleaned)
    world.copy_to_the_end()

    grow(world.source, codecs, 3)
    written += write_every_codec(world, codecs, partitions=3)
    transactions(world.source, parted, 20, records=3, aborted_every=4, partition=1)
    with restarting(world.source if source in OLD else world.target):
        world.copy_unbounded(seconds=6)
    transactions(world.source, parted, 8, records=3, aborted_every=4)
    fill(world.source, cleaned, (b"new %d" % number for number in range(20)))
    world.copy_to_the_end()
    assert world.assert_equal(codecs) == written
    assert world.assert_equal(parted) == 45 + 45 + 18
    assert KEYS // 5 < world.assert_equal(cleaned) < OVERWRITTEN
    assert_groups_translated(world, topics)

    set_configs(world.source, codecs, retention_ms="2000000000", max_message_bytes="2000000")
    unknown = UNKNOWN.get((source, target), {})
    set_configs(world.source, codecs, **unknown)
    synced = sync_configs(world.place().load())
    assert synced.went_well
    assert [note.partition(";")[0] for note in synced.notes] == [
        f"the target's brokers do not support config {name}" for name in unknown
    ]
    assert own_configs(world, codecs) == {"retention.ms": "2000000000", "max.message.bytes": "2000000"}


@pytest.mark.parametrize(("target", "refuses"), [("2.8.2", True), ("3.9.1", False), (CURRENT, False)])
def test_too_few_replicas_for_every_append_are_told_within_the_lease(
    releases: Releases, tmp_path: Path, target: str, refuses: bool
) -> None:
    """Where `min.insync.replicas` is above the number of replicas, 2.8.2 refuses, later ones append."""
    source = OLD[0] if target == CURRENT else CURRENT
    world = World(releases[source], releases[target], tmp_path)
    topic = world.topic()
    world.write_settings(**{"mirrorless.lease.seconds": "3"})
    remote = NewTopic(world.remote(topic), 1, 1, config={"min.insync.replicas": "2"})
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.create_topics([remote])[remote.topic].result()
    fill(world.source, topic, [b"1", b"2"])
    begin = time.monotonic()
    (report,) = world.copy()
    assert time.monotonic() - begin < 60
    if not refuses:
        assert (report.state, report.records) == ("caught up", 2)
        return
    assert report.state in ("resuming", "halted")
    assert (report.records, report.lag_records) == (0, 2)
    assert "NOT_ENOUGH_REPLICAS" in str(report.error)
    set_configs(world.target, world.remote(topic), min_insync_replicas="1")
    world.copy_to_the_end()
    assert world.assert_equal(topic) == 2
