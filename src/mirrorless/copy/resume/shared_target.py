"""Finds what a copy appended to a remote partition to which other producers append too.

Elsewhere the length of the target's log says how many records were appended after a known pair of offsets. Here the
headers of the copy's own batches say it: its producer id, and sequences that count its records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import SEQUENCES
from mirrorless.batches.record_counter import LogPosition
from mirrorless.copy.resume.decision import OwnRecords
from mirrorless.log_walk import LogEnd, RecordsGone, committed
from mirrorless.protocol.cluster_client import READ_UNCOMMITTED
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from mirrorless.batches.header import BatchHeader
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import RemoteLogState
    from mirrorless.protocol.cluster_client import ClusterClient


class _KnownPair(NamedTuple):
    """The target's offset after a record of the copy, and the next record's sequence in the epoch."""

    downstream: int
    sequence: int


async def with_own_records(
    target: ClusterClient, copy: PartitionCopy, state: RemoteLogState, *, log_start: int
) -> RemoteLogState:
    """Return the state with `own`, which is searched from the newest known pair on, from `log_start` at least.

    The target is read only if the leader says, or cannot say, that more was appended. Raises `NotNow` while records on
    the leader are not replicated, `TROUBLE` and kafka-python's errors where the log cannot be read.
    """
    epoch = state.epoch if state.remembered and state.epoch is not None else copy.newest_epoch
    known = known_pair(copy, epoch)
    if known is not None and known.downstream > state.log_end and not state.remembered and epoch in copy.announced:
        known = _KnownPair(copy.announced[epoch].downstream, 0)  # what the target has left of the epoch is searched
    if known is None or known.downstream > state.log_end:
        return state  # nothing was copied, or the target lost it
    ahead: int | None = None
    if state.remembered and state.last_sequence is not None:
        ahead = (state.last_sequence + 1 - known.sequence) % SEQUENCES
        if not 0 < ahead < SEQUENCES // 2:
            return replace(state, own=_none(known, known.downstream))
    progress = copy.known_progress
    first = known.downstream
    if not state.remembered and progress is not None and progress.last_downstream is not None:
        first = min(first, progress.last_downstream + 1)
    search = _Search(copy, epoch=epoch, until=state.last_sequence if state.remembered else None)
    await search.run(target, max(first, log_start), end=state.log_end + (state.unreplicated or 0))
    if not state.remembered:
        last = search.last
        if last is not None and last.producer_epoch != epoch:
            epoch, known = last.producer_epoch, known_pair(copy, last.producer_epoch) or known
        state = replace(
            state,
            epoch=None if last is None else last.producer_epoch,
            last_sequence=None if last is None else last.last_sequence,
            foreign_tail=False,
            unreplicated=None if state.unreplicated is None else 0,
        )
    if ahead is not None and not search.is_over and (search.cleaned or log_start > known.downstream):
        # Retention or the cleaner deleted the last of them, which only happens to replicated records.
        return replace(state, own=OwnRecords(known.downstream, ahead, search.end - 1, search.end))
    return replace(state, own=search.found(epoch, known, is_complete=log_start <= known.downstream))


def _none(known: _KnownPair, end: int) -> OwnRecords:
    return OwnRecords(known.downstream, 0, known.downstream - 1, end)


def known_pair(copy: PartitionCopy, epoch: int) -> _KnownPair | None:
    """Return the newest known pair of an epoch: its progress, else its announcement; None if neither is known."""
    progress = copy.known_progress
    if progress is not None and progress.epoch == epoch and progress.sequence is not None:
        return _KnownPair(0 if progress.last_downstream is None else progress.last_downstream + 1, progress.sequence)
    return _KnownPair(copy.announced[epoch].downstream, 0) if epoch in copy.announced else None


class _Search:
    """Reads headers of a copy's batches; `last` is the last one, `until` the sequence at which the search ends."""

    def __init__(self, copy: PartitionCopy, *, epoch: int, until: int | None) -> None:
        self._copy = copy
        self._epoch = epoch
        self._until = until
        self.end = 0
        self.cleaned = False
        self.last: BatchHeader | None = None
        self._first: BatchHeader | None = None
        self._missing = 0

    async def run(self, target: ClusterClient, start: int, *, end: int) -> None:
        """Read from offset `start` to the sequence `until`, or at least to the offset `end`."""
        place, position = self._copy.remote_place, LogPosition(start, producers=self._copy.own)
        try:
            async for batch in committed(target, place, position, isolation=READ_UNCOMMITTED):
                if isinstance(batch, LogEnd):
                    break
                if batch.header is not None:
                    self._take(batch.header)
                if self.is_over:
                    break
        except RecordsGone as gone:
            raise NotNow(f"{place[0]}-{place[1]} of the target cannot be read: {gone.reason}") from gone
        self.end, self.cleaned = position.offset, position.cleaned
        if self._until is None and position.offset < end:
            raise NotNow(
                f"{end - position.offset} records on the leader of {place[0]}-{place[1]} are not replicated yet"
            )

    def found(self, epoch: int, known: _KnownPair, *, is_complete: bool) -> OwnRecords:
        """Return the records of `epoch` after a known pair; not `is_complete`: retention deleted the first of them."""
        last, first = self.last, self._first
        if last is None or first is None or last.producer_epoch != epoch:
            return _none(known, max(self.end, known.downstream))
        missing = 0
        if is_complete and not self.cleaned:
            missing = self._missing + _distance(known.sequence, first.base_sequence)
        sequence, offset = last.last_sequence, last.last_offset
        if self._until is not None and _distance(last.base_sequence, self._until) < last.record_count:
            sequence, offset = self._until, last.base_offset + _distance(last.base_sequence, self._until)
        return OwnRecords(known.downstream, _distance(known.sequence, sequence + 1) - missing, offset, offset + 1)

    def _take(self, header: BatchHeader) -> None:
        if self._until is not None and header.producer_epoch != self._epoch:
            return
        before = self.last
        if before is None or before.producer_epoch != header.producer_epoch:
            self._first, self._missing = header, 0
        else:
            self._missing += _distance(before.last_sequence + 1, header.base_sequence)
        self.last = header

    @property
    def is_over(self) -> bool:
        """Whether the record with the last sequence was found."""
        last, until = self.last, self._until
        return last is not None and until is not None and _distance(last.base_sequence, until) < last.record_count


def _distance(first: int, second: int) -> int:
    """How many sequences `second` is after `first`; 0 if it is before."""
    distance = (second - first) % SEQUENCES
    return distance if distance < SEQUENCES // 2 else 0
