"""Reads batches of one record each, as producers without linger write them by the thousand, in one loop.

The general path through `scan`, `batch_filter`, `stamp` and `records` costs several calls per batch, which is
negligible only for batches of many records. Here a batch costs one checksum and one comparison: the first bytes of such
a record, its length, no attributes and two deltas of 0 (Kafka's `DefaultRecord.writeTo`), follow from the batch's size.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import google_crc32c

from mirrorless.batches.header import CHECKSUM_STARTS_AT, HEADER_BYTES, BatchHeader
from mirrorless.batches.producers import NO_OPPOSITE, OppositeCopy
from mirrorless.batches.records import Records, varint

_NOTHING_SPECIAL: Final = b"\x00\x00\x00"
_RECORD_AT: Final = HEADER_BYTES - CHECKSUM_STARTS_AT
_LENGTH_COUNTS_FROM: Final = 12
_WITHOUT_RECORD_BYTES: Final = HEADER_BYTES - _LENGTH_COUNTS_FROM
_SMALL_BYTES: Final = 16 << 10
_MAGIC: Final = 2
_END_OF_TIME: Final = 1 << 63
_UNPACK = struct.Struct(">qi4xBIhiq8xq6xi").unpack_from
"""Of a header: base offset, length, magic, checksum, attributes, last offset delta, base timestamp, producer, count."""


class _Beginnings(dict[int, bytes]):
    """The first bytes of a plain record, by its batch's length; the value for impossible lengths matches no record.

    All lengths are cached: this is for small records only.
    """

    def __missing__(self, length_bytes: int) -> bytes:
        size = length_bytes - _WITHOUT_RECORD_BYTES
        for width in range(1, 6):
            length = varint(size - width)
            if len(length) == width:
                self[length_bytes] = length + _NOTHING_SPECIAL
                return self[length_bytes]
        self[length_bytes] = b"\xff" * 16
        return self[length_bytes]


_beginnings = _Beginnings()


class Lone(NamedTuple):
    """Records of a run of single-record batches, the last one's header, and the byte after it."""

    records: Records
    last: BatchHeader
    end: int


def is_lone(header: BatchHeader) -> bool:
    """Whether a batch has one small record, neither compressed nor transactional, with the producer's timestamp."""
    return (
        header.record_count == 1
        and not header.attributes
        and not header.last_offset_delta
        and header.length_bytes < _SMALL_BYTES
    )


def take_lone(
    log: bytes,
    at: int,
    *,
    wanted_from: int = 0,
    until: int | None = None,
    opposite: OppositeCopy = NO_OPPOSITE,
    skipped: frozenset[int] = frozenset(),
) -> Lone | None:
    """Read the records of all batches from byte `at` on that are `is_lone`, with offsets `wanted_from` up to `until`.

    Ends before a batch of the `opposite` copy or of `skipped` producers, one that does not match its checksum, or one
    whose record differs from
    what producers write: these are left to the general path. None if the first batch is one of these.
    """
    offsets: list[int] = []
    timestamps_ms: list[int] = []
    rests: list[bytes] = []
    add_offset, add_timestamp, add_rest = offsets.append, timestamps_ms.append, rests.append
    unpack, checksum, beginnings = _UNPACK, google_crc32c.value, _beginnings
    opposite_id, looped_from = opposite
    end, limit, last_at = len(log), _END_OF_TIME if until is None else until, at
    while end - at >= HEADER_BYTES:
        offset, length, magic, crc, attributes, delta, timestamp, producer, count = unpack(log, at)
        if count != 1 or attributes or delta or magic != _MAGIC or not wanted_from <= offset < limit:
            break
        if (producer == opposite_id and offset >= looped_from) or producer in skipped:
            break
        behind = at + _LENGTH_COUNTS_FROM + length
        if behind > end or not _WITHOUT_RECORD_BYTES < length < _SMALL_BYTES:
            break
        covered = log[at + CHECKSUM_STARTS_AT : behind]
        beginning = beginnings[length]
        if checksum(covered) != crc or not covered.startswith(beginning, _RECORD_AT):
            break
        add_offset(offset)
        add_timestamp(timestamp)
        add_rest(covered[_RECORD_AT + len(beginning) :])
        last_at, at = at, behind
    if not rests:
        return None
    return Lone(Records(offsets, timestamps_ms, rests), BatchHeader.parse(log, last_at), at)
