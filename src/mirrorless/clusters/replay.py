"""Reads a compacted topic of one partition: once from the beginning, then only what is new."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from mirrorless.clusters.failures import grant
from mirrorless.clusters.reading import reader
from mirrorless.clusters.topics import last_stable_offsets, partition_counts
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster

_TIMEOUT_S: Final = 60.0
_LEADERLESS_S: Final = 15.0
_A_TIME: Final = 10_000
_BUFFER_KB: Final = 16_384


class Entry(NamedTuple):
    """A record; `timestamp_ms` is -1 where it has none."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int


class Replay:
    """Partition 0 of `topic` on `cluster`, whose client is `admin`. A topic that is not there yet is an empty one.

    `restarts` counts how often the topic turned out to be another one of the same name, read from its beginning again.
    """

    def __init__(self, *, topic: str, cluster: Cluster, admin: Admin) -> None:
        self.topic = topic
        self._cluster = cluster
        self._admin = admin
        self._consumer: Consumer | None = None
        self._read_to = 0
        self.restarts = 0

    def read(self) -> Iterator[Entry]:
        """Yield what is new up to the end that the topic has now; raises `ClusterUnavailable`."""
        if self._consumer is None and self.topic not in partition_counts(self._admin.metadata()):
            return
        end = self._end()
        if end < self._read_to:
            self.restarts += 1
            self.close()
        try:
            consumer = self._consumer or self._open()
            until = time.monotonic() + _TIMEOUT_S
            while self._read_to < end:
                for message in consumer.consume(_A_TIME, timeout=0.2):
                    until = time.monotonic() + _TIMEOUT_S
                    error, offset = message.error(), message.offset() or 0
                    if error is None:
                        self._read_to = offset + 1
                        yield Entry(message.key(), message.value(), message.timestamp()[1])
                    elif error.code() == KafkaError._PARTITION_EOF:
                        self._read_to = max(self._read_to, offset)
                    elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # nothing is committed for it
                        raise KafkaException(error)
                if time.monotonic() > until:
                    reason = f"{self.topic} could not be read to its end: nothing came for {_TIMEOUT_S:.0f} s"
                    raise ClusterUnavailable(reason, cluster=self._cluster.alias)
        except KafkaException as error:
            self.close()
            reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
            raise ClusterUnavailable(f"{self.topic}: {reason}", cluster=self._cluster.alias) from error

    def close(self) -> None:
        """Close the connection; the next read begins at the beginning."""
        self._read_to = 0
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _open(self) -> Consumer:
        self._consumer = reader(self._cluster, queued_max_messages_kbytes=_BUFFER_KB)
        self._consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
        return self._consumer

    def _end(self) -> int:
        until = time.monotonic() + _LEADERLESS_S  # the topic may have been made a moment ago
        while True:
            ends, missing = last_stable_offsets(self._admin, [(self.topic, 0)])
            if not missing:
                return ends[self.topic, 0]
            if time.monotonic() > until:
                reason = f"{self.topic}-0: {missing[self.topic, 0]}"
                raise ClusterUnavailable(reason, cluster=self._cluster.alias)
