"""Offset syncs are written in order beside the copy, tried again when they fail, and survive compaction."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import InternalTopic, ensure, offset_syncs_topic
from mirrorless.copy.offset_syncs.writer import SyncWriter
from mirrorless.formats import Checkpoint, OffsetSync
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.settings import Cluster
from tests.support.offsets import commit, committed_records, downstream_of, flow_of, plant_syncs, transactions
from tests.support.world import fill, producer, read

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


def sync(upstream: int, *, topic: str = "t", block: int | None = None) -> OffsetSync:
    return OffsetSync(
        topic=topic, partition=0, last_upstream=upstream, last_downstream=upstream, run=upstream + 1, block=block
    )


def written(cluster: EmbeddedCluster, topic: str) -> list[OffsetSync]:
    found = [OffsetSync.parse(one.key, one.value) for one in read(cluster, topic)[0]]
    return [one for one in found if isinstance(one, OffsetSync)]


def test_the_topic_is_made_once_and_is_where_the_settings_say(world: World) -> None:
    for location, cluster, name in (
        ("source", world.source, f"mm2-offset-syncs.{world.target_alias}.internal"),
        ("target", world.target, f"mm2-offset-syncs.{world.source_alias}.internal"),
    ):
        topic = offset_syncs_topic(flow_of(world, **{"offset-syncs.topic.location": location}))
        assert (topic.name, topic.cluster.bootstrap_servers) == (name, cluster.bootstrap_servers)
        admin = Admin(topic.cluster)
        assert ensure(admin, topic) is None
        assert ensure(admin, topic) is None
        resource = ConfigResource(ResourceType.TOPIC, name)
        assert admin.client.describe_configs([resource])[resource].result()["cleanup.policy"].value == "compact"
        writer = SyncWriter(topic)
        writer.write([sync(1, block=0), sync(1), sync(7)])
        assert writer.flush(30), writer.error
        # One under way at a time; of two that wait with the same key the newer counts.
        assert written(cluster, name) == [sync(1, block=0), sync(7)]


def test_a_replication_factor_that_cannot_be_is_told(world: World) -> None:
    flow = flow_of(world, **{"offset-syncs.topic.replication.factor": "3"})
    topic = offset_syncs_topic(flow)
    assert "eplication" in (ensure(Admin(topic.cluster), topic) or "")


@pytest.mark.nightly
def test_a_broker_that_is_away_holds_nothing_up_and_loses_nothing(tmp_path: Path) -> None:
    with start_clusters([ClusterSpec(name="away")]) as clusters:
        cluster = clusters["away"]
        topic = InternalTopic(
            cluster=Cluster(alias="away", bootstrap_servers=cluster.bootstrap_servers),
            name="syncs",
            replication_factor=1,
        )
        admin = Admin(topic.cluster)
        assert ensure(admin, topic) is None
        writer = SyncWriter(topic)
        writer.write([sync(1)])
        assert writer.flush(30), writer.error
        cluster.kill_broker(1)
        until = time.monotonic() + 120
        upstream = 1
        while writer.failures == 0:
            upstream += 1
            began = time.monotonic()
            writer.write([sync(upstream)] + ([sync(upstream, block=upstream // 100)] if upstream % 100 == 0 else []))
            assert time.monotonic() - began < 5  # no time limit of a request: it does not wait at all
            assert time.monotonic() < until
            time.sleep(0.01)
        assert "writing an offset sync to syncs failed" in (writer.error or "")
        assert writer.unwritten <= 2 + upstream // 100
        cluster.start_broker(1)
        assert writer.flush(60), writer.error
        assert writer.error is None
        found = written(cluster, "syncs")
        assert found[-1] == sync(upstream)
        assert [one.last_upstream for one in found] == sorted(one.last_upstream for one in found)
        assert [one.block for one in found if one.block is not None] == list(range(1, upstream // 100 + 1))


def test_malformed_syncs_are_skipped_and_counted(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"1", b"2", b"3"])
    world.copy()
    flow = flow_of(world, groups=topic)
    plant_syncs(flow, {(topic, 0): [0, 1, 2]})
    write = producer(world.source)
    for key, value in [(b"x", b"y"), (sync(1).key(), b"short")]:
        write.produce(offset_syncs_topic(flow).name, key=key, value=value, partition=0)
    assert write.flush(30) == 0
    commit(world.source, topic, {(topic, 0): 2})
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert (report.malformed, report.emitted) == (2, 1)


@pytest.mark.nightly
@pytest.mark.timeout(400)
def test_a_group_ten_thousand_transactions_behind_is_exact_after_compaction(world: World) -> None:
    topic = world.topic()
    with ThreadPoolExecutor() as writers:
        list(writers.map(lambda writer: transactions(world.source, topic, 10_500 // 6, writer=writer), range(6)))
    world.write_settings(**{"emit.offset-syncs.enabled": "false"})  # they are planted, at a pace of a test's own
    world.copy()
    planted = {"emit.offset-syncs.enabled": "true", "mirrorless.sync.index.records": "1000"}
    flow = flow_of(world, groups=f"{topic}.*", **planted)
    syncs = offset_syncs_topic(flow)
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    admin.create_topics([NewTopic(syncs.name, 1, 1, config=config)])[syncs.name].result()
    records = committed_records(world.source, topic)[0]
    before = plant_syncs(flow, {(topic, 0): records}, a_batch=20, batch_ms=1000)
    # A segment is closed when the next record comes; then the cleaner takes it.
    write = producer(world.source)
    until = time.monotonic() + 120
    while len(left := read(world.source, syncs.name)[0]) > 40:
        last = OffsetSync.parse(left[-1].key, left[-1].value)
        assert isinstance(last, OffsetSync)
        write.produce(syncs.name, key=last.key(), value=last.value(), partition=0)
        assert write.flush(10) == 0
        assert time.monotonic() < until, f"{len(left)} of {before} records are left"
        time.sleep(0.3)
    assert before > 200
    offsets = [0, 1, 499, 500, 7001, 7002, records[-1] - 20_000, records[-1] + 1, records[-1] + 2]
    for offset in offsets:
        commit(world.source, f"{topic}-{offset}", {(topic, 0): offset})
    passes = Checkpoints(flow)
    report = passes.emit()
    translator = passes.translator
    passes.close()
    assert report.how["nearest"] == 0
    assert not report.unknown
    # From the nearest index sync on, not from the beginning.
    assert report.walked_records < 5 * 1000
    assert len(translator.line((topic, 0)).runs) >= 20
    for record in read(world.target, f"{world.source_alias}.checkpoints.internal")[0]:
        one = Checkpoint.parse(record.key, record.value)
        assert isinstance(one, Checkpoint)
        assert one.downstream == downstream_of(records, one.upstream)
