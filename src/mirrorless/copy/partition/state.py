"""One partition's copy during a lease: its state, its position, its batches on their way to the target.

Every change is a method of `PartitionCopy`; all other modules only read it. `lifecycle` has the states.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mirrorless.batches.header import SEQUENCES
from mirrorless.batches.producers import EVERY_PRODUCER, NO_OPPOSITE, NO_PRODUCER, OppositeCopy, ProducerFilter
from mirrorless.copy.partition.errors import hole_before, unexpected_append
from mirrorless.copy.partition.lifecycle import READABLE, TRANSITIONS, PartitionState
from mirrorless.copy.partition.loop_check import opposite_copy
from mirrorless.copy.partition.open_transaction import OpenTransaction, open_transaction
from mirrorless.copy.partition.send_window import SendWindow
from mirrorless.copy.partition.stats import PartitionStats
from mirrorless.errors import Gap, GapKind
from mirrorless.progress.records import Progress

if TYPE_CHECKING:
    from uuid import UUID

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.exact_state import ExactState
    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.progress.records import Announcement, Halt, Known, LeaveOut

_FIRST_S: Final = 0.02
_MAX_S: Final = 2.0
"""How long partitions may wait once a link is back."""
_TOGETHER_S: Final = 0.25
"""Long pauses end at multiples of this: partitions that are due at once are asked for with one request per leader."""
_MAX_DOUBLINGS: Final = 10


@dataclass(slots=True)
class Retry:
    """Failures since the last acknowledged batch, and the time of the next attempt (`time.monotonic`)."""

    attempts: int = 0
    due: float = 0.0

    def failed(self, now: float) -> None:
        """Count a failure; the pause before the next attempt doubles up to 2 s, with jitter."""
        self.attempts += 1
        backoff = min(_MAX_S, _FIRST_S * 2 ** min(self.attempts, _MAX_DOUBLINGS))
        self.due = now + backoff * random.uniform(0.5, 1)  # noqa: S311 -- jitter, no secret
        if backoff >= 2 * _TOGETHER_S:
            self.due = math.ceil(self.due / _TOGETHER_S) * _TOGETHER_S

    def reset(self) -> None:
        """Forget the failures: the next pause is the shortest again."""
        self.attempts = 0

    def never(self) -> None:
        """Make no further attempt in this lease."""
        self.due = math.inf

    @property
    def is_never(self) -> bool:
        """Whether no further attempt is made in this lease."""
        return self.due == math.inf


@dataclass(slots=True)
class IntakeLimits:
    """`max_batch_bytes`: larger batches are split, None is no limit. `verifies`: checksums are compared.

    `damaged_at` is the source offset of a batch that arrived damaged once.
    """

    max_batch_bytes: int | None = None
    verifies: bool = False
    damaged_at: int | None = None

    def limit(self, max_batch_bytes: int) -> None:
        """Split batches larger than this."""
        self.max_batch_bytes = max_batch_bytes

    def unlimit(self) -> None:
        """Split batches no more."""
        self.max_batch_bytes = None

    def verify(self) -> None:
        """Compare the checksums of what is fetched from here on."""
        self.verifies = True

    def note_damaged(self, offset: int) -> bool:
        """Note a batch that arrived damaged, and return whether the same one had before."""
        again = self.damaged_at == offset
        self.damaged_at = offset
        return again


@dataclass(slots=True, eq=False)
class PartitionCopy:
    """State of one partition's copy. Changed only by its own methods, on the event loop of its lease.

    `row` may become a later lease's, of the same partition and remote topic: `place` and `remote_place`. `source_id`
    and `remote_id` are the topics' own ids when the copy was resumed, `node` was then the target's leader.

    `fetch_from` is the next source offset to fetch, `leader_epoch` that of the record before it (-1: not known),
    `next_sequence` that of the next record to stamp. `acked` is the progress acknowledged by the target, `stored` what
    the progress topic had at first, `written` what was written to it, at `written_at` (`time.monotonic`). `halt` and
    `stop` are the records of the progress topic about where and why the partition halted before.

    `in_doubt`: an append failed, so the target has to be asked what it holds; answers to other appends do not count.
    `suspected` is a gap that was seen once and is looked for again. `skip` is what the next epoch has to pass over; a
    gap was seen in epoch `skip_from`. `opposite_id` is the producer that would copy the remote partition back to the
    source, `opposite` says from which offset on its batches are a loop. `local` selects the batches that are copied:
    with `mirrorless.both.directions=skip` those that no copy appended. `exact` is None unless offsets are identical.
    """

    row: LeaseRow
    place: TopicPartition = field(init=False)
    remote_place: TopicPartition = field(init=False)
    producer_id: int
    announced: dict[int, Announcement]
    halt: Halt | None = None
    stop: Halt | None = None
    state: PartitionState = PartitionState.RESUMING
    epoch: int = 0
    fetch_from: int = 0
    leader_epoch: int = -1
    next_sequence: int = 0
    source_id: UUID | None = None
    remote_id: UUID | None = None
    suspected: Gap | None = None
    skip: Gap | LeaveOut | None = None
    skip_from: int = -1
    queue: deque[Pending] = field(default_factory=deque)
    queued_bytes: int = 0
    window: SendWindow = field(default_factory=SendWindow)
    node: int = -1
    in_doubt: bool = False
    empty_answers: int = 0
    intake: IntakeLimits = field(default_factory=IntakeLimits)
    acked: Progress | None = None
    stored: Progress | None = None
    written: Progress | None = None
    written_at: float = 0.0
    retry: Retry = field(default_factory=Retry)
    source_end: int = 0
    opposite_id: int = NO_PRODUCER
    opposite: OppositeCopy = NO_OPPOSITE
    local: ProducerFilter = EVERY_PRODUCER
    open_transaction: OpenTransaction | None = None
    stats: PartitionStats = field(default_factory=PartitionStats)
    error: str | None = None
    exact: ExactState | None = None

    def __post_init__(self) -> None:
        self.place = self.row.topic, self.row.partition
        self.remote_place = self.row.remote_topic, self.row.partition

    # Queries

    @property
    def is_behind(self) -> bool:
        """Whether the source is known to have records that were not fetched."""
        return self.fetch_from < self.source_end

    @property
    def in_flight(self) -> int:
        """Batches that were sent and not answered."""
        return self.window.in_flight

    @property
    def shares_target(self) -> bool:
        """Whether other producers append to the remote partition too (`mirrorless.both.directions=skip`)."""
        return self.row.origins is not None

    @property
    def own(self) -> ProducerFilter:
        """Selects the batches that this copy appended to the target."""
        return ProducerFilter(frozenset({self.producer_id}), wanted=True)

    @property
    def held_by(self) -> OpenTransaction | None:
        """The open transaction that holds back everything that is left to copy, if there is one."""
        held_by = self.open_transaction
        return held_by if self.state in READABLE and held_by is not None and held_by.offset <= self.fetch_from else None

    @property
    def known_progress(self) -> Progress | None:
        """The progress to resume from: what the target acknowledged in this lease, else what the progress topic had."""
        return self.acked if self.acked is not None else self.stored

    @property
    def newest_epoch(self) -> int:
        """The newest epoch that is known of, -1 if there is none."""
        progress = self.known_progress
        known = -1 if progress is None or progress.epoch is None else progress.epoch
        return max([known, *self.announced])

    @property
    def halted_at(self) -> Halt | None:
        """The gap at which this epoch halted before, None if there is none or the copy has passed it."""
        halt = self.halt
        stands = halt is not None and halt.stands(newest_epoch=self.newest_epoch, progress=self.known_progress)
        return halt if stands else None

    def progress(self) -> Progress | None:
        """Return the progress to write; once all is acknowledged, it includes markers and aborted records."""
        if self.acked is None or self.acked.sequence != self.next_sequence or self.exact is not None:
            return self.acked  # something is stamped and not acknowledged, or may be
        if self.fetch_from <= self.acked.last_offset + 1:
            return self.acked
        return Progress(
            last_offset=self.fetch_from - 1,
            sequence=self.acked.sequence,
            epoch=self.acked.epoch,
            last_downstream=self.acked.last_downstream,
            leader_epoch=None if self.leader_epoch < 0 else self.leader_epoch,
        )

    def gap(self, reason: str, kind: GapKind, *, offset: int | None = None, records: int | None = None) -> Gap:
        """Return a gap of this partition, at a source offset."""
        topic, partition = self.place
        return Gap(reason, kind=kind, topic=topic, partition=partition, offset=offset, records=records)

    # State changes

    def _enter(self, state: PartitionState) -> None:
        if state is not self.state:
            assert state in TRANSITIONS[self.state], f"{self.place}: {self.state} to {state}"
            self.state = state

    def resume_at(
        self,
        offset: int,
        *,
        epoch: int,
        sequence: int,
        last_downstream: int,
        node: int,
        leader_epoch: int | None = None,
        is_written: bool = False,
    ) -> None:
        """Copy from source `offset` on, whose first record gets `sequence`, by the target's leader `node`.

        The first batch is sent alone, see `SendWindow`. `is_written`: there is nothing new for the progress topic.
        """
        self.in_doubt = False
        self.error = None
        self.node = node
        self.window.restart()
        self.epoch = epoch
        if self.opposite_id not in self.local.ids:
            self.opposite = opposite_copy(self.opposite_id, self.announced, epoch, self.row)
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
        if is_written:
            self.written = self.acked
        self._enter(PartitionState.COPYING)

    def settle(self) -> None:
        """Enter the state of a copy with nothing queued or in flight: copying or caught up; halted stays halted."""
        if self.state is not PartitionState.HALTED:
            self._enter(PartitionState.COPYING if self.is_behind else PartitionState.CAUGHT_UP)

    def interrupt(self, reason: str, *, now: float) -> bool:
        """Have the target asked again after a pause; False if the copy is halted, and remains so."""
        self.in_doubt = True
        if self.state is PartitionState.HALTED:
            return False
        self._enter(PartitionState.RESUMING)
        self.error = reason
        self.retry.failed(now)
        return True

    def halt_with(self, error: str, *, finish_queue: bool = False) -> None:
        """Halt for the rest of the lease; with `finish_queue`, what was fetched before is still appended."""
        self._enter(PartitionState.HALTED)
        self.error = error
        if not finish_queue:
            self.in_doubt = True

    def close(self) -> None:
        """Halt because another copy takes over the partition, or none does."""
        self._enter(PartitionState.HALTED)

    def suspend(self) -> None:
        """Do not resume an interrupted copy in this lease."""
        self.retry.never()

    def note_problem(self, error: str) -> None:
        """Set the error that reports show, without a change of state."""
        self.error = error

    # Resume

    def learn(self, known: Known | None) -> None:
        """Take over what the progress topic has by now."""
        self.announced |= known.announced if known is not None else {}
        self.halt = known.halt if known is not None else None
        self.stored = known.progress if known is not None else None
        if self.exact is not None:
            self.exact.learn(known.claim if known is not None else None)
        if self.stored is not None and self.acked is not None:
            self.acked = max(self.acked, self.stored, key=attrgetter("order"))

    def learn_epoch(self, announcement: Announcement) -> None:
        """Take over an announcement."""
        self.announced[announcement.epoch] = announcement

    def bind_topics(self, source_id: UUID | None, remote_id: UUID | None) -> None:
        """Note the ids of the topics that the copy is resumed with."""
        self.source_id, self.remote_id = source_id, remote_id

    def suspect(self, gap: Gap) -> None:
        """Note a gap that is looked for again before it counts."""
        self.suspected = gap

    def skip_gap(self, gap: Gap) -> None:
        """Have the next epoch begin after a gap."""
        self.skip, self.skip_from = gap, self.newest_epoch
        self.retry.reset()

    def skip_records(self, left_out: LeaveOut) -> None:
        """Have the next epoch begin after records that cannot be copied."""
        self.skip = left_out

    def end_skip(self, *, keep_suspicion: bool = False) -> None:
        """Note that nothing is left to skip: an epoch that does so was announced, or is not needed."""
        self.skip = None
        if not keep_suspicion:
            self.suspected = None

    # Fetch

    def note_response(self, *, stable: int, high: int, empty: bool, bounded: bool) -> None:
        """Note a leader's response: its end as in `note_end`, and whether the response had no records."""
        self.suspected = None  # the records that were missing are there
        self.note_end(stable=stable, high=high, bounded=bounded)
        self.empty_answers = self.empty_answers + 1 if empty and stable > self.fetch_from else 0

    def note_end(self, *, stable: int, high: int, bounded: bool) -> None:
        """Note the last stable offset and the high watermark of the source's leader; a `bounded` copy has its end."""
        if bounded:
            high = min(high, self.source_end)
        else:
            self.source_end = stable
        if high > stable or self.open_transaction is not None:
            self.open_transaction = open_transaction(
                self.open_transaction, stable=stable, high=high, now=time.monotonic()
            )

    def note_follower_response(self, *, stable: int, empty: bool, bounded: bool) -> None:
        """Note a follower's response: its last stable offset may lag, and without records it shows nothing."""
        if not empty:
            self.suspected = None
        if not bounded:
            self.source_end = max(self.source_end, stable)
        self.empty_answers = self.empty_answers + 1 if empty and self.is_behind else 0

    def note_silence(self) -> None:
        """Count a response without this partition, which has records left, as an empty one."""
        self.empty_answers += 1

    def expect_records(self) -> None:
        """Forget empty responses: the partition is fetched alone."""
        self.empty_answers = 0

    def advance(self, offset: int, leader_epoch: int) -> None:
        """Pass offsets that have no record to copy; `leader_epoch` is -1 if the response has no batches."""
        self.fetch_from = max(self.fetch_from, offset)
        if leader_epoch >= 0:
            self.leader_epoch = leader_epoch

    def pass_hole(self, stable: int) -> None:
        """Pass the offsets up to the source's last stable offset, which have no record."""
        # A leader that has just become one may not yet know of all that is committed.
        self.fetch_from = max(self.fetch_from, min(self.source_end, stable))
        self.leader_epoch = -1  # that of the offset before is not known

    # Append

    def enqueue(self, pending: Pending, *, now_ms: int) -> None:
        """Take a stamped batch that follows everything taken before and was fetched at `now_ms`."""
        if pending.record_count:
            self.stats.came(age_ms=now_ms - pending.max_timestamp_ms, now_ms=now_ms)
        self.queue.append(pending)
        self.queued_bytes += pending.batch.size_bytes
        self.fetch_from = pending.last_offset + 1
        self.leader_epoch = pending.leader_epoch
        self.next_sequence = (self.next_sequence + pending.record_count) % SEQUENCES

    def next_to_send(self) -> Pending:
        """Take the oldest batch out of the queue, to be sent."""
        pending = self.queue.popleft()
        self.queued_bytes -= pending.batch.size_bytes
        self.window.sent(pending.max_timestamp_ms, now=time.monotonic())
        return pending

    def drop_queue(self) -> None:
        """Drop what was not sent; it is fetched again."""
        self.queue.clear()
        self.queued_bytes = 0

    def acknowledge(self, pending: Pending, base_offset: int, *, now_ms: int) -> None:
        """Note that the target holds `pending` from its `base_offset` on; raises `Gap` where it cannot."""
        assert self.acked is not None
        last = -1 if self.acked.last_downstream is None else self.acked.last_downstream
        if self.in_doubt:
            # An append before it failed; the resume counts what the target holds all the same.
            if (gap := hole_before(self, pending, base_offset, self.acked, last)) is not None:
                raise gap
        elif self.acked.sequence != pending.base_sequence or base_offset <= last:
            raise unexpected_append(self, pending, base_offset, self.acked, last)
        else:
            if base_offset > last + 1 and not self.shares_target:
                self.stats.note_foreign(self.remote_place, base_offset - last - 1, before=base_offset)
            batch, first, last_offset, records, sequence, max_timestamp_ms, leader_epoch = pending
            end = base_offset + (records if self.exact is None else last_offset - first + 1)
            following, known_epoch = (sequence + records) % SEQUENCES, None if leader_epoch < 0 else leader_epoch
            self.acked = Progress(last_offset, following, self.epoch, end - 1, known_epoch)
            if records:
                latency_ms = now_ms - max_timestamp_ms
                self.stats.arrived(first, records, batch.size_bytes, latency_ms=latency_ms, now_ms=now_ms)
                self.window.acknowledged(max_timestamp_ms, now_ms=now_ms, now=time.monotonic(), more=bool(self.queue))
            self.retry.attempts = 0
            self.suspected = self.intake.damaged_at = None
        if self.state is not PartitionState.HALTED:
            self.error = None

    # Progress and reports

    def note_written(self, progress: Progress, *, at: float) -> None:
        """Note the progress that was written to the progress topic."""
        self.written, self.written_at = progress, at

    def note_halt(self, halt: Halt) -> None:
        """Note the gap that was written to the progress topic."""
        self.halt = halt

    def note_stop(self, stop: Halt | None) -> None:
        """Note why it halts, as written to the progress topic; None if that was deleted."""
        self.stop = stop

    def renew(self, row: LeaseRow) -> None:
        """Continue as the copy of the next lease's row."""
        self.row = row
        self.intake.unlimit()  # the target's limit may have changed

    def begin_stats(self) -> None:
        """Count from zero, after a report."""
        self.stats = PartitionStats()
