"""Bytes of logs as fetches bring them: batches with or without holes, transaction markers, messages of format v1."""

from __future__ import annotations

import struct
import zlib

from mirrorless.batches.header import CONTROL, TRANSACTIONAL, BatchHeader
from mirrorless.batches.records import put_together, take_apart

_LENGTH_COUNTS_FROM = 12
_HEADER_BYTES = 61


def batch(
    offsets: list[int], *, attributes: int = 0, producer: int = -1, until: int | None = None, leader_epoch: int = 0
) -> bytes:
    """A batch with records at these offsets, up to `until` (inclusive) if compaction removed the last ones."""
    empty = take_apart(b"\x0c\x00\x00\x00\x01\x01\x00", count=1, base_offset=0, base_timestamp_ms=0).rests[0]
    dense = put_together([0] * len(offsets), [empty] * len(offsets))
    # Renumbered by hand: each record is length, attributes, timestamp delta, offset delta, rest.
    records = take_apart(dense, count=len(offsets), base_offset=0, base_timestamp_ms=0).rests
    body = b"".join(_record(offset - offsets[0], rest) for offset, rest in zip(offsets, records, strict=True))
    last = offsets[-1] if until is None else until
    header = BatchHeader(
        base_offset=offsets[0],
        length_bytes=_HEADER_BYTES + len(body) - _LENGTH_COUNTS_FROM,
        partition_leader_epoch=leader_epoch,
        magic=2,
        checksum=0,
        attributes=attributes,
        last_offset_delta=last - offsets[0],
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=-1,
        record_count=len(offsets),
    )
    return header.pack() + body


def _record(delta: int, rest: bytes) -> bytes:
    record = b"\x00\x00" + _varint(delta) + rest
    return _varint(len(record)) + record


def _varint(number: int) -> bytes:
    raw, out = number << 1, bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    key = struct.pack(">hh", 0, commit)
    body = b"\x00\x00\x00" + _varint(len(key)) + key + b"\x01\x00"
    body = _varint(len(body)) + body
    header = BatchHeader.parse(batch([offset], attributes=CONTROL | TRANSACTIONAL, producer=producer))
    return header._replace(length_bytes=_HEADER_BYTES + len(body) - _LENGTH_COUNTS_FROM).pack() + body


def message(offset: int, value: bytes = b"") -> bytes:
    """A message of format v1."""
    behind_the_sum = struct.pack(">bbqii", 1, 0, 0, -1, len(value)) + value
    summed = struct.pack(">I", zlib.crc32(behind_the_sum)) + behind_the_sum
    return struct.pack(">qi", offset, len(summed)) + summed
