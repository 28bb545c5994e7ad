"""What becomes of a partition after an answer or an error: it continues, is resumed after a pause, or halts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mirrorless.clusters.connection_errors import grant
from mirrorless.copy.partition.errors import append_error, misplaced
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.partition.min_insync_replicas import NOT_ENOUGH, TooFewReplicas, too_few_replicas
from mirrorless.copy.partition.pending import hole
from mirrorless.copy.partition.size_limit import fenced
from mirrorless.errors import AppendRefused, CorruptBatch, Gap, GapKind, PartitionError, without_frames
from mirrorless.progress.records import LeaveOut
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.leaders import TROUBLE

if TYPE_CHECKING:
    from mirrorless.batches.header import FormatError
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.size_limit import SizeLimits
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.progress_tracker import ProgressTracker
    from mirrorless.copy.slot.send_queues import SendQueues
    from mirrorless.protocol.cluster_client import ClusterClient

_MAY_PASS = frozenset({GapKind.TRUNCATED, GapKind.TARGET_LOST, GapKind.TARGET_HOLE})
_PATIENCE = 6
"""So many attempts, some seconds, before a gap that may pass counts: a new leader's offsets may lag for a moment."""
_RESTART = "run `mirrorless offsets reset` to restart the topic"
_ADVICE = f"set mirrorless.on.gap=continue to skip the gap, or {_RESTART}"
_ADVICE_WITHOUT_PROGRESS = (
    "see Lost progress in docs/operations.md: mirrorless offsets reset --partition P --offset OFFSET continues the "
    "partition after its last offset sync"
)
_ADVICE_FOR_A_HOLE = (
    f"set mirrorless.on.gap=continue to copy the missing records now, and those after them a second time, or {_RESTART}"
)
_CLAIMED = (
    "another process has claimed this copy with identical offsets, so this one has stopped; run one deployment only"
)
_REPARTITION = "-repartition"
_CORRUPT = 2  # CORRUPT_MESSAGE
_MESSAGE_TOO_LARGE = 10
_TOO_LARGE = frozenset({_MESSAGE_TOO_LARGE, 18})  # and RECORD_LIST_TOO_LARGE, of which max.message.bytes is no cause
_INVALID_RECORD = 87
_UNFIT = frozenset({32, _INVALID_RECORD})  # and INVALID_TIMESTAMP
# OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID
_OUT_OF_SEQUENCE = frozenset({45, 46, 47, 59})


