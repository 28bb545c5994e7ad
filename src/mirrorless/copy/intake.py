"""What a fetch brought for one partition, as batches that can be stamped: most as they came, the rest rebuilt.

The table in section 3 of the design, row by row. Offsets are upstream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.admission import AbortedTransactions, fits_as_it_is, refusal
from mirrorless.batches.header import BatchHeader, FormatError, scan
from mirrorless.batches.legacy import convert, legacy_end
from mirrorless.batches.rebuild import rebuild
from mirrorless.batches.stamp import body_of, is_intact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TINY_BYTES = 4_096
_MANY = 4
_REBUILT_BYTES = 256 << 10
_MAGIC_AT = 16


class Ready(NamedTuple):
    """A dense batch, to be stamped; its records were at `base_offset` to `last_offset`, with or without holes.

    `leader_epoch` is the source's at the end of what was fetched with it: never older than its records'.
    """

    header: BatchHeader
    body: bytes
    base_offset: int
    last_offset: int
    leader_epoch: int = -1


class PassedTo(NamedTuple):
    """Nothing is left before `offset`: what was there went before this, or was a marker, aborted, or compacted away."""

    offset: int
    leader_epoch: int = -1


def take_in(
    records: bytes | memoryview,
    aborted: Iterable[tuple[int, int]],
    *,
    wanted_from: int,
    until: int | None,
    max_batch_bytes: int | None,
) -> Iterator[Ready | PassedTo]:
    """Yield what goes over, in order, from offset `wanted_from` up to `until`; no batch above `max_batch_bytes`.

    A batch of which one record alone is larger comes as it is. Tiny batches are coalesced where there are many of
    them: one batch a partition fits a produce request, so one by one each would cost a round trip. Raises `FormatError`
    for what cannot go over, after everything before it was yielded.
    """
    limit = max_batch_bytes if max_batch_bytes is not None else _REBUILT_BYTES
    if len(records) > _MAGIC_AT and records[_MAGIC_AT] < 2:
        end = legacy_end(records)
        for built in convert(records[:end], max_bytes=limit, wanted_from=wanted_from):
            yield Ready(built.header, built.body, built.first_offset, built.last_offset)
            wanted_from = built.last_offset + 1
        records = records[end:]
    loose: list[tuple[BatchHeader, bytes]] = []
    loose_from = reached = wanted_from
    headers, cut_short = scanned(records)
    leader_epoch = headers[-1][0].partition_leader_epoch if headers else -1
    failure: FormatError | None = None
    batches = _data_batches(records, headers, AbortedTransactions(aborted), wanted_from=wanted_from, until=until)
    coalesce = sum(header.size_bytes < _TINY_BYTES for header, _ in headers) >= _MANY
    while failure is None:
        try:
            passed, batch = next(batches)
        except StopIteration:
            failure = cut_short
            break
        except FormatError as error:
            failure = error
            break
        if batch is not None:
            header, body = batch
            whole = fits_as_it_is(header, wanted_from=reached, max_bytes=max_batch_bytes)
            if whole and not (coalesce and header.size_bytes < _TINY_BYTES):
                yield from _rebuilt(loose, loose_from, limit, leader_epoch)
                loose, loose_from = [], header.next_offset
                yield Ready(header, body, header.base_offset, header.last_offset, leader_epoch)
            else:
                loose.append(batch)
        reached = passed
    yield from _rebuilt(loose, loose_from, limit, leader_epoch)
    yield PassedTo(reached, leader_epoch)
    if failure is not None:
        raise failure


def _rebuilt(
    loose: list[tuple[BatchHeader, bytes]], wanted_from: int, limit: int, leader_epoch: int
) -> Iterator[Ready]:
    for built in rebuild(loose, max_bytes=limit, wanted_from=wanted_from):
        yield Ready(built.header, built.body, built.first_offset, built.last_offset, leader_epoch)


def scanned(records: bytes | memoryview) -> tuple[list[tuple[BatchHeader, int]], FormatError | None]:
    """Return every whole batch of a fetch, and what ended them early, if anything did."""
    found: list[tuple[BatchHeader, int]] = []
    try:
        found.extend(scan(records))
    except FormatError as error:
        return found, error
    return found, None


def _data_batches(
    records: bytes | memoryview,
    headers: Iterable[tuple[BatchHeader, int]],
    aborted: AbortedTransactions,
    *,
    wanted_from: int,
    until: int | None,
) -> Iterator[tuple[int, tuple[BatchHeader, bytes] | None]]:
    """Yield the offset behind each batch, with the batch if its records were committed; checks every checksum."""
    for header, at in headers:
        if until is not None and header.base_offset >= until:
            yield max(until, wanted_from), None
            return
        body = body_of(records, at, header)
        if not is_intact(records, at, header, body):
            reason = f"the batch {header.base_offset} to {header.last_offset} does not match its checksum"
            raise _unfit(reason, header)
        dropped = aborted.drops(header, records, at)
        if header.next_offset <= wanted_from:
            continue
        if dropped:
            yield header.next_offset, None
            continue
        if (reason_against := refusal(header)) is not None:
            raise _unfit(reason_against, header)
        yield header.next_offset, (header, body)


def _unfit(reason: str, header: BatchHeader) -> FormatError:
    behind = header.next_offset if header.last_offset_delta >= 0 else None
    return FormatError(reason, offset=header.base_offset, next_offset=behind, size_bytes=header.size_bytes)
