"""Reads single records around a difference with a plain consumer; only hashes of them are kept."""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.consumers import reader, waiting
from mirrorless.errors import ClusterUnavailable
from mirrorless.verify.alignment import Print
from mirrorless.verify.selected_offsets import ALL_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

    from mirrorless.settings import Cluster
    from mirrorless.verify.selected_offsets import SelectedOffsets

_TIMEOUT_S: Final = 60.0
_A_TIME: Final = 1_000
_LOOK_S: Final = 0.5
_BUFFER_KB: Final = 8_192
_WAIT_MS: Final = 20


class Fingerprints:
    """Records of one cluster, those `selected`; `isolation` is Kafka's `isolation.level`."""

    def __init__(self, cluster: Cluster, *, isolation: str, selected: SelectedOffsets = ALL_OFFSETS) -> None:
        self._cluster = cluster
        self._selected = selected
        self.read_bytes = 0
        """Bytes of the keys and values that were yielded."""
        self._consumer = reader(
            cluster,
            isolation_level=isolation,
            client_rack="",  # an end is the leader's: a follower's may lag (KIP-392)
            auto_offset_reset="error",  # records that retention deletes meanwhile are no difference
            queued_max_messages_kbytes=_BUFFER_KB,
            fetch_wait_max_ms=_WAIT_MS,  # the records exist
        )

    def read(self, topic: str, partition: int, *, first: int, end: int) -> Iterator[Print]:
        """Yield the committed records at offsets `[first, end)`; raises `ClusterUnavailable`. One reader at a time."""
        if first >= end:
            return
        self._consumer.assign([ConfluentTopicPartition(topic, partition, first)])
        until = time.monotonic() + _TIMEOUT_S
        while True:
            for message in waiting(self._consumer, _A_TIME, seconds=_LOOK_S):
                until = time.monotonic() + _TIMEOUT_S
                error, offset = message.error(), message.offset()
                if error is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return
                    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                        continue  # nothing is committed at these offsets
                    raise ClusterUnavailable(
                        f"{topic}-{partition}: {error.str()}", cluster=self._cluster.alias
                    ) from KafkaException(error)
                assert offset is not None
                if offset >= end:
                    return
                if self._selected.has(topic, partition, offset):
                    self.read_bytes += len(message.key() or b"") + len(message.value() or b"")
                    yield fingerprint(message)
                if offset == end - 1:
                    return
            if time.monotonic() > until:
                reason = f"{topic}-{partition} could not be read: no records for {_TIMEOUT_S:.0f} s"
                raise ClusterUnavailable(reason, cluster=self._cluster.alias)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def fingerprint(message: Message) -> Print:
    """Hash a record; headers in order with repeats, null distinct from empty."""
    offset = message.offset()
    assert offset is not None
    headers = message.headers()
    return Print(
        offset, content_hash(message.key()), content_hash(message.value()), _headers(headers), message.timestamp()[1]
    )


def content_hash(content: str | bytes | None) -> bytes | None:
    """Hash a key or a value; None of null."""
    if content is None:
        return None
    return blake2b(content if isinstance(content, bytes) else content.encode(), digest_size=16).digest()


def _headers(headers: object) -> bytes | None:
    if not headers:
        return None
    return blake2b(repr(headers).encode(), digest_size=16).digest()