class ErrorPolicy:
    """Implements `FetchEvents` and `AppendOutcome` for the copies of a lease.

    `to_resume` are waiting to be resumed, `unfinished` have something to copy before their `source_end`; `troubles`
    counts how often a copy was sent to resume or halted. `pass_gaps`: continue after a gap (mirrorless.on.gap).
    `leave_out`: continue after records that cannot be copied (errors.tolerance).
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        target: ClusterClient,
        queues: SendQueues,
        tracker: ProgressTracker,
        limits: SizeLimits,
        pass_gaps: bool,
        leave_out: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._queues = queues
        self._tracker = tracker
        self._limits = limits
        self._pass_gaps = pass_gaps
        self._leave_out = leave_out
        self.to_resume: dict[PartitionCopy, None] = {}
        self.unfinished: dict[PartitionCopy, None] = {}
        self.troubles = 0

    def begin(self, copy: PartitionCopy) -> None:
        """Take a new copy, whose position the target has to be asked for."""
        self.to_resume[copy] = None
        self.unfinished[copy] = None

    def drop(self, copy: PartitionCopy) -> None:
        """Forget a copy that has nothing in flight: another one takes its place, or none."""
        copy.close()
        self.to_resume.pop(copy, None)
        self.unfinished.pop(copy, None)
        self._queues.withdraw(copy)
        self._tracker.dropped(copy)

    def take_due(self, now: float) -> list[PartitionCopy]:
        """Take the copies that are to be resumed by now and have nothing in flight; `now` is `time.monotonic`."""
        due = [copy for copy in self.to_resume if copy.in_flight == 0 and copy.retry.due <= now]
        for copy in due:
            del self.to_resume[copy]
        return due

    def retry_later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        """Resume a copy after a pause that grows; its queue is dropped, what is in flight is waited for."""
        self.troubles += 1
        self._queues.withdraw(copy)
        self._tracker.interrupted(copy)
        if not copy.interrupt(str(error), now=time.monotonic()):
            self.unfinished.pop(copy, None)
            return
        self.to_resume[copy] = None
        self._source.refresh_leaders()
        self._target.refresh_leaders()

    def leave_to_next_lease(self, copy: PartitionCopy, reason: str) -> None:
        """Do not resume a copy in this lease; what is in flight is waited for."""
        self.retry_later(copy, reason)
        copy.suspend()

    def halt(self, copy: PartitionCopy, error: PartitionError, *, finish_queue: bool = False, advice: str = "") -> None:
        """Stop one partition for the rest of the lease; `finish_queue` still appends what was fetched before."""
        self.troubles += 1
        copy.halt_with(f"{error}{advice}", finish_queue=finish_queue)
        self._tracker.stopped(copy, error)
        self.to_resume.pop(copy, None)
        if not finish_queue:
            self._tracker.interrupted(copy)
            self._queues.withdraw(copy)
            self.unfinished.pop(copy, None)

    def gap_found(self, copy: PartitionCopy, gap: Gap) -> None:
        """Look for a gap again, with all that is known, before it counts; then halt at it, or continue after it."""
        gap = without_frames(gap)
        patience = _PATIENCE if gap.kind in _MAY_PASS and copy.halted_at is None else 0
        if gap.kind is GapKind.MISPLACED:
            # Nothing may be appended any more, also by a lease after this one.
            self._tracker.halted(copy, gap)
            self.halt(copy, gap, advice=f"; {_advice(gap.kind)}")
        elif copy.suspected is None or copy.retry.attempts < patience:
            copy.suspect(gap)
            self.retry_later(copy, f"{gap}; looking again")
        elif not copy.row.is_first and (copy.halted_at is None or self._pass_gaps):
            # That one may have passed it, or be about to append in the epoch that the next one would follow.
            self.leave_to_next_lease(copy, f"{gap}; another run of this flow copies the partition, and decides")
        elif (self._pass_gaps or self._is_purged(copy, gap)) and _can_pass(copy, gap):
            copy.skip_gap(gap)
            self.retry_later(copy, gap)
        else:
            self._tracker.halted(copy, gap)
            self.halt(copy, gap, advice=f"; {_advice(gap.kind)}")

    def _is_purged(self, copy: PartitionCopy, gap: Gap) -> bool:
        """Whether a gap is what Kafka Streams purges of its repartition topics, with DeleteRecords: no member needs it.

        They are kept for ever by their configs (`InternalTopicConfig`), which remote topics are created with.
        """
        return (
            gap.kind is GapKind.RETENTION
            and copy.row.topic.endswith(_REPARTITION)
            and self._limits.is_kept_for_ever(copy.row.remote_topic)
        )

    def batch_damaged(self, copy: PartitionCopy, error: FormatError) -> None:
        """Fetch a damaged batch again, since the network may have damaged it; then leave it out, or halt at it."""
        topic, partition = copy.place
        if not copy.intake.note_damaged(error.offset):
            self.retry_later(copy, f"{topic}-{partition} at offset {error.offset}: {error}; fetching it again")
        elif self._leave_out and error.next_offset is not None:
            # Once everything before it is acknowledged, see `position_changed`.
            copy.skip_records(
                LeaveOut(
                    offset=error.offset, next_offset=error.next_offset, size_bytes=error.size_bytes, reason=str(error)
                )
            )
        else:
            reason = CorruptBatch(str(error), topic=topic, partition=partition, offset=error.offset)
            self.halt(copy, reason, finish_queue=True)

    def position_changed(self, copy: PartitionCopy) -> None:
        """Note that there may be progress to write, or nothing left to copy."""
        self._tracker.moved(copy)
        if copy.queue or copy.in_flight or copy.state is PartitionState.RESUMING:
            return
        if isinstance(copy.skip, LeaveOut):
            self.retry_later(copy, copy.skip.reason)
            return
        copy.settle()
        if copy.state is PartitionState.CAUGHT_UP:
            self._tracker.caught_up(copy)
        if copy.state is not PartitionState.COPYING:
            self.unfinished.pop(copy, None)

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """Count what the target acknowledged."""
        now_ms = int(time.time() * 1000)
        if copy.exact is not None and base_offset != pending.base_offset:
            self.gap_found(copy, misplaced(copy, pending.base_offset, base_offset))
            return
        try:
            copy.acknowledge(pending, base_offset, now_ms=now_ms)
        except Gap as error:
            self.gap_found(copy, error)
            return
        if not copy.in_doubt and pending.record_count:
            self._tracker.appended(copy, pending, base_offset, now_ms=now_ms)
        self.position_changed(copy)

    def hole_failed(self, copy: PartitionCopy, error: BaseException) -> None:
        """Resume a copy after markers that may have been written or not, or halt it."""
        if isinstance(error, Gap):
            self.gap_found(copy, error)
        elif isinstance(error, PartitionError):
            self.halt(copy, error)
        elif not copy.in_doubt:
            self.retry_later(copy, error)

    def hole_at_end(self, copy: PartitionCopy, stable: int) -> None:
        """Pass the offsets up to the source's last stable offset, which have no record."""
        end = min(copy.source_end, stable)
        if copy.exact is None:
            copy.pass_hole(stable)
        elif end > copy.fetch_from:
            now_ms = int(time.time() * 1000)
            taken = hole(copy.fetch_from, end, sequence=copy.next_sequence, leader_epoch=-1, now_ms=now_ms)
            self._queues.enqueue(copy, taken, now_ms=now_ms)
            if not self._queues.offer(copy):
                self.retry_later(copy, f"{copy.row.remote_topic}-{copy.row.partition} has a new leader")
        self.position_changed(copy)

    def claim_lost(self, copy: PartitionCopy) -> None:
        """Halt a copy whose markers another process has claimed, until the next lease claims them again."""
        self.halt(copy, append_error(copy, _CLAIMED))

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None, records: int = 0) -> None:
        """Retry after an error that may pass; split, leave out or halt at a batch that is refused for good."""
        if copy.in_doubt:
            return  # an append before it failed, after which the copy is resumed anyway
        name = error_name(code)
        if code == _CORRUPT and not copy.intake.verifies:
            # The source or the network may have damaged it: it is fetched again, and its checksum is compared.
            copy.intake.verify()
            self.retry_later(copy, f"append: {name}, checksums are compared from here on")
        elif code in NOT_ENOUGH:
            self.too_few_replicas(copy, too_few_replicas(self._target, copy.remote_place, code))
        elif code in _OUT_OF_SEQUENCE or issubclass(error_for(code), TROUBLE):
            # A sequence or an epoch that the target does not expect: another writer was faster, as the resume finds.
            self.retry_later(copy, f"append: {name}")
        elif code == _MESSAGE_TOO_LARGE and self._limits.is_fenced(
            copy.row.remote_topic, first=pending.record_count == 1
        ):
            self._fenced(copy)
        elif code in _TOO_LARGE | _UNFIT and pending.record_count > 1 and not self._leaves_all_out(pending, records):
            # The limit is not asked for, which would need a right of its own: it is found by halving.
            limit_bytes = pending.batch.size_bytes // 2
            copy.intake.limit(limit_bytes)
            copy.retry.reset()  # a longer pause would not help
            self.retry_later(copy, f"append: {name}, batches are split to {limit_bytes} bytes")
        else:
            self._refused_for_good(copy, pending, code, message)

    def _fenced(self, copy: PartitionCopy) -> None:
        """Wait until the fence is removed; the status shows it meanwhile."""
        copy.intake.unlimit()
        error = append_error(copy, fenced(copy.row.remote_topic))
        self.retry_later(copy, error)
        self._tracker.stopped(copy, error)

    def _leaves_all_out(self, pending: Pending, records: int) -> bool:
        """Whether all records of a batch are refused, and left out: together, since each needs a new epoch."""
        return self._leave_out and records == pending.record_count

    def _refused_for_good(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None) -> None:
        topic, partition = copy.place
        remote, size = copy.row.remote_topic, pending.batch.size_bytes
        reason = f"{remote} refuses the batch of {size} bytes: {error_name(code)}" + grant(code, f"WRITE on {remote}")
        if code in _TOO_LARGE:
            reason += f"; {self._limits.too_large(remote, size)}"
        elif message:
            reason += f": {message}"
        if code == _INVALID_RECORD and (advice := self._limits.keyless(remote)):
            reason += f"; {advice}"
        exceeds = self._limits.exceeds(remote, size) if code == _MESSAGE_TOO_LARGE else True
        if exceeds is False and copy.retry.attempts < _PATIENCE:
            # A fence that came or went meanwhile; otherwise the broker compresses records again, and they get larger.
            self.retry_later(copy, reason)
            return
        if not (self._leave_out and code in _TOO_LARGE | _UNFIT and exceeds is not None):
            self.halt(copy, AppendRefused(reason, topic=topic, partition=partition, offset=pending.base_offset))
            return
        copy.intake.unlimit()
        copy.skip_records(
            LeaveOut(offset=pending.base_offset, next_offset=pending.last_offset + 1, size_bytes=size, reason=reason)
        )
        copy.retry.reset()
        self.retry_later(copy, reason)

    def too_few_replicas(self, copy: PartitionCopy, error: TooFewReplicas) -> None:
        """Wait for replicas that fell out of sync; halt where all are in sync, and still too few."""
        if error.lasting and copy.retry.attempts >= _PATIENCE:
            self.halt(copy, append_error(copy, error.text))
        else:
            self.retry_later(copy, error.text)

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """Have the target asked what it holds before anything else is sent."""
        if not copy.in_doubt:
            self.retry_later(copy, error)


def _can_pass(copy: PartitionCopy, gap: Gap) -> bool:
    """Whether an epoch can begin after a gap; with identical offsets not where the source has others by now."""
    if gap.kind is GapKind.UNEXPLAINED:
        return False
    return copy.exact is None or gap.kind in (GapKind.RETENTION, GapKind.TARGET_LOST)


def _advice(kind: GapKind) -> str:
    """Return what an operator can do about a gap."""
    match kind:
        case GapKind.UNEXPLAINED:
            return _ADVICE_WITHOUT_PROGRESS
        case GapKind.TARGET_HOLE:
            return _ADVICE_FOR_A_HOLE
        case GapKind.MISPLACED:
            return f"delete the remote topic, then {_RESTART}"
        case _:
            return _ADVICE
