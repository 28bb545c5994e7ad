"""What is copied in a benchmark: each fills a topic of the source and says how many records a reader finds in it."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from bench.logs import stored_bytes
from tests.support.world import producer, read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster

PARTITIONS: Final = 4
MANY_PARTITIONS: Final[Mapping[str, str]] = {"segment.index.bytes": str(16 << 10)}
"""Configs for a thousand partitions of a few batches each; every engine gives them to the remote topic.

A broker sets two index files aside for each partition, as large as this says and empty. With the first batch the kernel
reads as much of both as the disk's read-ahead says; where that is 8 MiB, indexes of 1 MiB are 2 GiB of zeros, written
into memory for 200 MB that are copied. That is a cost of new topics, not of copying.
"""
_QUIET_S: Final = 5.0
_PATIENCE_S: Final = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A topic of so many partitions; `fill` writes to it and returns how many records a committed reader finds.

    `raw` says that its batches can be appended as they are by a client that knows nothing of them; `warm_rounds` how
    many copies of every engine go before those that are counted.
    """

    fill: Callable[[EmbeddedCluster, str], int]
    partitions: int = PARTITIONS
    config: Mapping[str, str] = field(default_factory=dict)
    raw: bool = True
    warm_rounds: int = 1

    def make(self, cluster: EmbeddedCluster, topic: str) -> int:
        """Create the topic and fill it."""
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic(topic, self.partitions, 1, config=dict(self.config))])[topic].result()
        return self.fill(cluster, topic)


_WORDS = [b"order", b"payment", b"customer", b"shipped", b"pending", b"amount", b"currency", b"reference", b"account"]


