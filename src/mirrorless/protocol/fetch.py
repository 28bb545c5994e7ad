"""The Fetch request, and its answer where nothing in it is unusual: one tuple for each partition.

The library reads answers with a log that diverges or another leader, and copies their records.

Source of the layouts: `FetchRequest.json` and `FetchResponse.json` of Kafka 4.3, versions 12 and 13, which differ in
how they name topics; before that, the library writes and reads both.
"""

from __future__ import annotations

import struct
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.records import unsigned_varint
from mirrorless.kafka_python.messages import FetchRequest, FetchResponse
from mirrorless.kafka_python.raw_messages import NO_TAGS, RawRequest, RawResponse, count
from mirrorless.protocol.fast_codec import by_topic, topic_at

if TYPE_CHECKING:
    from uuid import UUID

    from mirrorless.kafka_python.raw_messages import Frame
    from mirrorless.protocol.fetch_session import Asked, Position

_BY_ID_SINCE = 13
_CONSUMER = -1
_MIN_BYTES = 1
_ANY_LEADER_EPOCH = _NO_LOG_START = -1
_NO_REPLICA = -1
_LIMITS = struct.Struct(">iiiibii")
"""Of a request: replica id, longest wait, least and most bytes, isolation, session's id and epoch."""
_POSITION = struct.Struct(">iiqiqiB")
"""Of a request: partition, its leader's epoch, offset, epoch of the record before, log start, most bytes, no tags."""
_SESSION = struct.Struct(">ihi")
"""Of an answer: throttle time, error code, session's id."""
_PARTITION = struct.Struct(">ihqqqBi")
"""Of an answer: index, error code, high watermark, last stable offset, log start, aborted transactions, replica."""
_NO_ABORTED = 1
"""As a compact length: 0 is null, 1 none."""
_REPLICA = struct.Struct(">i")
_ABORTED_AT = _PARTITION.size - _REPLICA.size - 1
_ABORTED = struct.Struct(">qqB")
"""Of an aborted transaction: producer id, first offset, no tags."""


class PartitionAnswer(NamedTuple):
    """One partition of an answer; the records are a view of the answer.

    `aborted` are pairs of producer id and first offset, `replica` is as in `Fetched`.
    """

    partition: int
    error_code: int
    last_stable_offset: int
    records: memoryview | bytes
    high_watermark: int
    aborted: list[tuple[int, int]]
    replica: int = _NO_REPLICA


