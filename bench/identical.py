"""What identical offsets cost: filling up to an offset, a million holes, and many small transactions.

python -m bench.identical [--offsets 30000000] [--holes 1000000] [--transactions 2000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.brokers import source_and_target
from mirrorless.batches.filler import FILLER_RECORDS, filler
from mirrorless.protocol.markers import MARKERS_AT_ONCE, delete_records, write_markers
from tests.support.identical import on_broker
from tests.support.world import World

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.protocol.cluster_client import ClusterClient

_AT_ONCE: Final = 5
_MB: Final = 1e6
_RECORDS: Final = 10


def create(cluster: EmbeddedCluster, name: str) -> str:
    """Create a topic with one partition."""
    topic = f"{name}-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    while topic not in admin.list_topics(timeout=60).topics:
        time.sleep(0.05)
    return topic


def size_bytes(cluster: EmbeddedCluster, topic: str) -> int:
    """Bytes of the segments of partition 0."""
    return sum(file.stat().st_size for file in cluster.directory.rglob(f"{topic}-0/*.log"))


def memory_mb(cluster: EmbeddedCluster) -> float:
    """Resident memory of the broker."""
    (broker,) = cluster.brokers
    assert broker.process_id is not None
    return float(psutil.Process(broker.process_id).memory_info().rss / _MB)


def measure_filling(cluster: EmbeddedCluster, offsets: int) -> None:
    """Fill a partition and delete the filler."""
    topic = create(cluster, "filled")
    place, end = (topic, 0), offsets - offsets % (FILLER_RECORDS * _AT_ONCE)

    async def fill(client: ClusterClient, node: int) -> None:
        for at in range(0, end, FILLER_RECORDS * _AT_ONCE):
            batches = [
                filler(FILLER_RECORDS, producer_id=1 << 61, base_sequence=at + number * FILLER_RECORDS)
                for number in range(_AT_ONCE)
            ]
            answers = await client.in_order(
                node, *(client.append(node, [(place, batch)], timeout_ms=30_000) for batch in batches)
            )
            assert [one.base_offset for (one,) in answers] == [at + n * FILLER_RECORDS for n in range(_AT_ONCE)]
        assert await delete_records(client, node, {place: end}) == {place: 0}

    took = on_broker(cluster, topic, fill)
    rate = end / took
    print(f"filling: {end:,} offsets in {took:.2f} s, {rate / 1e6:.2f} million/s, {size_bytes(cluster, topic):,} bytes")


def measure_holes(cluster: EmbeddedCluster, holes: int) -> None:
    """Write so many markers, a thousand a request."""
    topic = create(cluster, "holes")
    place = (topic, 0)

    async def write(client: ClusterClient, node: int) -> None:
        for _ in range(holes // MARKERS_AT_ONCE):
            assert await write_markers(client, node, place, producer=77, epoch=0, count=MARKERS_AT_ONCE) == 0
        assert (await client.log_ends(node, [place]))[place].offset == holes

    before = memory_mb(cluster)
    took = on_broker(cluster, topic, write)
    size = size_bytes(cluster, topic)
    print(
        f"holes: {holes:,} in {took:.1f} s, {holes / took:,.0f}/s, {size:,} bytes, {size / holes:.0f} each; "
        f"memory of the broker {before:.0f} MB before, {memory_mb(cluster):.0f} MB after"
    )


def transactional(cluster: EmbeddedCluster, transactions: int) -> str:
    """Fill a topic with transactions of ten records."""
    topic = create(cluster, "transactions")
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(60)
    for number in range(transactions):
        producer.begin_transaction()
        for _ in range(_RECORDS):
            producer.produce(topic, value=b"%d " % number + b"x" * 100, partition=0)
        producer.commit_transaction(60)
    return topic


def measure_transactions(clusters: dict[str, EmbeddedCluster], transactions: int) -> None:
    """Copy the same transactions with dense and with identical offsets."""
    topic = transactional(clusters["source"], transactions)
    for offsets in ("dense", "identical"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            world = World(clusters["source"], clusters["target"], Path(folder), topics=[topic])
            world.write_settings(**{"mirrorless.offsets": offsets})
            world.discover()
            (report,) = world.copy()
            assert (report.state, report.records) == ("caught up", transactions * _RECORDS)
            assert report.began_ms is not None
            assert report.ended_ms is not None
            took = (report.ended_ms - report.began_ms) / 1000
            print(
                f"transactions, {offsets}: {transactions:,} of {_RECORDS} records in {took:.2f} s, "
                f"{transactions / took:,.0f}/s"
            )


def main() -> None:
    """Measure and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--offsets", type=int, default=30_000_000)
    parser.add_argument("--holes", type=int, default=1_000_000)
    parser.add_argument("--transactions", type=int, default=2_000)
    given = parser.parse_args()
    with source_and_target() as clusters:
        for _ in range(2):  # the first one warms
            measure_filling(clusters["target"], given.offsets)
        measure_holes(clusters["target"], given.holes)
        measure_transactions(clusters, given.transactions)


if __name__ == "__main__":
    main()
