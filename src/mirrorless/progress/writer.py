"""Writes progress records, keyed and partitioned as Kafka Connect does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mirrorless.clusters.producer import TopicProducer

if TYPE_CHECKING:
    from confluent_kafka import Message

    from mirrorless.progress.records import LeaveOut, SourcePartition
    from mirrorless.settings import Cluster


class ProgressWriter:
    """A producer for the progress topic of one flow, on its target cluster.

    `error` is the latest failed write, None while all is well; `failures` counts them all, whatever was written since.
    """

    def __init__(self, *, topic: str, cluster: Cluster) -> None:
        self.topic = topic
        self.error: str | None = None
        self.failures = 0
        # murmur2 is the Java client's partitioner: a key must stay on the partition where Connect looks for it.
        self._producer = TopicProducer(cluster, partitioner="murmur2", linger_ms=5)

    def write(self, key: bytes, value: bytes | None) -> None:
        """Queue a record, or a tombstone; a failure is kept in `error` and repaired by the partition's next write."""
        if reason := self._producer.send(self.topic, key=key, value=value, delivered=self._delivered):
            self._failed(self.topic, reason)
        self._producer.poll()

    def dead_letter(self, topic: str, where: SourcePartition, what: LeaveOut) -> None:
        """Queue the coordinates of a skipped record, with the headers of Connect's dead letter queue (KIP-298)."""
        headers: list[tuple[str, str | bytes | None]] = [
            (f"__connect.errors.{name}", value.encode())
            for name, value in {
                "topic": where.topic,
                "partition": str(where.partition),
                "offset": str(what.offset),
                "connector.name": where.connector,
                "stage": "TASK_PUT",
                "exception.message": what.reason,
            }.items()
        ]
        coordinates = {
            "cluster": where.cluster,
            "topic": where.topic,
            "partition": where.partition,
            "offset": what.offset,
            "next_offset": what.next_offset,
            "size_bytes": what.size_bytes,
            "reason": what.reason,
        }
        value = json.dumps(coordinates, ensure_ascii=False).encode()
        if reason := self._producer.send(topic, value=value, headers=headers, delivered=self._delivered):
            self._failed(topic, reason)

    def poll(self) -> None:
        """Process acknowledgements of records that were queued before."""
        self._producer.poll()

    def flush(self, seconds: float) -> bool:
        """Wait until everything queued was acknowledged, at most so long; returns whether it was."""
        return self._producer.flush(seconds) == 0

    def _delivered(self, reason: str | None, message: Message) -> None:
        if reason is None:
            self.error = None
        else:
            self._failed(str(message.topic()), reason)

    def _failed(self, topic: str, reason: str) -> None:
        self.failures += 1
        self.error = f"cluster {self._producer.alias}: writing to {topic} failed: {reason}"