class Fetches(NamedTuple):
    """An answer, with the partitions of each topic, by name or id."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    topics: list[tuple[str | UUID, list[PartitionAnswer]]]


class Fetch(RawRequest, FetchRequest, init=False):
    """A fetch of what is asked; with ids of all topics they are named by id where the broker can do that (KIP-516).

    A topic is named again wherever another one is in between: leaders serve in the order of the request. From a leader
    that knows `rack`, the answer may name a replica to read instead (KIP-392, from version 11 on). Of a broker before
    Kafka 2.7 the library encodes the request.
    """

    RAW_SINCE = 12

    def __init__(
        self,
        asked: Asked,
        *,
        isolation: int,
        max_wait_ms: int,
        max_bytes: int,
        partition_max_bytes: int,
        rack: str = "",
    ) -> None:
        super().__init__(max_version=_BY_ID_SINCE - 1 if asked.ids is None else _BY_ID_SINCE)
        self._asked = asked
        self._partition_max_bytes = partition_max_bytes
        self.replica_id, self.min_bytes = _CONSUMER, _MIN_BYTES
        self.max_wait_ms, self.max_bytes, self.isolation_level = max_wait_ms, max_bytes, isolation
        self.session_id, self.session_epoch = asked.session_id, asked.epoch
        self.rack_id = rack

    def raw_response(self, version: int) -> RawResponse:
        """Return what decodes a response of this version."""
        return _response(version)

    def encode_raw(self) -> bytes:
        """Encode the whole request."""
        asked = self._asked
        most = self._partition_max_bytes
        topics = [
            (
                topic,
                [
                    _POSITION.pack(index, _ANY_LEADER_EPOCH, offset, epoch, _NO_LOG_START, most, 0)
                    for (_, index), offset, epoch in positions
                ],
            )
            for topic, positions in groupby(asked.positions, key=_topic_of)
        ]
        forgotten = by_topic(asked.forgotten)
        pieces = [
            self.header.to_bytes(),
            _LIMITS.pack(
                self.replica_id,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
                self.isolation_level,
                self.session_id,
                self.session_epoch,
            ),
            unsigned_varint(len(topics) + 1),
        ]
        for topic, positions in topics:
            pieces += self._topic(topic), unsigned_varint(len(positions) + 1), *positions, NO_TAGS
        pieces.append(unsigned_varint(len(forgotten) + 1))
        for topic, indexes in forgotten.items():
            pieces += (
                self._topic(topic),
                unsigned_varint(len(indexes) + 1),
                struct.pack(f">{len(indexes)}i", *indexes),
                NO_TAGS,
            )
        pieces += _compact(self.rack_id), NO_TAGS
        request = b"".join(pieces)
        return struct.pack(">i", len(request)) + request

    def _topic(self, topic: str) -> bytes:
        if self.API_VERSION >= _BY_ID_SINCE:
            assert self._asked.ids is not None
            return self._asked.ids[topic].bytes
        return _compact(topic)

    def fill(self) -> None:
        """Set the fields that the library encodes."""
        self.topics = [
            FetchRequest.FetchTopic(
                topic=topic,
                partitions=[
                    FetchRequest.FetchTopic.FetchPartition(
                        partition=index,
                        current_leader_epoch=_ANY_LEADER_EPOCH,
                        fetch_offset=offset,
                        last_fetched_epoch=epoch,
                        log_start_offset=_NO_LOG_START,
                        partition_max_bytes=self._partition_max_bytes,
                    )
                    for (_, index), offset, epoch in positions
                ],
            )
            for topic, positions in groupby(self._asked.positions, key=_topic_of)
        ]
        self.forgotten_topics_data = [
            FetchRequest.ForgottenTopic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(self._asked.forgotten).items()
        ]


def _compact(text: str) -> bytes:
    encoded = text.encode()
    return unsigned_varint(len(encoded) + 1) + encoded


def _topic_of(position: Position) -> str:
    return position[0][0]


@cache
def _response(version: int) -> RawResponse:
    return RawResponse(FetchResponse[version], partial(fetches, by_id=version >= _BY_ID_SINCE))


def fetches(answer: Frame, at: int, *, by_id: bool) -> Fetches | None:
    """Read an answer from byte `at` on; None where a partition has more to say than its records.

    Raises `IndexError`, `ValueError` or `struct.error` for what is none.
    """
    frame = memoryview(answer)
    throttle_ms, code, session_id = _SESSION.unpack_from(frame, at)
    many, at = count(frame, at + _SESSION.size)
    topics: list[tuple[str | UUID, list[PartitionAnswer]]] = []
    for _ in range(many):
        topic, at = topic_at(frame, at, by_id=by_id)
        parts: list[PartitionAnswer] = []
        partitions, at = count(frame, at)
        for _ in range(partitions):
            index, error, high, stable, _, transactions, replica = _PARTITION.unpack_from(frame, at)
            if transactions > _NO_ABORTED:
                aborted, at = _aborted(frame, at + _ABORTED_AT)
                if aborted is None:
                    return None
                (replica,) = _REPLICA.unpack_from(frame, at)
                at += _REPLICA.size
            else:
                aborted, at = [], at + _PARTITION.size
            size, at = count(frame, at)
            end = at + max(size, 0)
            if frame[end]:
                return None  # tags: the log diverges, or another leader is named
            parts.append(
                PartitionAnswer(index, error, stable, frame[at:end] if size > 0 else b"", high, aborted, replica)
            )
            at = end + 1
        topics.append((topic, parts))
        if frame[at]:
            return None
        at += 1
    return None if frame[at] else Fetches(throttle_ms, code, session_id, topics)


def _aborted(frame: memoryview, at: int) -> tuple[list[tuple[int, int]] | None, int]:
    """Read the aborted transactions of a partition, None if one has tags, and say where what follows begins."""
    many, at = count(frame, at)
    found: list[tuple[int, int]] = []
    for _ in range(many):
        producer, first, tags = _ABORTED.unpack_from(frame, at)
        if tags:
            return None, at
        found.append((producer, first))
        at += _ABORTED.size
    return found, at
