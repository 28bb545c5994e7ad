"""Counts the source's records by batch headers, to find the position of a copy that is ahead of its progress."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.batch_filter import AbortedTransactions
from mirrorless.batches.header import FormatError, scan
from mirrorless.batches.legacy import legacy_end, messages
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of
from mirrorless.errors import CorruptBatch, Gap, GapKind, UnsupportedBatch
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from mirrorless.batches.header import BatchHeader
    from mirrorless.batches.records import Records
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Fetched

_FETCH_BYTES = 8 << 20
_PATIENCE = 4
PATIENCE_AT_END = 7
"""So many resumes, some four seconds, before a leader counts that has less than was copied."""


class SourceWalk(NamedTuple):
    """Where a walk ended: the offset after the last record counted, that record without its deltas, its leader epoch.

    `cleaned`: the log cleaner removed records in between, so that the walk may have gone too far; where it went past
    the source's end, there is no record.
    """

    offset: int
    record: bytes | None
    leader_epoch: int
    cleaned: bool


class _SourceEnd(NamedTuple):
    """The source has no more committed records at the moment; `cleaned` as in `SourceWalk`."""

    offset: int
    cleaned: bool


class _Batch(NamedTuple):
    """A batch of committed data, or a set of messages of formats v0 and v1; `cleaned` as in `SourceWalk`, so far."""

    base_offset: int
    next_offset: int
    record_count: int
    leader_epoch: int
    cleaned: bool
    opened: Callable[[], Records]


async def walk(
    source: ClusterClient, copy: PartitionCopy, offset: int, count: int, *, leader_epoch: int | None = None
) -> SourceWalk:
    """Walk `count` (at least one) committed records of the source from `offset` on, opening at most two batches.

    `leader_epoch` is that of the record before `offset`, if it is known. Raises `Gap` where there are fewer.
    """
    left = count
    end: _SourceEnd | None = None
    try:
        async for batch in _batches(source, copy, offset, leader_epoch=leader_epoch):
            if isinstance(batch, _SourceEnd):
                end = batch
                continue
            records = batch.record_count
            if batch.base_offset < offset or records >= left:
                # A batch of which only a part is counted has to be opened.
                wanted = batch.opened().wanted(offset)
                records = len(wanted.rests)
                if records >= left:
                    after = batch.next_offset if records == left else wanted.offsets[left]
                    return SourceWalk(after, wanted.rests[left - 1], batch.leader_epoch, batch.cleaned)
            left -= records
    except FormatError as error:
        raise _malformed(copy, error) from error
    except Gap as gap:
        reason = f"the target holds {left} records from here on, but {gap.reason}"
        raise copy.gap(reason, gap.kind, offset=gap.offset) from gap
    assert end is not None
    if not end.cleaned:
        reason = f"the target holds {left} records from here on, but the source ends at {end.offset}: it lost them"
        raise copy.gap(reason, GapKind.TRUNCATED, offset=end.offset)
    if copy.retry.attempts < _PATIENCE:
        raise NotNow(f"{left} records are missing in the source")  # a new leader's log may lag for a moment
    return SourceWalk(end.offset, None, -1, cleaned=True)


async def find(source: ClusterClient, copy: PartitionCopy, record: bytes, *, start: int, end: int) -> int | None:
    """Look for a record (without its deltas) between the offsets `start` and `end`; returns the offset after it."""
    try:
        async for batch in _batches(source, copy, start, until=end):
            if isinstance(batch, _SourceEnd):
                continue
            opened = batch.opened().wanted(start, end)
            if record in opened.rests:
                return opened.offsets[opened.rests.index(record)] + 1
    except FormatError as error:
        raise _malformed(copy, error) from error
    return None


async def count(source: ClusterClient, copy: PartitionCopy, *, start: int, end: int) -> int:
    """Return how many committed records the source has from offset `start` up to `end`."""
    counted = 0
    try:
        async for batch in _batches(source, copy, start, until=end):
            if isinstance(batch, _SourceEnd):
                continue
            if batch.base_offset >= start and batch.next_offset <= end:
                counted += batch.record_count
            else:
                counted += len(batch.opened().wanted(start, end).rests)
    except FormatError as error:
        raise _malformed(copy, error) from error
    return counted


async def _batches(
    source: ClusterClient,
    copy: PartitionCopy,
    offset: int,
    *,
    leader_epoch: int | None = None,
    until: int | None = None,
) -> AsyncIterator[_Batch | _SourceEnd]:
    """Yield every batch of committed data from `offset` to `until`; at the source's end, that, and nothing more.

    Raises `Gap` where the source does not have `offset` any more, and `NotNow` where its leader may not know of all.
    """
    cleaned = False
    while until is None or offset < until:
        node = leader_of(source, copy.place)
        fetched = await source.fetch_one(
            node,
            (copy.place, offset, -1 if leader_epoch is None else leader_epoch),
            max_wait_ms=500,
            partition_max_bytes=_FETCH_BYTES,
        )
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            raise copy.gap("the source does not have them any more", GapKind.RETENTION, offset=offset)
        if fetched.error_code:
            raise error_for(fetched.error_code)
        if fetched.diverges_at is not None:
            cut_at = fetched.diverges_at
            raise copy.gap(f"its log was truncated at {cut_at}", GapKind.TRUNCATED, offset=min(offset, cut_at))
        before, leader_epoch = offset, None
        try:
            for batch, dense in _batches_from(fetched, offset):
                # Markers are batches too: an offset in no batch was removed by the cleaner.
                cleaned = cleaned or batch.base_offset > offset or not dense
                offset = batch.next_offset
                if batch.record_count:
                    yield batch._replace(cleaned=cleaned)
        except FormatError as error:
            if error.magic == 2 or offset == before:  # else the next response begins with messages of v0 or v1
                raise
        if offset == before:
            end = fetched.last_stable_offset
            await _refuse_slow(source, copy, offset)
            if until is not None and end < until and copy.retry.attempts < PATIENCE_AT_END:
                raise NotNow(f"the source's leader has nothing after offset {end} yet")
            # A hole up to the end is the cleaner's as well.
            yield _SourceEnd(min(offset, end), cleaned=cleaned or end > offset)
            return


def _batches_from(fetched: Fetched, offset: int) -> Iterator[tuple[_Batch, bool]]:
    """Yield each batch of a response that ends at `offset` or later; its count is 0 if it is not committed data.

    The second value is whether its offsets have no hole. Raises `FormatError`.
    """
    records = fetched.records
    begins = legacy_end(records)
    for _, opened in messages(records[:begins], wanted_from=offset):
        if opened.offsets:
            first, after, many = opened.offsets[0], opened.offsets[-1] + 1, len(opened.offsets)
            batch = _Batch(first, after, many, -1, cleaned=False, opened=partial(opened.wanted, offset))
            yield batch, many == after - first
    aborted = AbortedTransactions(fetched.aborted)
    for header, at in scan(records, begins):
        dropped = aborted.drops(header, records, at)
        if header.next_offset > offset:
            batch = _Batch(
                header.base_offset,
                header.next_offset,
                0 if dropped else header.record_count,
                header.partition_leader_epoch,
                cleaned=False,
                opened=partial(_opened, header, records, at),
            )
            yield batch, header.is_dense


def _opened(header: BatchHeader, records: bytes | memoryview, at: int) -> Records:
    return records_of(header, body_of(records, at, header))


async def _refuse_slow(source: ClusterClient, copy: PartitionCopy, offset: int) -> None:
    """Raise `NotNow` where an empty response may mean that tiered storage is slow (`DelayedRemoteFetch`)."""
    node = leader_of(source, copy.place)
    local = (await source.offsets(node, [copy.place], at=cluster_client.EARLIEST_LOCAL))[copy.place]
    if local.error_code:
        raise error_for(local.error_code)
    if offset < local.offset:
        raise NotNow(f"the source answers with nothing at offset {offset}: its tiered storage is slow")


def _malformed(copy: PartitionCopy, error: FormatError) -> CorruptBatch | UnsupportedBatch:
    topic, partition = copy.place
    kind = UnsupportedBatch if error.magic != 2 else CorruptBatch
    return kind(str(error), topic=topic, partition=partition, offset=error.offset)
