"""Counts the source's records by batch headers, to find the position of a copy that is ahead of its progress."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import FormatError
from mirrorless.batches.record_counter import LogPosition, RecordCounter
from mirrorless.errors import CorruptBatch, UnsupportedBatch
from mirrorless.log_walk import LogEnd, RecordsGone, committed
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.batches.record_counter import CommittedBatch
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.dense import TargetRecord
    from mirrorless.protocol.cluster_client import ClusterClient

_PATIENCE = 4
PATIENCE_AT_END = 7
"""So many resumes, some four seconds, before a leader counts that has less than was copied."""


class SourceWalk(NamedTuple):
    """Where a walk ended: the offset after the last record counted, that record without its deltas, its leader epoch.

    `missing` is how many records the source's end lacks; the record is the last one that it has then, None if there is
    none. `cleaned` says that compaction took records out of the range, so that the count may have led too far; where it
    led beyond the source's end, there is no record.
    """

    offset: int
    record: bytes | None
    leader_epoch: int
    cleaned: bool
    missing: int = 0


async def walk(
    source: ClusterClient, copy: PartitionCopy, offset: int, count: int, *, leader_epoch: int | None = None
) -> SourceWalk:
    """Walk `count` (at least one) committed records of the source from `offset` on, opening at most two batches.

    `leader_epoch` is that of the record before `offset`, if it is known. Raises `Gap` where they were deleted.
    """
    epoch = -1 if leader_epoch is None else leader_epoch
    position = LogPosition(offset, leader_epoch=epoch, producers=copy.local)
    left = count
    end: LogEnd | None = None
    last: bytes | None = None
    try:
        with _partition_errors(copy):
            before: CommittedBatch | None = None
            async for batch in committed(source, copy.place, position):
                if isinstance(batch, LogEnd):
                    end = batch
                    last = None if before is None or batch.cleaned else before.opened().wanted(offset).rests[-1]
                    continue
                before = batch
                records = batch.record_count
                if batch.base_offset < offset or records >= left:
                    # The one batch that the position cuts has to be opened.
                    wanted = batch.opened().wanted(offset)
                    records = len(wanted.rests)
                    if records >= left:
                        following = batch.next_offset if records == left else wanted.offsets[left]
                        return SourceWalk(following, wanted.rests[left - 1], batch.leader_epoch, position.cleaned)
                left -= records
    except RecordsGone as gone:
        reason = f"the target holds {left} records from here on, but {gone.reason}"
        raise copy.gap(reason, gone.kind, offset=gone.offset) from gone
    assert end is not None
    if not end.cleaned:
        return SourceWalk(end.offset, last, position.leader_epoch, cleaned=False, missing=left)
    if copy.retry.attempts < _PATIENCE:
        raise NotNow(f"{left} records are missing in the source")  # a new leader may have fewer for now
    return SourceWalk(end.offset, None, -1, cleaned=True)


async def find(source: ClusterClient, copy: PartitionCopy, record: bytes, *, start: int, end: int) -> int | None:
    """Look for a record (without its deltas) between the offsets `start` and `end`; returns the offset after it."""
    with _copy_errors(copy):
        async for batch in committed(source, copy.place, LogPosition(start, producers=copy.local), until=end):
            if isinstance(batch, LogEnd):
                _check_end(copy, batch, end)
                continue
            opened = batch.opened().wanted(start, end)
            if record in opened.rests:
                return opened.offsets[opened.rests.index(record)] + 1
    return None


async def find_only(
    source: ClusterClient, copy: PartitionCopy, record: TargetRecord, *, start: int, end: int, most: int
) -> int | None:
    """Look for a record with its timestamp, without which nothing would tell it from another of the same content.

    Returns the offset after it; None if it is not among the first `most` records between `start` and `end` (and the
    rest of the batch that has the last of them), or more than once.
    """
    seen, after = 0, None
    with _copy_errors(copy):
        async for batch in committed(source, copy.place, LogPosition(start, producers=copy.local), until=end):
            if isinstance(batch, LogEnd):
                _check_end(copy, batch, end)
                continue
            opened = batch.opened().wanted(start, end)
            for offset, timestamp_ms, rest in zip(*opened, strict=True):
                if (timestamp_ms, rest) == record:
                    if after is not None:
                        return None
                    after = offset + 1
            seen += len(opened.rests)
            if seen >= most:
                break
    return after


async def count(source: ClusterClient, copy: PartitionCopy, *, start: int, end: int) -> int:
    """Return how many committed records the source has from offset `start` up to `end`."""
    counter = await counted(source, copy, start=start, end=end)
    return counter.counts.get(end, counter.records)


async def counted(source: ClusterClient, copy: PartitionCopy, *, start: int, end: int) -> RecordCounter:
    """Count the committed records that the source has from offset `start` up to `end`."""
    counter = RecordCounter(start, [end], producers=copy.local)
    with _copy_errors(copy):
        async for batch in committed(source, copy.place, counter, until=end):
            if isinstance(batch, LogEnd):
                _check_end(copy, batch, end)
                continue
            counter.add(batch)
    return counter


def _check_end(copy: PartitionCopy, found: LogEnd, end: int) -> None:
    """Raise `NotNow` a few times where the source's leader has less than up to offset `end`: its log may lag."""
    if found.end < end and copy.retry.attempts < PATIENCE_AT_END:
        raise NotNow(f"the source's leader has no records after offset {found.end} yet")


@contextmanager
def _copy_errors(copy: PartitionCopy) -> Iterator[None]:
    """Raise errors of `committed` as those of a copy."""
    try:
        with _partition_errors(copy):
            yield
    except RecordsGone as gone:
        raise copy.gap(gone.reason, gone.kind, offset=gone.offset) from gone


@contextmanager
def _partition_errors(copy: PartitionCopy) -> Iterator[None]:
    """Raise a `FormatError` as the partition's error."""
    try:
        yield
    except FormatError as error:
        topic, partition = copy.place
        kind = UnsupportedBatch if error.magic != 2 else CorruptBatch
        raise kind(str(error), topic=topic, partition=partition, offset=error.offset) from error
