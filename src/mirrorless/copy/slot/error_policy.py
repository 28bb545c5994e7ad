"""What becomes of each partition of a lease: it goes on, is resumed after a pause, or halts."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING

from mirrorless.clusters.connection_errors import grant
from mirrorless.copy.partition.min_insync_replicas import NOT_ENOUGH, TooFewReplicas, too_few_replicas
from mirrorless.copy.partition.state import PartitionCopy, PartitionState, Pending
from mirrorless.copy.progress.records import LeaveOut
from mirrorless.errors import AppendRefused, CorruptBatch, Gap, GapKind, PartitionError, without_frames
from mirrorless.protocol.broker_errors import error_for, error_name
from mirrorless.protocol.leaders import TROUBLE

if TYPE_CHECKING:
    from mirrorless.batches.header import FormatError
    from mirrorless.copy.partition.size_limit import SizeLimits
    from mirrorless.copy.slot.appender import Appender
    from mirrorless.copy.slot.progress_tracker import ProgressTracker
    from mirrorless.protocol.cluster_client import ClusterClient

_MAX_BACKOFF_S = 5.0

_MAY_PASS = frozenset({GapKind.TRUNCATED, GapKind.TARGET_LOST, GapKind.TARGET_HOLE})
_PATIENCE = 6
"""So many looks, some seconds, until a gap that may pass is believed: a new leader's offsets may lag for a moment."""
_WAY_ON = "mirrorless offsets reset begins the topic anew"
_WAY_WITHOUT_PROGRESS = (
    "see Lost progress in docs/operations.md: mirrorless offsets reset --partition P --offset OFFSET continues the "
    "partition behind its last offset sync"
)
_WAYS_ON = f"mirrorless.on.gap=continue goes on behind it, {_WAY_ON}"
_WAYS_ON_FROM_A_HOLE = (
    "set mirrorless.on.gap=continue to copy the missing records now, and those behind them a second time, "
    "or run `mirrorless offsets reset` to restart the topic"
)
_CORRUPT = 2  # CORRUPT_MESSAGE
_TOO_LARGE = frozenset({10, 18})  # MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE
_UNFIT = frozenset({32, 87})  # INVALID_TIMESTAMP, INVALID_RECORD
# OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID
_OUT_OF_SEQUENCE = frozenset({45, 46, 47, 59})


