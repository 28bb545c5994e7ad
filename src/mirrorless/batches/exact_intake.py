"""Turns a fetch of one partition into batches that keep their offsets, and the holes between them.

A hole is a run of offsets without a record that consumers see: markers, aborted records, records that compaction
removed. Every batch that is yielded is dense: its records have consecutive offsets from `base_offset` on, so that it is
identical on a target whose log ends there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.batch_filter import AbortedTransactions, fits_as_it_is, refusal
from mirrorless.batches.header import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, BatchHeader, FormatError, scan
from mirrorless.batches.passthrough import Ready, is_tiny
from mirrorless.batches.rebuild import merge, rebuild, records_of
from mirrorless.batches.stamp import body_of, is_intact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.batches.records import Records

_REBUILT_BYTES = 256 << 10
_MANY = 4


class Hole(NamedTuple):
    """No record from `offset` up to `next_offset`; `leader_epoch` is the source's at its end, -1 if unknown."""

    offset: int
    next_offset: int
    leader_epoch: int = -1


def take_exactly(
    records: bytes | memoryview,
    aborted: Iterable[tuple[int, int]],
    *,
    wanted_from: int,
    until: int | None = None,
    max_batch_bytes: int | None = None,
    merge_below: int = 0,
) -> Iterator[Ready | Hole]:
    """Yield dense batches and holes from offset `wanted_from` up to `until`, each beginning where the last one ended.

    Neighbours that are tiny, or smaller than `merge_below`, are merged. All checksums are compared. Raises
    `FormatError` for what cannot be copied, after everything before it.
    """
    limit = max_batch_bytes if max_batch_bytes is not None else max(_REBUILT_BYTES, merge_below)
    follower = AbortedTransactions(aborted)
    loose: list[tuple[BatchHeader, bytes]] = []
    reached = wanted_from
    hole_from: int | None = None
    epoch = -1
    failure: FormatError | None = None
    batches = scan(records)
    while True:
        try:
            header, at = next(batches)
            if until is not None and header.base_offset >= until:
                if until > reached:
                    hole_from = reached if hole_from is None else hole_from
                    reached = until
                break
            body = body_of(records, at, header)
            _check(records, header, at, body)
        except StopIteration:
            break
        except FormatError as error:
            failure = error
            break
        dropped = header.attributes & (TRANSACTIONAL | CONTROL) and follower.drops(header, records, at)
        if header.next_offset <= wanted_from:
            continue
        epoch = header.partition_leader_epoch
        if dropped or not header.record_count:
            hole_from = reached if hole_from is None else hole_from
            reached = header.next_offset
            continue
        if header.base_offset > reached:
            hole_from = reached if hole_from is None else hole_from
            reached = header.base_offset
        if hole_from is not None:
            yield from _together(loose, limit, max_batch_bytes)
            loose = []
            yield Hole(hole_from, reached, epoch)
            hole_from = None
        if fits_as_it_is(header, wanted_from=reached, max_bytes=max_batch_bytes):
            if header.size_bytes < merge_below or is_tiny(header.size_bytes, header.attributes, header.record_count):
                loose.append((header, body))
            else:
                yield from _together(loose, limit, max_batch_bytes)
                loose = []
                yield Ready(header, body, header.base_offset, header.last_offset, epoch)
            reached = header.next_offset
            continue
        yield from _together(loose, limit, max_batch_bytes)
        loose = []
        try:
            opened = records_of(header, body).wanted(reached, until)
        except FormatError as error:
            failure = error
            break
        codec = header.attributes & (CODEC_MASK | LOG_APPEND_TIME)
        for run in dense_runs(opened):
            if run.offsets[0] > reached:
                yield Hole(reached, run.offsets[0], epoch)
            for built in merge([(codec, run)], max_bytes=limit):
                yield Ready(built.header, built.body, built.first_offset, built.last_offset, epoch)
            reached = run.offsets[-1] + 1
        end = header.next_offset if until is None else min(header.next_offset, until)
        if end > reached:
            hole_from, reached = reached, end
    yield from _together(loose, limit, max_batch_bytes)
    if hole_from is not None:
        yield Hole(hole_from, reached, epoch)
    if failure is not None:
        raise failure


def dense_runs(records: Records) -> Iterator[Records]:
    """Split records where an offset does not follow the one before it."""
    offsets = records.offsets
    start = 0
    for number in range(1, len(offsets) + 1):
        if number == len(offsets) or offsets[number] != offsets[number - 1] + 1:
            yield records.part(start, number)
            start = number


def _check(records: bytes | memoryview, header: BatchHeader, at: int, body: bytes) -> None:
    where = f"the batch {header.base_offset} to {header.last_offset}"
    reason = refusal(header)
    if not is_intact(records, at, header, body):
        reason = f"{where} does not match its checksum"
    if reason is not None:
        behind = header.next_offset if header.last_offset_delta >= 0 else None
        raise FormatError(reason, offset=header.base_offset, next_offset=behind, size_bytes=header.size_bytes)


def _together(loose: list[tuple[BatchHeader, bytes]], limit: int, max_batch_bytes: int | None) -> Iterator[Ready]:
    """Merge dense neighbours, if they are many."""
    if not loose:
        return
    if len(loose) < _MANY:
        for header, body in loose:
            yield Ready(header, body, header.base_offset, header.last_offset, header.partition_leader_epoch)
        return
    epoch = loose[-1][0].partition_leader_epoch
    for built in rebuild(loose, max_bytes=limit, wanted_from=loose[0][0].base_offset):
        yield Ready(built.header, built.body, built.first_offset, built.last_offset, epoch)
