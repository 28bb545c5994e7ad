"""One slot's lease: copies its partitions on one event loop until time is up, a stop is asked for, or all is copied."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka import errors as kafka_errors

from mirrorless.clusters.failures import grant
from mirrorless.copy import wire as wires
from mirrorless.copy.appender import Appender
from mirrorless.copy.budget import Budget
from mirrorless.copy.fetcher import Fetcher
from mirrorless.copy.leaders import TROUBLE
from mirrorless.copy.partition import LeaveOut, PartitionCopy, Pending, State
from mirrorless.copy.producer_identity import producer_id
from mirrorless.errors import AppendRefused, ClusterError, CorruptBatch, Gap, GapKind, MirrorlessError, PartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from mirrorless.batches.header import FormatError
    from mirrorless.copy.event_loop import EventLoop
    from mirrorless.copy.ledger import Ledger
    from mirrorless.copy.positions import Positions
    from mirrorless.copy.requests import Place
    from mirrorless.copy.resume import Decision, TargetState
    from mirrorless.copy.rows import LeaseRow, Report
    from mirrorless.copy.wire import Wire

_TICK_S = 0.02
_OBSERVED_SHARE = 50
"""Reports of thousands of partitions are written less often, so that they take a fiftieth of the time at most."""
_LEADERS_EVERY_S = 1.0
_LANDING_S = 3.0
_MAX_BACKOFF_S = 5.0
_HURRIES = 5

_MAY_PASS = frozenset({GapKind.TRUNCATED, GapKind.TARGET_LOST})
_PATIENCE = 6
"""So many looks, some seconds, until a gap that may pass is believed: a new leader's offsets may lag for a moment."""
_WAY_ON = "mirrorless offsets reset begins the topic anew"
_WAYS_ON = f"mirrorless.on.gap=continue goes on behind it, {_WAY_ON}"
_TOO_LARGE = frozenset({10, 18})  # MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE
_UNFIT = frozenset({32, 87})  # INVALID_TIMESTAMP, INVALID_RECORD
# OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID
_OUT_OF_SEQUENCE = frozenset({45, 46, 47, 59})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long a lease lasts and what it may hold.

    `seconds` ends it; `bounded` ends it also when every partition reached its `source_end`. `buffer_bytes` bounds the
    batches that wait for the target, `bytes_per_second` what is fetched. `request_timeout_ms` is the target's time to
    replicate an append. `pass_gaps` and `leave_out` say what happens where records are missing or cannot go over.
    """

    seconds: float
    bounded: bool = False
    pass_gaps: bool = False
    leave_out: bool = False
    bytes_per_second: float | None = None
    buffer_bytes: int = 64 << 20
    request_timeout_ms: int = 30_000
    observe_every_s: float = 0.5


class Lease:
    """Copies the partitions of `rows`; `source_id` is the source's cluster id.

    `stopping` is asked often and ends the lease early; `observe` hears reports while it runs.
    """

    def __init__(
        self,
        *,
        net: EventLoop,
        source: Wire,
        target: Wire,
        ledger: Ledger,
        positions: Positions,
        source_id: str,
        rows: Sequence[LeaseRow],
        terms: Terms,
        stopping: Callable[[], bool],
        observe: Callable[[list[Report]], None],
    ) -> None:
        self._net = net
        self._source = source
        self._target = target
        self._ledger = ledger
        self._positions = positions
        self._terms = terms
        self._stopping = stopping
        self._observe = observe
        self._copies: dict[Place, PartitionCopy] = {}
        for row in rows:
            identity = producer_id(source_id, row.topic, row.partition)
            known = row.said()
            copy = PartitionCopy(
                row,
                identity,
                known.announced,
                halt=known.halt,
                journaled=known.progress,
                written=known.progress,
                source_end=row.source_end,
            )
            self._copies[copy.place] = copy
        self._appender = Appender(target, self, timeout_ms=terms.request_timeout_ms, spawn=self._spawn)
        self._fetcher = Fetcher(
            source=source,
            copies=self._copies,
            appender=self._appender,
            keeper=self,
            bounded=terms.bounded,
            buffer_bytes=terms.buffer_bytes,
            budget=Budget(terms.bytes_per_second, now=time.monotonic()),
            sleep=net.sleep,
            spawn=self._spawn,
        )
        self._to_resume = dict.fromkeys(self._copies.values())
        self._unfinished = dict.fromkeys(self._copies.values())
        self._crash: BaseException | None = None

    async def run(self) -> list[Report]:
        """Copy until the lease is over; returns a report a partition. Troubles of a partition are in its report."""
        deadline = time.monotonic() + self._terms.seconds
        leaders_due = observe_due = 0.0
        while (now := time.monotonic()) < deadline and not self._stopping() and not self._done():
            if self._crash is not None:
                raise self._crash
            if now >= leaders_due:
                self._fetcher.assign()
                leaders_due = now + _LEADERS_EVERY_S
            if now >= observe_due:
                self._observe(self.reports())
                took = time.monotonic() - now
                observe_due = now + max(self._terms.observe_every_s, took * _OBSERVED_SHARE)
            self._resume_due(now)
            self._ledger.tick(now)
            await self._net.sleep(min(_TICK_S, deadline - now))
        await self._land()
        if self._crash is not None:
            raise self._crash
        reports = self.reports()
        self._observe(reports)
        return reports

    def reports(self) -> list[Report]:
        """Say what every partition did so far."""
        return self._ledger.reports(self._copies.values())

    def _done(self) -> bool:
        return self._terms.bounded and not self._unfinished

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the lease; a bug in it ends the lease and is not swallowed."""
        self._net.call_soon_with_future(work).add_errback(self._crashed)

    def _crashed(self, error: BaseException) -> None:
        self._crash = error

    async def _land(self) -> None:
        """Let what is in flight arrive, then write the progress of all that did."""
        self._fetcher.stop()
        self._appender.close()
        until = time.monotonic() + _LANDING_S
        while self._appender.in_flight and time.monotonic() < until:
            await self._net.sleep(0.002)
        for copy in self._copies.values():
            copy.drop_queue()
        self._ledger.land(max(0.5, until - time.monotonic()))

    # Resuming

    def _resume_due(self, now: float) -> None:
        by_node: dict[int, list[PartitionCopy]] = defaultdict(list)
        for copy in [copy for copy in self._to_resume if copy.in_flight == 0 and copy.retry_at <= now]:
            node = self._target.leader(copy.remote_place)
            if node is None:
                self.later(copy, f"{copy.row.remote_topic}-{copy.row.partition} has no leader at the moment")
            else:
                del self._to_resume[copy]
                by_node[node].append(copy)
        for node, copies in by_node.items():
            self._spawn(self._resume(node, copies))
        self._fetcher.hurried = any(copy.attempts < _HURRIES for copy in self._to_resume)

    async def _resume(self, node: int, copies: Sequence[PartitionCopy]) -> None:
        try:
            decisions = await self._positions.decisions(node, copies)
        except (kafka_errors.KafkaError, ClusterError) as error:
            for copy in copies:
                self._not_resumed(copy, error)
            return
        for copy, one in decisions.items():
            if isinstance(one, tuple):
                self._spawn(self._settle(copy, node, *one))
            else:
                self._not_resumed(copy, one)

    async def _settle(self, copy: PartitionCopy, node: int, state: TargetState, decision: Decision) -> None:
        try:
            await self._positions.settle(copy, node, state, decision)
        except (kafka_errors.KafkaError, MirrorlessError) as error:
            self._not_resumed(copy, error)
        else:
            copy.error = None
            self.moved(copy)
            self._fetcher.add(copy)

    def _not_resumed(self, copy: PartitionCopy, error: BaseException) -> None:
        if isinstance(error, Gap):
            self.gap(copy, error)
        elif isinstance(error, (*TROUBLE, ClusterError)):
            self.later(copy, error)
        elif isinstance(error, PartitionError):
            self.halt(copy, error)
        else:
            self.halt(copy, copy.error_at_append(str(error)))

    # What becomes of a partition; see `Keeper`

    def later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        """Resume a copy again, after a pause that grows; its queue is dropped, what is in flight is waited for."""
        self._appender.withdraw(copy)
        copy.in_doubt = True
        self._ledger.interrupted(copy)
        if copy.state is State.HALTED:
            self._unfinished.pop(copy, None)
            return
        copy.state = State.RESUMING
        copy.error = str(error)
        copy.attempts += 1
        backoff = min(_MAX_BACKOFF_S, 0.02 * 2 ** min(copy.attempts, 10))
        copy.retry_at = time.monotonic() + backoff * random.uniform(0.5, 1)  # noqa: S311 -- jitter, no secret
        self._to_resume[copy] = None
        self._source.refresh_leaders()
        self._target.refresh_leaders()

    def halt(self, copy: PartitionCopy, error: PartitionError, *, land_first: bool = False) -> None:
        """Stop one partition for the rest of the lease; the others go on."""
        copy.state = State.HALTED
        copy.error = str(error)
        self._to_resume.pop(copy, None)
        if not land_first:
            copy.in_doubt = True
            self._ledger.interrupted(copy)
            self._appender.withdraw(copy)
            self._unfinished.pop(copy, None)

    def gap(self, copy: PartitionCopy, gap: Gap) -> None:
        """Look again, with all that is known, before a gap is believed; then halt at it, or pass over it."""
        known = copy.halt is not None and copy.halt.epoch == copy.newest_epoch
        patience = _PATIENCE if gap.kind in _MAY_PASS and not known else 0
        if copy.suspected is None or copy.attempts < patience:
            copy.suspected = gap
            self.later(copy, f"{gap}; looking again")
        elif self._terms.pass_gaps and gap.kind is not GapKind.UNEXPLAINED:
            copy.detour = gap
            self.later(copy, gap)
        else:
            self._ledger.halted(copy, gap)
            self.halt(copy, gap)
            copy.error = f"{gap}; {_WAY_ON if gap.kind is GapKind.UNEXPLAINED else _WAYS_ON}"

    def damaged(self, copy: PartitionCopy, error: FormatError) -> None:
        """Fetch a bad batch again, since it may have suffered on the way; what came before it is good and goes over."""
        topic, partition = copy.place
        if copy.doubted != error.offset:
            copy.doubted = error.offset
            self.later(copy, f"{topic}-{partition} at offset {error.offset}: {error}; fetching it again")
        elif self._terms.leave_out and error.next_offset is not None:
            copy.detour = LeaveOut(
                offset=error.offset, next_offset=error.next_offset, size_bytes=error.size_bytes, reason=str(error)
            )
        else:
            reason = CorruptBatch(str(error), topic=topic, partition=partition, offset=error.offset)
            self.halt(copy, reason, land_first=True)

    def moved(self, copy: PartitionCopy) -> None:
        """Note that a copy's position changed: there may be progress to write, or nothing left to do."""
        self._ledger.moved(copy)
        if copy.queue or copy.in_flight or copy.state is State.RESUMING:
            return
        if isinstance(copy.detour, LeaveOut):
            self.later(copy, copy.detour.reason)
            return
        if copy.state is not State.HALTED:
            copy.state = State.CAUGHT_UP if copy.fetch_from >= copy.source_end else State.COPYING
        if copy.state is not State.COPYING:
            self._unfinished.pop(copy, None)

    # What the target answered; see `Outcome`

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """Count what the target acknowledged."""
        try:
            copy.acknowledge(pending, base_offset, now_ms=int(time.time() * 1000))
        except Gap as error:
            self.gap(copy, error)
            return
        if not copy.in_doubt:
            self._ledger.appended(copy, pending, base_offset)
        if copy.state is not State.HALTED:
            copy.error = None
        self.moved(copy)

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None) -> None:
        """Tell what passes by itself from what does not."""
        if copy.in_doubt:
            return  # something before it failed, which the resume is about
        topic, partition = copy.place
        name = wires.error_name(code)
        if code in _OUT_OF_SEQUENCE or issubclass(wires.error_for(code), TROUBLE):
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
                reason += f"; raise max.message.bytes of {copy.row.remote_topic}"
            elif message:
                reason += f": {message}"
            if self._terms.leave_out and code in _TOO_LARGE | _UNFIT:
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

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """Ask the target what it holds before anything else is sent."""
        if not copy.in_doubt:
            self.later(copy, error)
