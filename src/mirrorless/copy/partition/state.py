"""One partition's copy while a lease lasts: what was fetched, what is on its way, what the target acknowledged."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import SEQUENCES
from mirrorless.batches.reverse_copy import NO_OPPOSITE, NO_PRODUCER, OppositeCopy
from mirrorless.copy.partition.loop_check import opposite_copy
from mirrorless.copy.partition.send_window import SendWindow
from mirrorless.copy.partition.stats import PartitionStats
from mirrorless.copy.progress.records import Progress
from mirrorless.errors import AppendRefused, Gap, GapKind, PartitionError

if TYPE_CHECKING:
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.copy.progress.records import Announcement, Halt, Known, LeaveOut, Stop


class PartitionState(StrEnum):
    """What a partition's copy is doing, as reports show it."""

    RESUMING = "resuming"
    COPYING = "copying"
    CAUGHT_UP = "caught up"
    WAITING = "waiting"
    """Of a report alone: caught up, but for what an open transaction holds back."""
    HALTED = "halted"


READABLE = (PartitionState.COPYING, PartitionState.CAUGHT_UP)
"""States of a copy that knows where it is, and reads on from there."""


class Pending(NamedTuple):
    """A stamped batch that the target has not acknowledged; offsets are upstream, the timestamp its latest record's.

    `leader_epoch` is the source's at its last record, or a later one that was fetched with it.
    """

    batch: Stamped
    base_offset: int
    last_offset: int
    record_count: int
    base_sequence: int
    max_timestamp_ms: int
    leader_epoch: int


class OpenTransaction(NamedTuple):
    """One on the source that has been open at upstream `offset` since then (`time.monotonic`).

    It holds back what lies from there to `log_end`, the high watermark.
    """

    offset: int
    since: float
    log_end: int


class Left(NamedTuple):
    """What a copy leaves to the one in its place: what no report told yet, how far it came, where that is sure.

    And the transaction that holds it back, if there is one.
    """

    stats: PartitionStats
    reached: Progress | None
    open: OpenTransaction | None

    def beyond(self, known: Progress | None) -> Progress | None:
        """How far the copy is: what the progress topic said some time ago, or, in the same epoch, what came since."""
        if self.reached is None or known is None or self.reached.epoch != known.epoch:
            return known
        return max(self.reached, known, key=_how_far)


def _how_far(progress: Progress) -> tuple[int, int]:
    return -1 if progress.epoch is None else progress.epoch, progress.last_offset


