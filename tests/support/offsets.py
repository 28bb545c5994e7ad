"""Offsets on both sides of a flow, and offset syncs as the copier writes them."""

from __future__ import annotations

import time
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Committed, GroupOffsets
from mirrorless.clusters.internal_topics import ensure, offset_syncs_topic
from mirrorless.copy.offset_syncs.schedule import AppendedBatch, SyncSchedule
from mirrorless.copy.offset_syncs.writer import SyncWriter
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.settings import Flow
    from tests.support.world import World


def flow_of(world: World, **extra: str) -> Flow:
    """The flow of a world, with these settings."""
    world.write_settings(**extra)
    return world.place().load()


def committed_records(cluster: EmbeddedCluster, topic: str) -> dict[int, list[int]]:
    """Offsets of all committed records by partition, read in full by an ordinary consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "full-read",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        found: dict[int, list[int]] = {
            partition: [] for partition in consumer.list_topics(topic, timeout=60).topics[topic].partitions
        }
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in found])
        left = set(found)
        until = time.monotonic() + 120
        while left:
            assert time.monotonic() < until
            for message in consumer.consume(10_000, timeout=0.1):
                error, partition, offset = message.error(), message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if error is None:
                    found[partition].append(offset)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(partition)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found


def plant_syncs(
    flow: Flow, records: Mapping[tuple[str, int], list[int]], *, a_batch: int = 50, batch_ms: int = 100
) -> int:
    """Write the syncs that a copier writes which copied these source offsets to the target's offsets 0, 1, 2, ...

    A batch takes `batch_ms` of the copier's time. Returns how many syncs were written.
    """
    topic = offset_syncs_topic(flow)
    assert ensure(Admin(topic.cluster), topic) is None
    writer = SyncWriter(topic)
    for (name, partition), offsets in records.items():
        schedule = SyncSchedule(
            topic=name,
            partition=partition,
            lag_max=flow.offset_lag_max,
            index_records=flow.sync_index_records,
        )
        time_ms = 0
        for at in range(0, len(offsets), a_batch):
            time_ms += batch_ms
            for first, batch in _dense_parts(at, offsets[at : at + a_batch]):
                append = AppendedBatch(
                    first_upstream=batch[0],
                    last_upstream=batch[-1],
                    first_downstream=first,
                    record_count=len(batch),
                    dense=True,
                )
                writer.write(schedule.appended(append, time_ms=time_ms))
                # What waits is kept by key: let every one be written, as a copier that takes its time does.
                assert writer.flush(30), writer.error
        writer.write(schedule.rest(time_ms=time_ms))
    assert writer.flush(30), writer.error
    return writer.written


def _dense_parts(first: int, offsets: list[int]) -> Iterable[tuple[int, list[int]]]:
    cuts = [0, *(at + 1 for at, (left, right) in enumerate(pairwise(offsets)) if right != left + 1), len(offsets)]
    return [(first + begin, offsets[begin:end]) for begin, end in pairwise(cuts) if end > begin]


def downstream_of(records: list[int], offset: int) -> int:
    """The truth: how many records stand before upstream `offset`, which is where the group goes on."""
    return bisect_left(records, offset)


def commit(cluster: EmbeddedCluster, group: str, offsets: Mapping[tuple[str, int], int], *, metadata: str = "") -> None:
    """Commit offsets of a group that has no members; its coordinator may still be loading."""
    client = GroupOffsets(Cluster(alias="any", bootstrap_servers=cluster.bootstrap_servers))
    wanted = {group: {place: Committed(offset, metadata) for place, offset in offsets.items()}}
    until = time.monotonic() + 120
    while (outcome := client.commit(wanted)[group]) != dict.fromkeys(offsets):
        assert time.monotonic() < until, outcome
        time.sleep(0.2)
    client.close()


def committed(cluster: EmbeddedCluster, group: str) -> dict[tuple[str, int], int]:
    """What a group has committed; its coordinator may still be loading."""
    client = GroupOffsets(Cluster(alias="any", bootstrap_servers=cluster.bootstrap_servers))
    until = time.monotonic() + 120
    while True:
        ((_, found),) = client.committed([group])
        if not isinstance(found, str):
            break
        assert time.monotonic() < until, found
        time.sleep(0.2)
    client.close()
    return {place: one.offset for place, one in found.items()}


def transactions(
    cluster: EmbeddedCluster,
    topic: str,
    count: int,
    *,
    records: int = 1,
    aborted_every: int = 0,
    partition: int = 0,
    writer: int = 0,
) -> None:
    """Write `count` transactions of so many records each, of which every n-th is aborted.

    Writers of other numbers may do so at the same time.
    """
    client = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": f"{topic}-{partition}-{writer}",
            "linger.ms": 0,
        }
    )
    client.init_transactions(30)
    for number in range(count):
        client.begin_transaction()
        for record in range(records):
            client.produce(topic, value=b"%d %d" % (number, record), partition=partition)
        if aborted_every and number % aborted_every == aborted_every - 1:
            client.flush()
            client.abort_transaction()
        else:
            client.commit_transaction()
