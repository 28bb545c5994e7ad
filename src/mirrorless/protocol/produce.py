"""The Produce request, written around its batches: in pieces, of which the large ones are the batches' own bytes.

The library would put the batches into one buffer and take that apart again. Its answer is read here where it says that
all went well, which a leader of busy partitions says thousands of times a second. Source of the layouts:
`ProduceRequest.json` and `ProduceResponse.json` of Kafka 4.3, versions 9 to 13, which differ in how they name topics;
before that, the library writes and reads both.
"""

from __future__ import annotations

import struct
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.records import unsigned_varint
from mirrorless.kafka_python.messages import ProduceRequest, ProduceResponse
from mirrorless.kafka_python.raw_messages import NO_TAGS, RawRequest, RawResponse, count
from mirrorless.kafka_python.transport import Chunks
from mirrorless.protocol.fast_codec import topic_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped

_ACKS_ALL = -1
_BY_ID_SINCE = 13
_NO_TRANSACTION = b"\0"
_OWN_PIECE_BYTES = 4_096
"""The body of a batch of so many bytes is a piece of its own; copying a smaller one costs less than a piece does."""
_INDEX = struct.Struct(">i")
_PARTITION = struct.Struct(">ihqqqBBB")
"""Of an answer: index, error code, base offset, two offsets more, no errors of records, no message, no tags."""
_NO_ERRORS, _NO_MESSAGE = 1, 0
_END = struct.Struct(">iB")


class Acknowledged(NamedTuple):
    """An answer without errors: of each topic, by name or id, partition and base offset of each batch."""

    throttle_time_ms: int
    topics: list[tuple[str | UUID, list[tuple[int, int]]]]


@cache
def _response(version: int) -> RawResponse:
    return RawResponse(ProduceResponse[version], partial(acknowledged, by_id=version >= _BY_ID_SINCE))


class Produce(RawRequest, ProduceRequest, init=False):
    """One batch for each partition of each topic, to be acknowledged by all in-sync replicas.

    With `ids` of all topics, they are named by id where the broker can do that (KIP-516). For a broker before Kafka 2.4
    the library encodes the request.
    """

    RAW_SINCE = 9

    def __init__(
        self,
        batches: Mapping[str, Sequence[tuple[int, Stamped]]],
        ids: Mapping[str, UUID] | None,
        *,
        timeout_ms: int,
    ) -> None:
        super().__init__(max_version=_BY_ID_SINCE - 1 if ids is None else _BY_ID_SINCE)
        self.acks, self.timeout_ms = _ACKS_ALL, timeout_ms
        self._batches = batches
        self._ids = ids

    def raw_response(self, version: int) -> RawResponse:
        """Return what decodes a response of this version."""
        return _response(version)

    def fill(self) -> None:
        """Set the fields that the library encodes."""
        self.transactional_id = None
        part, whole = ProduceRequest.TopicProduceData.PartitionProduceData, ProduceRequest.TopicProduceData
        self.topic_data = [
            whole(name=topic, partition_data=[part(index=index, records=batch.whole()) for index, batch in parts])
            for topic, parts in self._batches.items()
        ]

    def encode_raw(self) -> Chunks:
        """Encode the whole request in pieces."""
        piece = bytearray(4) + self.header.to_bytes()
        piece += (
            _NO_TRANSACTION + struct.pack(">hi", _ACKS_ALL, self.timeout_ms) + unsigned_varint(len(self._batches) + 1)
        )
        pieces = Chunks([piece])
        for topic, parts in self._batches.items():
            piece += self._topic(topic) + unsigned_varint(len(parts) + 1)
            for index, batch in parts:
                head, body, size_bytes = batch
                piece += _INDEX.pack(index) + unsigned_varint(size_bytes + 1) + head
                if size_bytes >= _OWN_PIECE_BYTES:
                    piece = bytearray()
                    pieces += body, piece
                else:
                    piece += body
                piece += NO_TAGS
            piece += NO_TAGS
        piece += NO_TAGS
        struct.pack_into(">i", pieces[0], 0, sum(map(len, pieces)) - 4)
        return pieces

    def _topic(self, topic: str) -> bytes:
        if self.API_VERSION >= _BY_ID_SINCE:
            assert self._ids is not None
            return self._ids[topic].bytes
        name = topic.encode()
        return unsigned_varint(len(name) + 1) + name


def acknowledged(answer: bytes | bytearray, at: int, *, by_id: bool) -> Acknowledged | None:
    """Read an answer from byte `at` on; None where it says anything but that all went well.

    Raises `IndexError`, `ValueError` or `struct.error` for what is none.
    """
    topics: list[tuple[str | UUID, list[tuple[int, int]]]] = []
    many, at = count(answer, at)
    for _ in range(many):
        topic, at = topic_at(answer, at, by_id=by_id)
        batches: list[tuple[int, int]] = []
        partitions, at = count(answer, at)
        for _ in range(partitions):
            index, code, base_offset, _, _, errors, message, tags = _PARTITION.unpack_from(answer, at)
            if code or errors != _NO_ERRORS or message != _NO_MESSAGE or tags:
                return None
            batches.append((index, base_offset))
            at += _PARTITION.size
        topics.append((topic, batches))
        if answer[at]:
            return None
        at += 1
    throttle_ms, tags = _END.unpack_from(answer, at)
    return None if tags else Acknowledged(throttle_ms, topics)
