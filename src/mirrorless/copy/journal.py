"""Writes progress records, keyed and partitioned as Kafka Connect does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from mirrorless.clusters.admin import QUIET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka import Message

    from mirrorless.copy.progress import Progress, SourcePartition


class Journal:
    """A producer for the progress topic of one flow; `error` is the latest failed write, None while all is well.

    `config` are confluent-kafka's producer settings for the target cluster.
    """

    def __init__(self, *, topic: str, config: Mapping[str, Any]) -> None:
        self.topic = topic
        self.error: str | None = None
        # murmur2 is the Java client's partitioner: a key must stay on the partition where Connect looks for it.
        self._producer = Producer({**config, "partitioner": "murmur2", "acks": "all", "linger.ms": 5, "logger": QUIET})

    def write(self, where: SourcePartition, progress: Progress) -> None:
        """Queue one progress record; a failure is kept in `error` and mended by the next write of the partition."""
        try:
            self._producer.produce(
                self.topic, key=where.progress_key(), value=progress.to_bytes(), on_delivery=self._delivered
            )
        except (BufferError, KafkaException) as error:
            self.error = f"progress was not written to {self.topic}: {error}"
        self._producer.poll(0)

    def flush(self, seconds: float) -> bool:
        """Wait until everything queued was acknowledged, at most so long; says whether it was."""
        return self._producer.flush(seconds) == 0

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self.error = None if error is None else f"progress was not written to {self.topic}: {error.str()}"
