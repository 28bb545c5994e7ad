"""One slot's lease: copies its partitions on one event loop until time is up, a stop is asked for, or all is copied."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka import errors as kafka_errors

from mirrorless.copy import wire as wires
from mirrorless.copy.appender import Appender
from mirrorless.copy.fetcher import Fetcher
from mirrorless.copy.leaders import TROUBLE
from mirrorless.copy.partition import PartitionCopy, Pending, State
from mirrorless.copy.producer_identity import producer_id
from mirrorless.copy.progress import SourcePartition
from mirrorless.copy.rows import Report
from mirrorless.errors import AppendRefused, ClusterError, Gap, MirrorlessError, PartitionError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from kafka.net.selector import NetworkSelector

    from mirrorless.copy.journal import Journal
    from mirrorless.copy.positions import Positions
    from mirrorless.copy.resume import Decision, TargetState
    from mirrorless.copy.rows import LeaseRow
    from mirrorless.copy.wire import Place, Wire

_TICK_S = 0.02
_PROGRESS_EVERY_S = 1.0
_LEADERS_EVERY_S = 1.0
_LANDING_S = 3.0
_MAX_BACKOFF_S = 5.0
_HURRIES = 5

_TOO_LARGE = frozenset({10, 18})  # MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE
# OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, UNKNOWN_PRODUCER_ID
_OUT_OF_SEQUENCE = frozenset({45, 46, 47, 59})


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How long a lease lasts and what it may hold.

    `seconds` ends it; `bounded` ends it also when every partition reached its `source_end`. `buffer_bytes` bounds the
    batches that wait for the target. `request_timeout_ms` is the target's time to replicate an append.
    """

    seconds: float
    bounded: bool = False
    buffer_bytes: int = 64 << 20
    request_timeout_ms: int = 30_000
    observe_every_s: float = 0.5


class Lease:
    """Copies the partitions of `rows`; `source_id` is the source's cluster id, `source_alias` its name in the settings.

    `stopping` is asked often and ends the lease early; `observe` hears reports while it runs.
    """

    def __init__(
        self,
        *,
        net: NetworkSelector,
        source: Wire,
        target: Wire,
        journal: Journal,
        positions: Positions,
        source_alias: str,
        source_id: str,
        rows: Sequence[LeaseRow],
        terms: Terms,
        stopping: Callable[[], bool],
        observe: Callable[[list[Report]], None],
    ) -> None:
        self._net = net
        self._source = source
        self._target = target
        self._journal = journal
        self._positions = positions
        self._alias = source_alias
        self._terms = terms
        self._stopping = stopping
        self._observe = observe
        self._copies: dict[Place, PartitionCopy] = {}
        for row in rows:
            identity = producer_id(source_id, row.topic, row.partition)
            copy = PartitionCopy(
                row,
                identity,
                row.announcements(),
                journaled=row.progress(),
                written=row.progress(),
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
            sleep=net.sleep,
            spawn=self._spawn,
        )
        self._to_resume = dict.fromkeys(self._copies.values())
        self._unfinished = dict.fromkeys(self._copies.values())
        self._unwritten: dict[PartitionCopy, None] = {}
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
                observe_due = now + self._terms.observe_every_s
            self._resume_due(now)
            self._write_progress(now)
            await self._net.sleep(min(_TICK_S, deadline - now))
        await self._land()
        if self._crash is not None:
            raise self._crash
        reports = self.reports()
        self._observe(reports)
        return reports

    def reports(self) -> list[Report]:
        """Say what every partition did so far."""
        return [self._report(copy) for copy in self._copies.values()]

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
        self._write_progress(None)
        if not self._journal.flush(max(0.5, until - time.monotonic())) and self._journal.error is None:
            self._journal.error = f"progress was not acknowledged by {self._journal.topic} in time"

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
        if isinstance(error, (*TROUBLE, ClusterError)):
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
            self._appender.withdraw(copy)
            self._unfinished.pop(copy, None)

    def moved(self, copy: PartitionCopy) -> None:
        """Note that a copy's position changed: there may be progress to write, or nothing left to do."""
        self._unwritten[copy] = None
        if copy.queue or copy.in_flight or copy.state is State.RESUMING:
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
            self.halt(copy, error)
            return
        if copy.state is not State.HALTED:
            copy.error = None
        self.moved(copy)

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None) -> None:
        """Tell what passes by itself from what does not."""
        topic, partition = copy.place
        name = wires.error_name(code)
        if code in _OUT_OF_SEQUENCE or issubclass(wires.error_for(code), TROUBLE):
            # A sequence or an epoch that the target does not expect: another writer was faster. The resume sees it.
            self.later(copy, f"append: {name}")
        elif code in _TOO_LARGE and pending.record_count > 1:
            # The limit is not asked for, which would need a right of its own: it is found, by halves.
            copy.max_batch_bytes = len(pending.batch) // 2
            self.later(copy, f"append: {name}, batches are split to {copy.max_batch_bytes} bytes")
        else:
            reason = f"{copy.row.remote_topic} refuses the batch of {len(pending.batch)} bytes: {name}"
            if code in _TOO_LARGE:
                reason += f"; raise max.message.bytes of {copy.row.remote_topic}"
            elif message:
                reason += f": {message}"
            self.halt(copy, AppendRefused(reason, topic=topic, partition=partition, offset=pending.base_offset))

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """Ask the target what it holds before anything else is sent."""
        self.later(copy, error)

    # Progress and reports

    def _write_progress(self, now: float | None) -> None:
        """Write what changed, each partition at most once a second; all of it where `now` is None."""
        for copy in list(self._unwritten):
            if now is not None and now - copy.written_at < _PROGRESS_EVERY_S:
                continue
            del self._unwritten[copy]
            progress = copy.progress()
            if progress is not None and progress != copy.written:
                topic, partition = copy.place
                self._journal.write(SourcePartition(self._alias, topic, partition), progress)
                copy.written = progress
                copy.written_at = time.monotonic()

    def _report(self, copy: PartitionCopy) -> Report:
        progress = copy.progress() or copy.row.progress()
        next_offset = None if progress is None else progress.last_offset + 1
        return Report(
            topic=copy.row.topic,
            partition=copy.row.partition,
            remote_topic=copy.row.remote_topic,
            state=str(copy.state),
            records=copy.records,
            copied_bytes=copy.copied_bytes,
            first_offset=copy.first_offset,
            next_offset=next_offset,
            lag_records=max(0, copy.source_end - (next_offset or 0)),
            latency_ms=copy.latency_ms,
            began_ms=copy.began_ms,
            ended_ms=copy.ended_ms,
            error=copy.error or self._journal.error,
        )
