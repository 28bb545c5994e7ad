"""The demo's topics: they differ in partitions, codec, record size, headers, null keys and tombstones."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_EVERY = 10_000
_PAYLOADS = 4_096
_TOMBSTONE_EVERY = 10

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTopic:
    """One topic: `value_bytes` is the size of every value that is not a tombstone."""

    name: str
    partitions: int
    codec: str
    records: int
    value_bytes: int
    keyed: bool = True
    headers: bool = False
    tombstones: bool = False


DEMO_TOPICS = (
    DemoTopic(name="clicks", partitions=6, codec="lz4", records=1_500_000, value_bytes=100),
    DemoTopic(name="impressions", partitions=4, codec="zstd", records=900_000, value_bytes=100, keyed=False),
    DemoTopic(name="meters", partitions=4, codec="none", records=600_000, value_bytes=100),
    DemoTopic(name="orders", partitions=3, codec="snappy", records=60_000, value_bytes=1_000, headers=True),
    DemoTopic(name="profiles", partitions=2, codec="gzip", records=60_000, value_bytes=300, tombstones=True),
    DemoTopic(
        name="documents", partitions=1, codec="lz4", records=1_000, value_bytes=10_000, keyed=False, headers=True
    ),
)


def fill(bootstrap_servers: str, topic: DemoTopic, *, advanced: Callable[[int], None]) -> None:
    """Create a topic and produce its records, in batches of the Java client's default size; `advanced` gets counts."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic.name, topic.partitions, 1)])[topic.name].result()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "allow.auto.create.topics": False,
            "compression.type": topic.codec,
            "batch.size": 16_384,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    payloads = _payloads(topic)
    first_timestamp_ms = int(time.time() * 1000) - topic.records  # one per millisecond, until now
    for number in range(topic.records):
        while True:
            try:
                producer.produce(
                    topic.name,
                    value=None if topic.tombstones and number % _TOMBSTONE_EVERY == 0 else payloads[number % _PAYLOADS],
                    key=f"{topic.name}-{number % 50_000}" if topic.keyed else None,
                    partition=number % topic.partitions,
                    timestamp=first_timestamp_ms + number,
                    headers=_headers(number) if topic.headers else [],
                )
                break
            except BufferError:
                producer.poll(0.05)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
            advanced(min(_POLL_EVERY, number))
    producer.flush()
    advanced((topic.records - 1) % _POLL_EVERY + 1)


def _payloads(topic: DemoTopic) -> list[bytes]:
    """Values with a typical compression ratio: a third random, the rest repeating."""
    source = random.Random(topic.name)  # noqa: S311 -- the same data in every run
    noise = topic.value_bytes // 3
    repeating = f'{{"topic":"{topic.name}","state":"open"}}'.encode() * (topic.value_bytes // 20 + 1)
    return [source.randbytes(noise) + repeating[noise : topic.value_bytes] for _ in range(_PAYLOADS)]


def _headers(number: int) -> Headers:
    """Headers with a repeated name, an empty value and a null value, which must all arrive in this order."""
    return [("trace", f"{number:x}"), ("trace", "again"), ("empty", b""), ("null", None), ("at", str(time.time_ns()))]