def _value(chance: random.Random, size: int) -> bytes:
    """Half of it words, half of it hexadecimal digits, as records in the wild are: compresses to about a half."""
    words = b" ".join(chance.choices(_WORDS, k=size // 16))
    return (words + chance.randbytes(size // 4).hex().encode()).ljust(size, b".")[:size]


def dense(
    cluster: EmbeddedCluster,
    topic: str,
    *,
    records: int,
    size: int,
    codec: str,
    batch_bytes: int,
    partitions: int = PARTITIONS,
    hot: int = 0,
    timestamp_ms: int = 0,
) -> int:
    """Round-robin over the partitions; with `hot`, so many percent of all go to the first one.

    Records have the time at which they are written, or another one.
    """
    chance = random.Random(1)  # noqa: S311
    # So many that a codec's window never sees one of them twice.
    values = [_value(chance, size) for _ in range(max(1_000, 10_000_000 // size))]
    client = producer(
        cluster,
        compression_type=codec,
        batch_size=batch_bytes,
        linger_ms=50,
        batch_num_messages=100_000,
        queue_buffering_max_messages=2_000_000,
    )
    for number in range(records):
        partition = 0 if number % 100 < hot else number % partitions
        value = values[(number + number // partitions) % len(values)]
        client.produce(topic, value=value, key=b"%d" % number, partition=partition, timestamp=timestamp_ms)
        if number % 10_000 == 0:
            client.poll(0)
    assert client.flush(600) == 0  # a million batches of one record take minutes
    return records


def _single(cluster: EmbeddedCluster, topic: str, *, records: int) -> int:
    return dense(cluster, topic, records=records, size=100, codec="none", batch_bytes=1)


def _transactional(cluster: EmbeddedCluster, topic: str, *, records: int) -> int:
    """Transactions of 100 records, every tenth of them aborted."""
    client = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic, "linger.ms": 0})
    client.init_transactions(30)
    chance, committed = random.Random(2), 0  # noqa: S311
    values = [_value(chance, 500) for _ in range(1_000)]
    for number in range(records // 100):
        client.begin_transaction()
        for record in range(100):
            client.produce(topic, value=values[(number + record) % 1_000], partition=record % PARTITIONS)
        if number % 10 == 9:
            client.flush()
            client.abort_transaction()
        else:
            client.commit_transaction()
            committed += 100
    return committed


def _compacted(cluster: EmbeddedCluster, topic: str, *, keys: int) -> int:
    """Every key once, then two thirds of them again, then a third; what the cleaner leaves of it has holes.

    Of the first pass's batches every third record is left, of the second pass's every other one.
    """
    chance = random.Random(3)  # noqa: S311
    values = [_value(chance, 500) for _ in range(1_000)]
    client = producer(
        cluster,
        compression_type="lz4",
        batch_size=64 << 10,
        linger_ms=50,
        batch_num_messages=100_000,
        queue_buffering_max_messages=2_000_000,
    )
    for remainders in ({0, 1, 2}, {1, 2}, {1}):
        for number in range(keys):
            if number // PARTITIONS % 3 in remainders:
                client.produce(topic, value=values[number % 1_000], key=b"%d" % number, partition=number % PARTITIONS)
                client.poll(0)
        assert client.flush(120) == 0
    _wait_for_the_cleaner(cluster, topic)
    # The target is to have a compacted topic, and not one that rolls every second.
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    usual = [
        ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)
        for name in _CLEANED
        if name != "cleanup.policy"
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=usual)
    admin.incremental_alter_configs([resource])[resource].result()
    return sum(map(len, read(cluster, topic).values()))


_CLEANED: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "segment.bytes": str(8 << 20),
    "min.cleanable.dirty.ratio": "0.001",
}


def _wait_for_the_cleaner(cluster: EmbeddedCluster, topic: str) -> None:
    """Wait until the logs have become smaller, and then have been quiet for some seconds."""
    client = producer(cluster)
    size = largest = stored_bytes(cluster, topic)
    began = changed = time.monotonic()
    while size > largest * 0.8 or time.monotonic() < changed + _QUIET_S:
        assert time.monotonic() < began + _PATIENCE_S, f"the cleaner leaves {size:,} of {largest:,} bytes"
        for partition in range(PARTITIONS):  # a record, so that segments roll
            client.produce(topic, key=b"roll", value=b"", partition=partition)
        client.flush()
        time.sleep(0.5)
        if abs((now := stored_bytes(cluster, topic)) - size) > 100_000:
            size, changed = now, time.monotonic()


WORKLOADS: Final[Mapping[str, Workload]] = {
    "100 B, lz4": Workload(
        fill=lambda cluster, topic: dense(
            cluster, topic, records=3_000_000, size=100, codec="lz4", batch_bytes=64 << 10
        )
    ),
    "1 KB, lz4": Workload(
        fill=lambda cluster, topic: dense(
            cluster, topic, records=600_000, size=1_000, codec="lz4", batch_bytes=256 << 10
        )
    ),
    "1 KB, uncompressed": Workload(
        fill=lambda cluster, topic: dense(
            cluster, topic, records=400_000, size=1_000, codec="none", batch_bytes=256 << 10
        ),
    ),
    "10 KB, zstd": Workload(
        fill=lambda cluster, topic: dense(
            cluster, topic, records=60_000, size=10_000, codec="zstd", batch_bytes=512 << 10
        ),
    ),
    # Appended one by one they are no limit: whoever copies them puts many into one batch.
    "one-record batches": Workload(fill=lambda cluster, topic: _single(cluster, topic, records=300_000), raw=False),
    "compacted, with holes": Workload(
        fill=lambda cluster, topic: _compacted(cluster, topic, keys=600_000), config=_CLEANED, raw=False
    ),
    "transactions": Workload(fill=lambda cluster, topic: _transactional(cluster, topic, records=300_000), raw=False),
    "1,000 partitions": Workload(
        fill=lambda cluster, topic: dense(
            cluster, topic, records=600_000, size=500, codec="lz4", batch_bytes=16 << 10, partitions=1_000
        ),
        partitions=1_000,
        config=MANY_PARTITIONS,
        # Requests with hundreds of partitions are met here only. After five copies without Spark (1.7 to 1.2 s) ours
        # took 1.65, 1.56, 1.49 and 1.28 s in turn: the target's compiler still has a tenth of its CPU.
        warm_rounds=4,
    ),
    "one hot partition of 100": Workload(
        fill=lambda cluster, topic: dense(
            cluster, topic, records=600_000, size=1_000, codec="lz4", batch_bytes=256 << 10, partitions=100, hot=90
        ),
        partitions=100,
    ),
}