class ErrorPolicy:
    """The lease's `Keeper` and `Outcome`: hears what fetcher and appender meet, and decides.

    `to_resume` wait to be asked for at the target, `unfinished` have something to copy before their `source_end`;
    `troubles` counts how often a copy was sent to resume or halted. `appender` has to be set before anything is heard.
    """

    appender: Appender

    def __init__(
        self,
        *,
        source: ClusterClient,
        target: ClusterClient,
        tracker: ProgressTracker,
        limits: SizeLimits,
        pass_gaps: bool,
        leave_out: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._tracker = tracker
        self._limits = limits
        self._pass_gaps = pass_gaps
        self._leave_out = leave_out
        self.to_resume: dict[PartitionCopy, None] = {}
        self.unfinished: dict[PartitionCopy, None] = {}
        self.troubles = 0

    def begin(self, copy: PartitionCopy) -> None:
        """Take a copy that the target was not asked about yet."""
        self.to_resume[copy] = None
        self.unfinished[copy] = None

    def drop(self, copy: PartitionCopy) -> None:
        """Forget a copy that has nothing in flight: another one begins in its place, or none."""
        copy.state = PartitionState.HALTED
        self.to_resume.pop(copy, None)
        self.unfinished.pop(copy, None)
        self.appender.withdraw(copy)
        self._tracker.dropped(copy)

    def later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        """Resume a copy again, after a pause that grows; its queue is dropped, what is in flight is waited for."""
        self.troubles += 1
        self.appender.withdraw(copy)
        copy.in_doubt = True
        self._tracker.interrupted(copy)
        if copy.state is PartitionState.HALTED:
            self.unfinished.pop(copy, None)
            return
        copy.state = PartitionState.RESUMING
        copy.error = str(error)
        copy.attempts += 1
        backoff = min(_MAX_BACKOFF_S, 0.02 * 2 ** min(copy.attempts, 10))
        copy.retry_at = time.monotonic() + backoff * random.uniform(0.5, 1)  # noqa: S311 -- jitter, no secret
        self.to_resume[copy] = None
        self._source.refresh_leaders()
        self._target.refresh_leaders()

    def wait(self, copy: PartitionCopy, reason: str) -> None:
        """Leave a copy to the next lease; what is in flight is waited for."""
        self.later(copy, reason)
        copy.retry_at = math.inf

    def halt(self, copy: PartitionCopy, error: PartitionError, *, land_first: bool = False) -> None:
        """Stop one partition for the rest of the lease; the others go on."""
        self.troubles += 1
        copy.state = PartitionState.HALTED
        copy.error = str(error)
        self._tracker.stopped(copy, error)
        self.to_resume.pop(copy, None)
        if not land_first:
            copy.in_doubt = True
            self._tracker.interrupted(copy)
            self.appender.withdraw(copy)
            self.unfinished.pop(copy, None)

    def gap(self, copy: PartitionCopy, gap: Gap) -> None:
        """Look again, with all that is known, before a gap is believed; then halt at it, or pass over it."""
        gap = without_frames(gap)
        patience = _PATIENCE if gap.kind in _MAY_PASS and copy.halted_at is None else 0
        if copy.suspected is None or copy.attempts < patience:
            copy.suspected = gap
            self.later(copy, f"{gap}; looking again")
        elif self._pass_gaps and gap.kind is not GapKind.UNEXPLAINED:
            copy.detour, copy.detour_from = gap, copy.newest_epoch
            copy.attempts = 0
            self.later(copy, gap)
        else:
            self._tracker.halted(copy, gap)
            self.halt(copy, gap)
            copy.error = f"{gap}; {_ways_on(gap.kind)}"

    def damaged(self, copy: PartitionCopy, error: FormatError) -> None:
        """Fetch a bad batch again, since it may have suffered on the way; what came before it is good and goes over."""
        topic, partition = copy.place
        if copy.doubted != error.offset:
            copy.doubted = error.offset
            self.later(copy, f"{topic}-{partition} at offset {error.offset}: {error}; fetching it again")
        elif self._leave_out and error.next_offset is not None:
            copy.detour = LeaveOut(
                offset=error.offset, next_offset=error.next_offset, size_bytes=error.size_bytes, reason=str(error)
            )
        else:
            reason = CorruptBatch(str(error), topic=topic, partition=partition, offset=error.offset)
            self.halt(copy, reason, land_first=True)

    def moved(self, copy: PartitionCopy) -> None:
        """Note that a copy's position changed: there may be progress to write, or nothing left to do."""
        self._tracker.moved(copy)
        if copy.queue or copy.in_flight or copy.state is PartitionState.RESUMING:
            return
        if isinstance(copy.detour, LeaveOut):
            self.later(copy, copy.detour.reason)
            return
        if copy.state is not PartitionState.HALTED:
            copy.state = PartitionState.COPYING if copy.is_behind else PartitionState.CAUGHT_UP
            if copy.state is PartitionState.CAUGHT_UP:
                self._tracker.caught_up(copy)
        if copy.state is not PartitionState.COPYING:
            self.unfinished.pop(copy, None)

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """Count what the target acknowledged."""
        now_ms = int(time.time() * 1000)
        try:
            copy.acknowledge(pending, base_offset, now_ms=now_ms)
        except Gap as error:
            self.gap(copy, error)
            return
        if not copy.in_doubt:
            self._tracker.appended(copy, pending, base_offset, now_ms=now_ms)
        if copy.state is not PartitionState.HALTED:
            copy.error = None
        self.moved(copy)

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None) -> None:
        """Tell what passes by itself from what does not."""
        if copy.in_doubt:
            return  # something before it failed, which the resume is about
        topic, partition = copy.place
        name = error_name(code)
        if code == _CORRUPT and not copy.verifies:
            # It may have been so at the source, or on its way: it is fetched again, and looked at.
            copy.verifies = True
            self.later(copy, f"append: {name}, checksums are compared from here on")
        elif code in NOT_ENOUGH:
            self.too_few_replicas(copy, too_few_replicas(self._target, copy.remote_place, code))
        elif code in _OUT_OF_SEQUENCE or issubclass(error_for(code), TROUBLE):
            # A sequence or an epoch that the target does not expect: another writer was faster. The resume sees it.
            self.later(copy, f"append: {name}")
        elif code in _TOO_LARGE | _UNFIT and pending.record_count > 1:
            # The limit is not asked for, which would need a right of its own: it is found, by halves.
            copy.max_batch_bytes = pending.batch.size_bytes // 2
            copy.attempts = 0  # this is no trouble that a pause would help
            self.later(copy, f"append: {name}, batches are split to {copy.max_batch_bytes} bytes")
        else:
            reason = f"{copy.row.remote_topic} refuses the batch of {pending.batch.size_bytes} bytes: {name}"
            reason += grant(code, f"WRITE on {copy.row.remote_topic}")
            if code in _TOO_LARGE:
                reason += f"; {self._limits.too_large(copy.row.remote_topic, pending.batch.size_bytes)}"
            elif message:
                reason += f": {message}"
            if self._leave_out and code in _TOO_LARGE | _UNFIT:
                copy.max_batch_bytes = None
                copy.detour = LeaveOut(
                    offset=pending.base_offset,
                    next_offset=pending.last_offset + 1,
                    size_bytes=pending.batch.size_bytes,
                    reason=reason,
                )
                self.later(copy, reason)
                return
            self.halt(copy, AppendRefused(reason, topic=topic, partition=partition, offset=pending.base_offset))

    def too_few_replicas(self, copy: PartitionCopy, error: TooFewReplicas) -> None:
        """Wait for replicas that fell out of sync; halt where all are in sync, and still too few."""
        if error.lasting and copy.attempts >= _PATIENCE:
            topic, partition = copy.place
            self.halt(copy, AppendRefused(error.text, topic=topic, partition=partition))
        else:
            self.later(copy, error.text)

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """Ask the target what it holds before anything else is sent."""
        if not copy.in_doubt:
            self.later(copy, error)


def _ways_on(kind: GapKind) -> str:
    """What an operator can do about a gap."""
    match kind:
        case GapKind.UNEXPLAINED:
            return _WAY_WITHOUT_PROGRESS
        case GapKind.TARGET_HOLE:
            return _WAYS_ON_FROM_A_HOLE
        case _:
            return _WAYS_ON
