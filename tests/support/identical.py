"""What the tests of identical offsets compare: every offset of both logs, with ordinary consumers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.batches.filler import FILLER_RECORDS, filler
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


class At(NamedTuple):
    """A record at its offset."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: list[tuple[str, bytes | None]] | None


def records_at(cluster: EmbeddedCluster, topic: str, *, isolation: str = "read_committed") -> dict[int, list[At]]:
    """Every record that a consumer from the beginning sees, by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "identical",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    try:
        partitions = sorted(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
        found: dict[int, list[At]] = {partition: [] for partition in partitions}
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        missing = set(partitions)
        until = time.monotonic() + 120
        while missing:
            assert time.monotonic() < until, f"{topic} could not be read to its end, partitions {sorted(missing)}"
            for message in consumer.consume(10_000, timeout=0.1):
                error, partition, offset = message.error(), message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                if error is None:
                    headers = message.headers()
                    found[partition].append(
                        At(offset, message.key(), message.value(), message.timestamp(), headers and list(headers))  # type: ignore[arg-type]
                    )
                elif error.code() == KafkaError._PARTITION_EOF:
                    missing.discard(partition)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found


def assert_identical(world: World, topic: str, *, remote: str | None = None) -> int:
    """Compare both sides offset by offset, also for readers of what is not committed; returns how many records."""
    remote = remote or world.remote(topic)
    ours = records_at(world.source, topic)
    for isolation in ("read_committed", "read_uncommitted"):
        theirs = records_at(world.target, remote, isolation=isolation)
        for partition, records in ours.items():
            assert theirs[partition] == records
    return sum(map(len, ours.values()))


def ends(cluster: EmbeddedCluster, topic: str, partition: int = 0) -> tuple[int, int]:
    """First and next offset of a partition."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "ends"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=60)
        return low, high
    finally:
        consumer.close()


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int, partition: int = 0) -> None:
    """Delete the records of a partition before an offset."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    place = TopicPartition(topic, partition, offset)
    admin.delete_records([place])[place].result()


def on_broker(
    cluster: EmbeddedCluster, topic: str, work: Callable[[ClusterClient, int], Coroutine[Any, Any, None]]
) -> float:
    """Run some requests against the leader of partition 0; returns the seconds they took."""
    took = 0.0

    async def run() -> None:
        nonlocal took
        await client.connect(timeout_ms=20_000, topics=[topic])
        node = client.leader((topic, 0))
        assert node is not None
        began = time.perf_counter()
        await work(client, node)
        took = time.perf_counter() - began

    net = EventLoop()
    config = for_kafka_python(Cluster(alias="x", bootstrap_servers=cluster.bootstrap_servers), role="producer")
    client = ClusterClient(net, cluster="x", config=config)
    try:
        net.run(run)
    finally:
        client.close()
        net.close()
    return took


def append_filler(cluster: EmbeddedCluster, topic: str, offsets: int) -> None:
    """Append so many records without key and value to partition 0, as fast as a broker takes them."""

    async def append(client: ClusterClient, node: int) -> None:
        at = 0
        while at < offsets:
            count = min(FILLER_RECORDS, offsets - at)
            batch = filler(count, producer_id=1 << 60, base_sequence=at)
            (answer,) = await client.append(node, [((topic, 0), batch)], timeout_ms=30_000)
            assert (answer.error_code, answer.base_offset) == (0, at)
            at += count

    on_broker(cluster, topic, append)
