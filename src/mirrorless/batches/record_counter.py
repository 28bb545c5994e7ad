"""Counts committed records by batch headers, in the fetched bytes of one partition.

Committed are the records that a consumer with `read_committed` gets: not markers, not aborted records. Nothing is
decompressed except a batch that contains an offset and gaps from compaction; messages of formats v0 and v1, which
have no such header, are read one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.batch_filter import AbortedTransactions
from mirrorless.batches.header import FormatError, scan
from mirrorless.batches.legacy import legacy_end, messages
from mirrorless.batches.producers import EVERY_PRODUCER
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mirrorless.batches.header import BatchHeader
    from mirrorless.batches.producers import ProducerFilter
    from mirrorless.batches.records import Records


class CommittedBatch(NamedTuple):
    """A batch, or a set of messages of formats v0 and v1; markers and aborted batches have a record count of 0.

    `is_dense` says that each of its offsets has its record. `leader_epoch` is -1 if unknown. `opened` reads
    the records and raises `FormatError`.
    """

    base_offset: int
    next_offset: int
    record_count: int
    leader_epoch: int
    is_dense: bool
    opened: Callable[[], Records]
    header: BatchHeader | None = None

    def offsets(self, start: int) -> Sequence[int]:
        """Offsets of its committed records from `start` on; raises `FormatError`."""
        if not self.record_count:
            return ()
        if self.is_dense:
            return range(max(self.base_offset, start), self.next_offset)
        return self.opened().wanted(start).offsets


def committed_batches(
    records: bytes | memoryview,
    aborted: Iterable[tuple[int, int]],
    *,
    start: int,
    producers: ProducerFilter = EVERY_PRODUCER,
) -> Iterator[CommittedBatch]:
    """Yield each batch of an answer that reaches to offset `start` or beyond.

    `aborted` are pairs of producer id and first offset, from the answer. Batches of other `producers` count as aborted
    ones. Raises `FormatError` after what can be read;
    with a magic below 2 where messages of v0 or v1 follow v2 batches, which only a next fetch can begin with.
    """
    begins = legacy_end(records)
    for _, opened in messages(records[:begins], wanted_from=start):
        if opened.offsets:
            first, end, count = opened.offsets[0], opened.offsets[-1] + 1, len(opened.offsets)
            yield CommittedBatch(first, end, count, -1, count == end - first, partial(opened.wanted, start))
    transactions = AbortedTransactions(aborted)
    for header, at in scan(records, begins):
        dropped = transactions.drops(header, records, at) or not producers.selects(header)
        if header.next_offset > start:
            yield CommittedBatch(
                header.base_offset,
                header.next_offset,
                0 if dropped else header.record_count,
                header.partition_leader_epoch,
                header.is_dense,
                partial(_opened, header, records, at),
                header,
            )


def _opened(header: BatchHeader, records: bytes | memoryview, at: int) -> Records:
    return records_of(header, body_of(records, at, header))


@dataclass(slots=True)
class LogPosition:
    """How far a log was read: its next offset, and the leader epoch of the batch before it (-1: unknown).

    `cleaned` says that compaction removed records from what was read: an offset that no batch has, markers included.
    Only records of `producers` are read.
    """

    offset: int
    leader_epoch: int = field(default=-1, kw_only=True)
    cleaned: bool = field(default=False, kw_only=True)
    producers: ProducerFilter = field(default=EVERY_PRODUCER, kw_only=True)

    def read(self, records: bytes | memoryview, aborted: Iterable[tuple[int, int]]) -> Iterator[CommittedBatch]:
        """Yield the batches of an answer to a fetch from here, and move past each once the next is requested.

        Raises `FormatError` where no later fetch would help.
        """
        before = self.offset
        try:
            for batch in committed_batches(records, aborted, start=before, producers=self.producers):
                self.cleaned |= batch.base_offset > self.offset or not batch.is_dense
                yield batch
                self.offset, self.leader_epoch = batch.next_offset, batch.leader_epoch
        except FormatError as error:
            if error.magic == 2 or self.offset == before:  # else the next answer begins with messages of v0 or v1
                raise


@dataclass(slots=True)
class RecordCounter(LogPosition):
    """Counts the records from `offset` on; `counts` has their number before each offset of `until`, in ascending order.

    `records` is the number counted so far.
    """

    until: Sequence[int]
    counts: dict[int, int] = field(default_factory=dict, init=False)
    records: int = field(default=0, init=False)

    @property
    def is_complete(self) -> bool:
        """Whether every one of `until` has its count."""
        return len(self.counts) == len(self.until)

    def add(self, batch: CommittedBatch) -> None:
        """Count one batch, the next one of `read`; raises `FormatError`."""
        inside = self._left_up_to(batch.next_offset - 1)
        if batch.record_count and (inside or batch.base_offset < self.offset):
            offsets = batch.offsets(self.offset)
            for offset in inside:
                self.counts[offset] = self.records + bisect_left(offsets, offset)
            self.records += len(offsets)
        else:
            for offset in inside:
                self.counts[offset] = self.records
            self.records += batch.record_count
        for offset in self._left_up_to(batch.next_offset):
            self.counts[offset] = self.records

    def end_at(self, end: int, *, believed: bool) -> None:
        """Count as if the log had no more records up to `end`, and after it only if that is `believed`."""
        for offset in self._left_up_to(self.until[-1] if believed else end):
            self.counts[offset] = self.records

    def _left_up_to(self, last: int) -> Sequence[int]:
        """Those of `until` without a count, up to and including `last`."""
        begin = len(self.counts)
        if begin < len(self.until) and self.until[begin] <= last:
            return self.until[begin : bisect_right(self.until, last, begin)]
        return ()


@dataclass(slots=True)
class OffsetSearch(RecordCounter):
    """Counts the other way round: `until` are numbers of records, `counts` the offset of the record after so many."""

    def add(self, batch: CommittedBatch) -> None:
        """Look for records in one batch, the next one of `read`; raises `FormatError`."""
        offsets = batch.offsets(self.offset)
        for number in self._left_up_to(self.records + len(offsets) - 1):
            self.counts[number] = offsets[number - self.records]
        self.records += len(offsets)

    def end_at(self, end: int, *, believed: bool) -> None:  # noqa: ARG002 - records that are not there are not found
        """Take the offset that was reached as the one after the last record."""
        for number in self._left_up_to(self.records):
            self.counts[number] = self.offset


@dataclass(slots=True)
class SearchUpTo(OffsetSearch):
    """Searches up to the offset `limit`, which is the answer for records that are not before it."""

    limit: int

    def add(self, batch: CommittedBatch) -> None:
        """Look for records in one batch, the next one of `read`; raises `FormatError`."""
        OffsetSearch.add(self, batch)
        if batch.next_offset >= self.limit:
            self._fill()

    def end_at(self, end: int, *, believed: bool) -> None:  # noqa: ARG002 - a shorter log says nothing of the rest
        """Take the limit for all records that were not found, if the log was read up to it."""
        if end >= self.limit:
            self._fill()

    def _fill(self) -> None:
        self.counts = {number: min(offset, self.limit) for number, offset in self.counts.items()}
        for number in self.until[len(self.counts) :]:
            self.counts[number] = self.limit
