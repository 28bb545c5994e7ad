"""Writes progress records, keyed and partitioned as Kafka Connect does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters.connection_errors import unwritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from mirrorless.copy.progress.records import LeaveOut, SourcePartition


class ProgressWriter:
    """A producer for the progress topic of one flow.

    `error` is the latest failed write, None while all is well; `failures` counts them all, whatever was written since.
    `config` are confluent-kafka's producer settings for the target cluster.
    """

    def __init__(self, *, topic: str, config: Mapping[str, Any]) -> None:
        self.topic = topic
        self.error: str | None = None
        self.failures = 0
        # murmur2 is the Java client's partitioner: a key must stay on the partition where Connect looks for it.
        self._producer = Producer(
            {**config, "partitioner": "murmur2", "acks": "all", "linger.ms": 5, "logger": LIBRDKAFKA}
        )

    def write(self, key: bytes, value: bytes | None) -> None:
        """Queue a record, or a tombstone; a failure is kept in `error` and mended by the partition's next write."""
        try:
            self._producer.produce(self.topic, key=key, value=value, on_delivery=self._delivered)
        except (BufferError, KafkaException) as error:
            self.failures += 1
            self.error = f"progress was not written to {self.topic}: {_reason(error)}"
        self._producer.poll(0)

    def dead_letter(self, topic: str, where: SourcePartition, what: LeaveOut) -> None:
        """Queue the coordinates of what is left out, with the headers of Connect's dead letter queue (KIP-298)."""
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
        try:
            self._producer.produce(topic, value=value, headers=headers, on_delivery=self._delivered)
        except (BufferError, KafkaException) as error:
            self.failures += 1
            self.error = f"{topic} was not written to: {_reason(error)}"

    def poll(self) -> None:
        """Hear what became of records that were queued before."""
        self._producer.poll(0)

    def flush(self, seconds: float) -> bool:
        """Wait until everything queued was acknowledged, at most so long; says whether it was."""
        return self._producer.flush(seconds) == 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self.failures += error is not None
        self.error = None if error is None else f"{message.topic()} was not written to: {unwritten(error)}"


def _reason(error: BufferError | KafkaException) -> str:
    return unwritten(error.args[0]) if isinstance(error, KafkaException) else str(error)
