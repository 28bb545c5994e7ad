"""The Produce request, written around its batches: in pieces, of which the large ones are the batches' own bytes.

The library would put the batches into one buffer and take that apart again. Source of the layout: `ProduceRequest.json`
of Kafka 4.3, versions 9 to 13, which differ in how they name topics; before that, the library writes it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from kafka.protocol.producer.produce import ProduceRequest
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32

from mirrorless.copy.transport import Chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped

_ACKS_ALL = -1
_COMPACT_SINCE = 9
_BY_ID_SINCE = 13
_NO_TRANSACTION = b"\0"
_NO_TAGS = b"\0"
_varint: Callable[[int], bytes] = UnsignedVarInt32.encode
_OWN_PIECE_BYTES = 4_096
"""A body of so many bytes is a piece of its own; a smaller one is copied, which is less than what a piece costs."""


class Produce(ProduceRequest, init=False):
    """One batch for each partition of each topic, to be acknowledged by all in-sync replicas.

    With `ids` of all topics, they are named by id where the broker can do that (KIP-516).
    """

    def __init__(
        self,
        batches: Mapping[str, Sequence[tuple[int, Stamped]]],
        ids: Mapping[str, UUID] | None,
        *,
        timeout_ms: int,
    ) -> None:
        super().__init__(
            transactional_id=None,
            acks=_ACKS_ALL,
            timeout_ms=timeout_ms,
            topic_data=[],
            max_version=_BY_ID_SINCE - 1 if ids is None else _BY_ID_SINCE,
        )
        self._batches = batches
        self._ids = ids

    def encode(self, version: int | None = None, header: bool = False, framed: bool = False) -> Any:  # noqa: ANN401
        """Return the whole request: in pieces, or in one, as the library does, for brokers before Kafka 2.4."""
        assert version is None
        assert header
        assert framed
        if self.API_VERSION < _COMPACT_SINCE:
            part, whole = ProduceRequest.TopicProduceData.PartitionProduceData, ProduceRequest.TopicProduceData
            self.topic_data = [
                whole(name=topic, partition_data=[part(index=index, records=batch.whole()) for index, batch in parts])
                for topic, parts in self._batches.items()
            ]
            return super().encode(header=True, framed=True)  # type: ignore[no-untyped-call]
        piece = bytearray(4) + self._header_bytes()
        piece += _NO_TRANSACTION + struct.pack(">hi", _ACKS_ALL, self.timeout_ms) + _varint(len(self._batches) + 1)
        pieces = Chunks([piece])
        for topic, parts in self._batches.items():
            piece += self._topic(topic) + _varint(len(parts) + 1)
            for index, batch in parts:
                piece += struct.pack(">i", index) + _varint(batch.size_bytes + 1) + batch.head
                if len(batch.body) >= _OWN_PIECE_BYTES:
                    piece = bytearray()
                    pieces += batch.body, piece
                else:
                    piece += batch.body
                piece += _NO_TAGS
            piece += _NO_TAGS
        piece += _NO_TAGS
        struct.pack_into(">i", pieces[0], 0, sum(map(len, pieces)) - 4)
        return pieces

    def _header_bytes(self) -> bytes:
        """Version 2 of `RequestHeader.json`; the library takes as long for it as for all the rest."""
        header = self.header
        client_id: bytes = header.client_id.encode()
        key, version, number = header.request_api_key, header.request_api_version, header.correlation_id
        return struct.pack(">hhih", key, version, number, len(client_id)) + client_id + _NO_TAGS

    def _topic(self, topic: str) -> bytes:
        if self.API_VERSION >= _BY_ID_SINCE:
            assert self._ids is not None
            return self._ids[topic].bytes
        name = topic.encode()
        return _varint(len(name) + 1) + name