@dataclass(slots=True, eq=False)
class PartitionCopy:
    """State of one partition's copy; only the lease that owns it changes it.

    `row` may be another lease's later, but of the same partition and remote topic: `place` and `remote_place`.
    `fetch_from` is the next upstream offset to ask for, `leader_epoch` that of the record before it (-1: not known),
    `next_sequence` that of the next record to stamp. `acked` is what the target acknowledged, `stored` what the
    progress topic said at first, `written` what went into it. `source_id` and `remote_id` are the topics' own ids.
    `halt` and `stop` say where and why the partition halted before, as the progress topic has it.

    `suspected` is a gap that was seen and is looked at again, `detour` what a new epoch will have to pass over, seen in
    epoch `detour_from`. `verifies` says whether checksums are compared here, since the target refused one, `doubted` is
    the offset of a batch that came damaged once. `opposite_id` is the producer that would copy the remote partition
    back, `opposite` says from where on that is a loop. `tally` is what the lease's report will say was done, `open` the
    transaction that holds back what the source has, None if there is none.
    """

    row: LeaseRow
    place: Place = field(init=False)
    remote_place: Place = field(init=False)
    producer_id: int
    announced: dict[int, Announcement]
    halt: Halt | None = None
    stop: Stop | None = None
    state: PartitionState = PartitionState.RESUMING
    epoch: int = 0
    fetch_from: int = 0
    leader_epoch: int = -1
    next_sequence: int = 0
    source_id: UUID | None = None
    remote_id: UUID | None = None
    suspected: Gap | None = None
    detour: Gap | LeaveOut | None = None
    detour_from: int = -1
    verifies: bool = False
    doubted: int | None = None
    queue: deque[Pending] = field(default_factory=deque)
    queued_bytes: int = 0
    window: SendWindow = field(default_factory=SendWindow)
    node: int = -1
    in_doubt: bool = False
    empty_answers: int = 0
    max_batch_bytes: int | None = None
    acked: Progress | None = None
    stored: Progress | None = None
    written: Progress | None = None
    written_at: float = 0.0
    attempts: int = 0
    retry_at: float = 0.0
    source_end: int = 0
    opposite_id: int = NO_PRODUCER
    opposite: OppositeCopy = NO_OPPOSITE
    open: OpenTransaction | None = None
    stats: PartitionStats = field(default_factory=PartitionStats)
    error: str | None = None

    def __post_init__(self) -> None:
        self.place = self.row.topic, self.row.partition
        self.remote_place = self.row.remote_topic, self.row.partition

    def goes_on(self, row: LeaseRow) -> bool:
        """Whether this copy is what `row` asks for: it needs only to go on, and nobody else said where it should.

        One that has nothing on its way, and of which nothing was acknowledged since the last report, does not: what the
        target lost, and that it forgot our producer, shows only where it is asked. Nor does one that halted, which gets
        another chance.
        """
        if self.state not in READABLE or self.in_doubt or self.error is not None:
            return False
        if self.suspected is not None or self.detour is not None:
            return False
        if self.stats.latency.count == 0 and not self.in_flight:
            return False
        said = row.said()
        if row.remote_topic != self.row.remote_topic or said.halt != self.halt:
            return False
        if any(epoch > self.epoch for epoch in said.announced.keys() - self.announced.keys()):
            return False
        return (
            said.progress is not None
            and said.progress.epoch == self.epoch
            and said.progress.last_offset < self.fetch_from
        )

    def note_open_transaction(self, stable: int, high: int, *, now: float) -> None:
        """Note where the source's last stable offset and its high watermark are."""
        if high <= stable:
            self.open = None
        else:
            since = self.open.since if self.open is not None and self.open.offset == stable else now
            self.open = OpenTransaction(stable, since, high)

    @property
    def is_behind(self) -> bool:
        """Whether the source is known to have records that were not fetched."""
        return self.fetch_from < self.source_end

    @property
    def held_by(self) -> OpenTransaction | None:
        """The open transaction, if all that is left to copy lies behind it."""
        readable = self.state in READABLE and self.open is not None and self.open.offset <= self.fetch_from
        return self.open if readable else None

    def is_at(self, downstream: int) -> bool:
        """Whether the copy is known to end right before a downstream offset, with no newer epoch to begin."""
        known = self.known_progress
        if known is None or known.epoch is None or known.last_downstream is None:
            return False
        return known.epoch == self.newest_epoch and known.last_downstream + 1 == downstream

    def left(self) -> Left:
        """What whoever begins in this copy's place should know."""
        return Left(self.stats, None if self.in_doubt else self.progress(), self.open)

    def error_at_fetch(self, reason: str) -> PartitionError:
        """An error at the next upstream offset to fetch."""
        return PartitionError(reason, topic=self.row.topic, partition=self.row.partition, offset=self.fetch_from)

    def gap(self, reason: str, kind: GapKind, *, offset: int | None = None, records: int | None = None) -> Gap:
        """A gap of this partition, at an upstream offset."""
        topic, partition = self.place
        return Gap(reason, kind=kind, topic=topic, partition=partition, offset=offset, records=records)

    def error_at_append(self, reason: str) -> AppendRefused:
        """An error of the target that is not about one offset."""
        return AppendRefused(reason, topic=self.row.topic, partition=self.row.partition)

    @property
    def known_progress(self) -> Progress | None:
        """The progress to go on from: what was acknowledged in this lease, else what the progress topic said."""
        return self.acked if self.acked is not None else self.stored

    def learn(self, known: Known | None) -> None:
        """Take over what the progress topic says now."""
        self.announced |= known.announced if known is not None else {}
        self.halt = known.halt if known is not None else None
        self.stored = known.progress if known is not None else None
        if self.stored is not None and self.acked is not None:
            self.acked = max(self.acked, self.stored, key=_how_far)

    def is_beyond(self, stop: Stop) -> bool:
        """Whether the copy is behind the place where it had halted, or in a newer epoch."""
        at = self.acked
        if at is None or at.epoch is None or self.in_doubt:
            return False
        return at.epoch > stop.epoch or (at.epoch == stop.epoch and at.last_offset >= stop.offset)

    @property
    def halted_at(self) -> Halt | None:
        """The gap at which this incarnation halted before, None if there is none or it was left behind."""
        halt = self.halt
        stands = halt is not None and halt.stands(newest_epoch=self.newest_epoch, progress=self.known_progress)
        return halt if stands else None

    @property
    def newest_epoch(self) -> int:
        """The newest epoch that is known of, -1 if there is none."""
        progress = self.known_progress
        known = -1 if progress is None or progress.epoch is None else progress.epoch
        return max([known, *self.announced])

    def resume_at(
        self,
        offset: int,
        *,
        epoch: int,
        sequence: int,
        last_downstream: int,
        node: int,
        leader_epoch: int | None = None,
    ) -> None:
        """Begin to copy at upstream `offset`, whose first record gets `sequence`, by way of the target's leader `node`.

        The first batch goes alone, see `SendWindow`.
        """
        self.in_doubt = False
        self.node = node
        self.window.restart()
        self.epoch = epoch
        self.opposite = opposite_copy(self.opposite_id, self.announced.get(epoch), self.row)
        self.fetch_from = offset
        self.next_sequence = sequence
        self.leader_epoch = -1 if leader_epoch is None else leader_epoch
        self.acked = Progress(
            last_offset=offset - 1,
            sequence=sequence,
            epoch=epoch,
            last_downstream=last_downstream,
            leader_epoch=leader_epoch,
        )
        self.state = PartitionState.COPYING

    def enqueue(self, pending: Pending, *, now_ms: int) -> None:
        """Take a stamped batch that follows everything taken before and was fetched at `now_ms`."""
        self.stats.came(age_ms=now_ms - pending.max_timestamp_ms, now_ms=now_ms)
        self.queue.append(pending)
        self.queued_bytes += pending.batch.size_bytes
        self.fetch_from = pending.last_offset + 1
        self.leader_epoch = pending.leader_epoch
        self.next_sequence = (self.next_sequence + pending.record_count) % SEQUENCES

    @property
    def in_flight(self) -> int:
        """Batches that were sent and not answered."""
        return self.window.in_flight

    def next_to_send(self) -> Pending:
        """Take the oldest batch out of the queue, to be sent."""
        pending = self.queue.popleft()
        self.queued_bytes -= pending.batch.size_bytes
        self.window.sent(pending.max_timestamp_ms, now=time.monotonic())
        return pending

    def acknowledge(self, pending: Pending, base_offset: int, *, now_ms: int) -> None:
        """Note that the target holds `pending` from `base_offset` on; raises `Gap` where it cannot."""
        assert self.acked is not None
        last = -1 if self.acked.last_downstream is None else self.acked.last_downstream
        if self.in_doubt:
            # Something before it failed; the resume will count what arrived all the same.
            self._refuse_hole(pending, base_offset, expected=last + 1)
            return
        if self.acked.sequence != pending.base_sequence or base_offset <= last:
            raise self.gap(
                f"the target took records with sequence {pending.base_sequence} to its offset {base_offset}, but "
                f"sequence {self.acked.sequence} comes next, behind offset {last}: the remote topic was created again",
                GapKind.TARGET_LOST,
                offset=pending.base_offset,
            )
        if base_offset > last + 1:
            self._note_foreign(base_offset - last - 1, base_offset)
        batch, first, last_offset, records, sequence, max_timestamp_ms, leader_epoch = pending
        self.acked = Progress(
            last_offset,
            (sequence + records) % SEQUENCES,
            self.epoch,
            base_offset + records - 1,
            None if leader_epoch < 0 else leader_epoch,
        )
        self.stats.arrived(first, records, batch.size_bytes, latency_ms=now_ms - max_timestamp_ms, now_ms=now_ms)
        self.window.acknowledged(max_timestamp_ms, now_ms=now_ms, now=time.monotonic(), more=bool(self.queue))
        self.attempts = 0
        self.suspected = self.doubted = None

    def _refuse_hole(self, pending: Pending, base_offset: int, *, expected: int) -> None:
        """Raise `Gap` where a batch was appended in the place of one before it, which therefore is not there."""
        assert self.acked is not None
        assert self.acked.sequence is not None
        before = (pending.base_sequence - self.acked.sequence) % SEQUENCES
        if before < SEQUENCES // 2 and expected <= base_offset < expected + before:
            missing = expected + before - base_offset
            raise self.gap(
                f"the target appended upstream offset {pending.base_offset} at its offset {base_offset}, without "
                f"{missing} records before it",
                GapKind.TARGET_HOLE,
                offset=self.acked.last_offset + 1,
                records=missing,
            )

    def _note_foreign(self, offsets: int, before: int) -> None:
        """The target is dense as long as nobody else writes there; a transaction's marker takes an offset as well."""
        if not self.stats.foreign:
            remote, partition = self.remote_place
            self.stats.events.append(
                f"{remote}-{partition}: {offsets} offsets before {before} were taken by another writer; if that was "
                "another run of this flow, which copied records too old for the target to tell two runs apart, these "
                "are there twice; if it was anything else, consumers will find records that the source does not have"
            )
        self.stats.foreign += offsets

    def drop_queue(self) -> None:
        """Forget what was not sent; it will be fetched again."""
        self.queue.clear()
        self.queued_bytes = 0

    def progress(self) -> Progress | None:
        """What the progress topic should say now; markers and aborted records behind the last copied one are done."""
        if self.acked is None or self.acked.sequence != self.next_sequence:
            return self.acked  # something is stamped and not acknowledged
        if self.fetch_from <= self.acked.last_offset + 1:
            return self.acked
        return Progress(
            last_offset=self.fetch_from - 1,
            sequence=self.acked.sequence,
            epoch=self.acked.epoch,
            last_downstream=self.acked.last_downstream,
            leader_epoch=None if self.leader_epoch < 0 else self.leader_epoch,
        )


def cut_at(copy: PartitionCopy, offset: int) -> Gap:
    """The gap of a source log that is another one from upstream `offset` on, as the leader epoch tells."""
    return copy.gap(
        f"the source's log was cut at {offset} and written anew from there", GapKind.TRUNCATED, offset=offset
    )


def ends_before(copy: PartitionCopy, end: int, position: int) -> Gap:
    """The gap of a source log that ends before the position of its copy."""
    return copy.gap(
        f"the source ends at {end}, {position - end} offsets before the copy's", GapKind.TRUNCATED, offset=end
    )
