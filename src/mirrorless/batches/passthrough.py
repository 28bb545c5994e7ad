"""Selects batches that are copied unchanged, nearly all of every fetch, in one loop.

Only their headers are read. A damaged batch keeps a wrong checksum (`stamp.stamp`), so the target refuses it.
"""

from __future__ import annotations

from typing import NamedTuple

from mirrorless.batches.header import CODEC_MASK, CODECS, HEADER_BYTES, BatchHeader
from mirrorless.batches.producers import NO_OPPOSITE, OppositeCopy
from mirrorless.batches.stamp import is_intact

_MAGIC = 2
_LENGTH_COUNTS_FROM = 12
_TINY_BYTES = 4_096
_SMALL_BYTES = 16 << 10
_FEW_RECORDS = 64
_END_OF_TIME = 1 << 63


class Unopened(NamedTuple):
    """Batches that are appended unchanged, and where reading continues: at byte `end`, source offset `next_offset`.

    `leader_epoch` is that of the last batch before, `skipped` the number of records of skipped batches.
    """

    batches: list[Ready]
    end: int
    next_offset: int
    leader_epoch: int
    skipped: int


class Ready(NamedTuple):
    """A dense batch, to be stamped; its records were at `base_offset` to `last_offset`, with or without gaps.

    `leader_epoch` is the source's at its last record, or at the end of the fetch: never older.
    """

    header: BatchHeader
    body: bytes | memoryview
    base_offset: int
    last_offset: int
    leader_epoch: int = -1


def unopened(
    records: bytes | memoryview,
    *,
    wanted_from: int,
    until: int | None,
    max_batch_bytes: int | None,
    verify: bool,
    views: bool,
    opposite: OppositeCopy = NO_OPPOSITE,
    skipped: frozenset[int] = frozenset(),
) -> Unopened:
    """Return the leading batches that are wanted whole and may be appended unchanged, without those of `skipped` ids.

    With `views` their bodies are views of `records`, except for those that were verified.
    Ends at the first batch with anything unusual: another message format, gaps, a transaction, append times or a delete
    horizon (`batch_filter.fits_as_it_is`), a wrong length or, with `verify`, checksum, a tiny or an incomplete batch,
    one larger than `max_batch_bytes`, one from offset `until` on, or one of the `opposite` copy.
    """
    found: list[Ready] = []
    end = len(records)
    stop = _END_OF_TIME if until is None else until
    most = end if max_batch_bytes is None else max_batch_bytes
    opposite_id, looped_from = opposite
    at = skipped_records = 0
    last_epoch = -1
    while end - at >= HEADER_BYTES:
        header = BatchHeader.parse(records, at)
        base_offset, length, epoch, magic, _, attributes, last_delta, _, _, producer, _, _, record_count = header
        size = length + _LENGTH_COUNTS_FROM
        if producer in skipped and magic == _MAGIC and wanted_from <= base_offset < stop and at + size <= end:
            if not 0 <= attributes < len(CODECS) or last_delta < 0:
                break
            skipped_records += record_count
            wanted_from, last_epoch = base_offset + last_delta + 1, epoch
            at += size
            continue
        if not (
            magic == _MAGIC
            and 0 <= attributes < len(CODECS)  # so without any other attribute
            and record_count == last_delta + 1
            and wanted_from <= base_offset < stop
            and size <= most
            and at + size <= end
            and (producer != opposite_id or base_offset < looped_from)
            and (size >= _SMALL_BYTES or not is_tiny(size, attributes, record_count))
        ):
            break
        body = records[at + HEADER_BYTES : at + size]
        if verify or not views:
            body = bytes(body)
            if verify and not is_intact(records, at, header, body):
                break
        last_offset = base_offset + last_delta
        found.append(Ready(header, body, base_offset, last_offset, epoch))
        wanted_from, last_epoch = last_offset + 1, epoch
        at += size
    return Unopened(found, at, wanted_from, last_epoch, skipped_records)


def read_before(records: bytes | memoryview, *, wanted_from: int) -> tuple[int, int]:
    """Return the byte after the leading batches that end before `wanted_from`, and the last one's leader epoch or -1.

    Ends at a batch of a transaction, which has to be followed, and at one of another message format.
    """
    at, epoch_before = 0, -1
    while len(records) - at >= HEADER_BYTES:
        header = BatchHeader.parse(records, at)
        base_offset, length, epoch, magic, _, attributes, last_delta, *_ = header
        size = length + _LENGTH_COUNTS_FROM
        plain = magic == _MAGIC and 0 <= attributes < len(CODECS) and last_delta >= 0
        if not plain or base_offset + last_delta >= wanted_from or at + size > len(records):
            break
        at, epoch_before = at + size, epoch
    return at, epoch_before


def is_tiny(size_bytes: int, attributes: int, record_count: int) -> bool:
    """Whether a batch costs more as one of many than its records do in a merged batch.

    Uncompressed ones are cheap to open: a separate batch costs as much as about sixty of their records.
    """
    if size_bytes < _TINY_BYTES:
        return True
    return not attributes & CODEC_MASK and record_count <= _FEW_RECORDS and size_bytes < _SMALL_BYTES
