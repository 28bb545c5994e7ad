"""Rebuilds batches that cannot be appended unchanged as dense batches that can.

The result has what a consumer of the source would have seen: Kafka's `DefaultRecordBatch` gives every record of
a `LogAppendTime` batch the batch's maximum timestamp, and every other record base plus delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.batches import codecs
from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import (
    CHECKSUM_STARTS_AT,
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    FormatError,
)
from mirrorless.batches.records import Records, put_together, take_apart

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LENGTH_COUNTS_FROM = 12
_RECORD_OVERHEAD_BYTES = 8
_LEAST_OVERHEAD_BYTES = 4
"""Size of a record's first fields: its length, attributes and two deltas; eight bytes are enough for most."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A new batch, dense, CreateTime, without producer: `stamp.stamp` completes it.

    `first_offset` and `last_offset` are the upstream offsets of its first and last record; there may be gaps between
    them. The header's base offset is `first_offset`.
    """

    header: BatchHeader
    body: bytes
    first_offset: int
    last_offset: int


def rebuild(
    batches: Iterable[tuple[BatchHeader, bytes]],
    *,
    max_bytes: int,
    wanted_from: int,
) -> Iterator[Rebuilt]:
    """Yield new batches with the records from offset `wanted_from` on.

    `batches` are consecutive data batches of one partition as header and body, checked by checksum and `batch_filter`;
    neighbours of the same codec and timestamp type are merged while their records, uncompressed, stay within
    `max_bytes`. No batch of more than one record is larger than `max_bytes` (the target's `max.message.bytes`, header
    included). Batches that the cleaner emptied yield nothing. Raises `FormatError` if records cannot be read,
    after everything before them was yielded.
    """
    return merge(_read(batches, wanted_from), max_bytes=max_bytes)


def records_of(header: BatchHeader, body: bytes) -> Records:
    """Records of a data batch, in columns; raises `FormatError` if they cannot be read."""
    for _, records in _read([(header, body)], header.base_offset):
        return records
    return Records([], [], [])


def merge(groups: Iterable[tuple[int, Records]], *, max_bytes: int) -> Iterator[Rebuilt]:
    """Yield batches for groups of records, each with its attributes, of which only the codec is kept.

    Neighbours with equal attributes are merged; a group may be split. Groups are consumed when needed.
    """
    waiting, waiting_attributes, waiting_bytes = Records([], [], []), 0, 0
    try:
        for attributes, records in groups:
            size = sum(map(len, records.rests)) + _RECORD_OVERHEAD_BYTES * len(records.rests)
            fits = HEADER_BYTES + waiting_bytes + size <= max_bytes
            if waiting.rests and not (fits and attributes == waiting_attributes):
                yield from _pack(waiting_attributes & CODEC_MASK, waiting, max_bytes)
                waiting, waiting_bytes = Records([], [], []), 0
            if not waiting.rests:
                waiting, waiting_attributes = records, attributes
            else:
                waiting.extend(records)
            waiting_bytes += size
    except FormatError:
        yield from _pack(waiting_attributes & CODEC_MASK, waiting, max_bytes)
        raise
    yield from _pack(waiting_attributes & CODEC_MASK, waiting, max_bytes)


def _read(batches: Iterable[tuple[BatchHeader, bytes]], wanted_from: int) -> Iterator[tuple[int, Records]]:
    for header, body in batches:
        if not header.record_count or header.last_offset < wanted_from:
            continue
        try:
            records = take_apart(
                codecs.decompress(header.attributes & CODEC_MASK, body),
                count=header.record_count,
                base_offset=header.base_offset,
                base_timestamp_ms=header.base_timestamp_ms,
            )
        except ValueError as error:
            where = f"the batch {header.base_offset} to {header.last_offset}"
            raise FormatError(
                f"{where} cannot be rebuilt: {error}",
                offset=header.base_offset,
                next_offset=header.next_offset,
                size_bytes=header.size_bytes,
            ) from error
        if header.attributes & LOG_APPEND_TIME:
            records = records._replace(timestamps_ms=[header.max_timestamp_ms] * header.record_count)
        if header.base_offset < wanted_from:
            records = records.wanted(wanted_from)
        if records.rests:
            yield header.attributes & (CODEC_MASK | LOG_APPEND_TIME), records


def _pack(codec: int, records: Records, max_bytes: int) -> Iterator[Rebuilt]:
    """One batch, or as many as needed for each to fit; the number is estimated from the size of the whole."""
    count = len(records.rests)
    if not count:
        return
    if not codec and count > 1:
        size = HEADER_BYTES + sum(map(len, records.rests))
        if size + _LEAST_OVERHEAD_BYTES * count > max_bytes:
            parts = -(-(size + _RECORD_OVERHEAD_BYTES * count) // max_bytes)
            yield from _pack_in_parts(codec, records, parts, max_bytes)
            return
    body = codecs.compress(codec, put_together(records.timestamps_ms, records.rests))
    size = HEADER_BYTES + len(body)
    if size > max_bytes and count > 1:
        yield from _pack_in_parts(codec, records, -(-size // max_bytes), max_bytes)
        return
    header = BatchHeader(
        base_offset=records.offsets[0],
        length_bytes=size - _LENGTH_COUNTS_FROM,
        partition_leader_epoch=-1,
        magic=2,
        checksum=0,
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp_ms=records.timestamps_ms[0],
        max_timestamp_ms=max(records.timestamps_ms),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )
    header = header._replace(checksum=checksum(header.pack()[CHECKSUM_STARTS_AT:], body))
    yield Rebuilt(header, body, records.offsets[0], records.offsets[-1])


def _pack_in_parts(codec: int, records: Records, parts: int, max_bytes: int) -> Iterator[Rebuilt]:
    count = len(records.rests)
    parts = min(count, parts)
    for part in range(parts):
        yield from _pack(codec, records.part(part * count // parts, (part + 1) * count // parts), max_bytes)
