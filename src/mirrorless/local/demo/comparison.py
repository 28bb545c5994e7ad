"""Reads a topic and its remote topic with plain consumers and compares every record of every partition."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.consumers import waiting
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 5_000
_SILENCE_S = 30.0


@dataclass(slots=True)
class DemoComparison:
    """The result: `records` were compared and found equal, `differences` are one line each, the first ten."""

    topic: str
    partitions: int
    records: int = 0
    value_bytes: int = 0
    difference_count: int = 0
    differences: list[str] = field(default_factory=list)

    @property
    def identical(self) -> bool:
        """Whether every record of one side is on the other, in order."""
        return self.difference_count == 0

    def differ(self, text: str) -> None:
        """Count a difference and keep its line if there is room."""
        self.difference_count += 1
        if len(self.differences) < 10:
            self.differences.append(f"{self.topic}{text}")


def compare(
    *,
    source: str,
    target: str,
    topic: str,
    remote_topic: str,
    partitions: int,
    advanced: Callable[[int], None],
) -> DemoComparison:
    """Compare key, value, headers, timestamp and order; `source` and `target` are bootstrap servers.

    The source is read committed, as the copy reads it; the target uncommitted, so that nothing stays hidden.
    """
    result = DemoComparison(topic=topic, partitions=partitions)
    with (
        _Side(source, topic, partitions, "read_committed") as left,
        _Side(target, remote_topic, partitions, "read_uncommitted") as right,
    ):
        while not (left.at_end and right.at_end):
            # The side that lags reads, so that the buffer stays small.
            (left if (left.waiting <= right.waiting and not left.at_end) or right.at_end else right).read()
            advanced(sum(_match(result, partition, left, right) for partition in range(partitions)))
        for partition in range(partitions):
            for side, other in ((left, "missing on the target"), (right, "not on the source")):
                for message in side.queues[partition]:
                    result.differ(f"-{partition}: the record at offset {message.offset()} of {side.topic} is {other}")
    return result


def _match(result: DemoComparison, partition: int, left: _Side, right: _Side) -> int:
    ours, theirs = left.queues[partition], right.queues[partition]
    count = min(len(ours), len(theirs))
    for _ in range(count):
        one, other = ours.popleft(), theirs.popleft()
        left.waiting -= 1
        right.waiting -= 1
        value = one.value()
        if (
            value == other.value()
            and one.key() == other.key()
            and one.timestamp() == other.timestamp()
            and one.headers() == other.headers()
        ):
            result.records += 1
            result.value_bytes += len(value) if value is not None else 0
        else:
            result.differ(f"-{partition}: offset {one.offset()} differs from {right.topic} offset {other.offset()}")
    return count


class _Side:
    """All partitions of one topic, read from the beginning to the end."""

    def __init__(self, servers: str, topic: str, partitions: int, isolation: str) -> None:
        self.topic = topic
        self.waiting = 0
        self.queues: list[deque[Message]] = [deque() for _ in range(partitions)]
        self._servers = servers
        self._open = set(range(partitions))
        self._heard = time.monotonic()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "mirrorless-demo",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "fetch.message.max.bytes": 4 << 20,
            }
        )
        self._consumer.assign(
            [ConfluentTopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)]
        )

    def __enter__(self) -> _Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    @property
    def at_end(self) -> bool:
        """Whether every partition was read to its end."""
        return not self._open

    def read(self) -> None:
        """Buffer the next records; raises `ClusterUnavailable` if there are none for half a minute."""
        messages = waiting(self._consumer, _CHUNK, seconds=0.5)
        now = time.monotonic()
        if messages:
            self._heard = now
        elif now - self._heard > _SILENCE_S:
            raise ClusterUnavailable(f"no records from {self.topic} for {_SILENCE_S:.0f} s", cluster=self._servers)
        for message in messages:
            error = message.error()
            partition = message.partition()
            assert partition is not None
            if error is None:
                self.queues[partition].append(message)
                self.waiting += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._open.discard(partition)
            else:
                raise KafkaException(error)
