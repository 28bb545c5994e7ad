"""One slot's lease: copies its partitions on one event loop until time is up, it is stopped, or all is copied."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from mirrorless.batches.producers import ProducerFilter
from mirrorless.copy.flow.memory_limits import SPARK_WORKER, MemoryLimits
from mirrorless.copy.identical.claims import CONFIRM_EVERY_S
from mirrorless.copy.partition.handover import Handover, can_continue, handover
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS, SendWindow
from mirrorless.copy.partition.state import PartitionCopy
from mirrorless.copy.partition.stats import PartitionStats
from mirrorless.copy.slot.appender import Appender
from mirrorless.copy.slot.error_policy import ErrorPolicy
from mirrorless.copy.slot.fetcher import Fetcher
from mirrorless.copy.slot.hole_sender import HoleSender
from mirrorless.copy.slot.rate_limit import RateLimit
from mirrorless.copy.slot.resumer import Resumer
from mirrorless.copy.slot.send_queues import SendQueues
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.producer_ids import producer_id

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.copy.partition.size_limit import SizeLimits
    from mirrorless.copy.resume.resolver import PositionResolver
    from mirrorless.copy.slot.added_partitions import AddedPartitions
    from mirrorless.copy.slot.exact_copies import ExactCopies
    from mirrorless.copy.slot.progress_tracker import ProgressTracker
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.protocol.cluster_client import ClusterClient

_TICK_S = 0.02
_OBSERVE_EVERY_S = 0.5
_OBSERVED_SHARE = 50
"""Reports of thousands of partitions are written less often, so that they take a fiftieth of the time at most."""
_LEADERS_EVERY_S = 1.0
_LANDING_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long a lease lasts and what it may hold.

    `seconds` ends it; `bounded` ends it also when every partition reached its `source_end`. `holdover_s` is how long
    the copy may continue after its end until the next lease takes it over. `bytes_per_second` bounds what is fetched,
    but of topics that are `exempt`; `memory` what is kept. `remembered_ms` is as in `SendWindow`. `pass_gaps`: continue
    after records that are missing; `leave_out`: after records that cannot be copied.
    """

    seconds: float
    bounded: bool = False
    holdover_s: float = 0.0
    pass_gaps: bool = False
    leave_out: bool = False
    bytes_per_second: float | None = None
    exempt: Callable[[str], bool] = field(default=lambda _: False, compare=False)
    remembered_ms: int = PRODUCER_EXPIRY_MS // 2
    memory: MemoryLimits = SPARK_WORKER


class LeaseObserver(Protocol):
    """Ends a lease early, and gets its reports."""

    @property
    def watched(self) -> bool:
        """Whether reports of a running lease are wanted."""

    def stopping(self) -> bool:
        """Whether the lease is to end; asked often."""

    def observe(self, reports: list[Report]) -> None:
        """Take reports of the running lease, and those at its end."""

    def holding(self) -> None:
        """Note that the copy continues after the lease's end."""

    def handed_over(self) -> None:
        """Note that the next lease takes over, or counts what was copied."""

    def landed(self, reports: list[Report]) -> None:
        """Take reports of what was copied after the lease's end, where no other lease took over."""


class Lease:
    """Copies the partitions of `rows`, and those that `added` finds meanwhile.

    `source_id` and `target_id` are cluster ids, `left` is from the lease before.

    Where the terms allow a holdover and no partition is being resumed, the copy continues after the lease's end, until
    the next lease's `recall`.
    """

    def __init__(
        self,
        *,
        net: EventLoop,
        source: ClusterClient,
        target: ClusterClient,
        tracker: ProgressTracker,
        limits: SizeLimits,
        resolver: PositionResolver,
        source_id: str,
        target_id: str,
        rows: Sequence[LeaseRow],
        terms: LeaseTerms,
        watch: LeaseObserver,
        left: Mapping[TopicPartition, Handover],
        added: AddedPartitions,
        exact: ExactCopies,
    ) -> None:
        self._net = net
        self._exact = exact
        self._source = source
        self._target = target
        self._added = added
        self._tracker = tracker
        self._terms = terms
        self._watch = watch
        self._source_id = source_id
        self._target_id = target_id
        self._copies: dict[TopicPartition, PartitionCopy] = {}
        self._queues = SendQueues(target, most_in_flight_bytes=terms.memory.queued)
        self._error_policy = ErrorPolicy(
            source=source,
            target=target,
            queues=self._queues,
            tracker=tracker,
            limits=limits,
            pass_gaps=terms.pass_gaps,
            leave_out=terms.leave_out,
        )
        holes = HoleSender(self._queues, exact.holes, self._error_policy, spawn=self._spawn)
        self._appender = Appender(
            target, self._queues, self._error_policy, holes=holes, sleep=net.sleep, spawn=self._spawn
        )
        self._fetcher = Fetcher(
            source=source,
            copies=self._copies,
            queues=self._queues,
            send=self._appender.pump,
            events=self._error_policy,
            bounded=terms.bounded,
            memory=terms.memory,
            budget=RateLimit(terms.bytes_per_second, now=time.monotonic(), exempt=terms.exempt),
            sleep=net.sleep,
            spawn=self._spawn,
        )
        self._resumer = Resumer(
            target=target,
            resolver=resolver,
            error_policy=self._error_policy,
            fetcher=self._fetcher,
            spawn=self._spawn,
        )
        for row in rows:
            self._begin(row, left.get((row.topic, row.partition)))
        self._claims_due = 0.0
        self._crash: BaseException | None = None
        self._adopts = False
        self._holdover: Any = None
        self._recalled = False
        self._landed = False

    async def run(self) -> list[Report]:
        """Copy until the lease is over; returns a report a partition, which has the partition's errors."""
        watch = self._watch
        self._adopts = True
        try:
            await self._copy(
                self._terms.seconds,
                over=lambda: watch.stopping() or self._done(),
                observe=watch.watched,
            )
            self._adopts = False
            holdover = self._terms.holdover_s > 0 and not watch.stopping() and self._is_steady()
            if not holdover:
                await self._land()
            if self._crash is not None:
                raise self._crash
            reports = self.reports()
            self._begin_stats()
            watch.observe(reports)
            if holdover:
                watch.holding()
                self._holdover = self._net.call_soon_with_future(self._hold(self._error_policy.troubles))
        except BaseException:
            self._let_go()
            raise
        return reports

    async def recall(self) -> bool:
        """End the holdover; returns whether the copy still runs, and then `renew`, `leave` or `land` must follow."""
        if self._holdover is None:
            return False
        self._recalled = True
        runs: bool = await self._holdover
        self._holdover = None
        return runs

    def renew(self, rows: Sequence[LeaseRow], terms: LeaseTerms, watch: LeaseObserver) -> bool:
        """Become the lease of `rows`; `run` follows. Copies that can continue do, all others are replaced.

        False, and nothing changed, if the terms differ, or if a copy to be replaced has batches in flight.
        """
        wanted = {(row.topic, row.partition): row for row in rows}
        replaced = [
            copy for place, copy in self._copies.items() if place not in wanted or not can_continue(copy, wanted[place])
        ]
        if terms != self._terms or any(copy.in_flight for copy in replaced):
            return False
        left = {copy.place: handover(copy) for copy in replaced}
        for copy in replaced:
            self._error_policy.drop(copy)
            del self._copies[copy.place]
        self._spawn(self._exact.release([copy for copy in replaced if copy.place not in wanted]))
        for place, row in wanted.items():
            if (going := self._copies.get(place)) is None:
                self._begin(row, left.get(place))
            else:
                going.renew(row)
        self._watch.handed_over()
        self._watch = watch
        self._recalled = False
        return True

    async def leave(self) -> dict[TopicPartition, Handover]:
        """End a copy that runs after its lease, because another lease replaces it."""
        if not self._landed:
            await self._land()
        self._watch.handed_over()
        return {place: handover(copy) for place, copy in self._copies.items()}

    async def land(self) -> None:
        """End a copy that runs after its lease, and report what no other lease will."""
        if not self._landed:
            await self._land()
        self._watch.landed(self.reports())
        self._begin_stats()

    def reports(self) -> list[Report]:
        """Return what every partition did so far."""
        return self._tracker.reports(self._copies.values())

    async def _hold(self, known: int) -> bool:
        """Copy after the lease's end, until the recall, the first trouble beyond the `known`, or the end of the time.

        Returns whether the copy still runs. Trouble may be another slot that has these partitions now, so nothing is
        resumed.
        """
        watch, error_policy = self._watch, self._error_policy
        try:
            await self._copy(
                self._terms.holdover_s,
                over=lambda: self._recalled or error_policy.troubles > known or watch.stopping(),
            )
            if self._recalled and error_policy.troubles == known and not watch.stopping():
                return True
        except BaseException:
            self._let_go()
            watch.landed(self.reports())
            raise
        if error_policy.troubles > known and not watch.stopping():
            await self._land()  # the next lease reports what was counted
            watch.handed_over()
        else:
            await self.land()
        return False

    async def _copy(self, seconds: float, *, over: Callable[[], bool], observe: bool = False) -> None:
        """Run everything for so long; raises what a part of it failed with."""
        deadline = time.monotonic() + seconds
        leaders_due = observe_due = 0.0
        while (now := time.monotonic()) < deadline and not over():
            if self._crash is not None:
                raise self._crash
            if now >= leaders_due:
                self._fetcher.assign()
                self._confirm_claims(now)
                leaders_due = now + _LEADERS_EVERY_S
            if self._adopts and (found := self._added.found()):
                self._spawn(self._adopt(found))
            if observe and now >= observe_due:
                self._watch.observe(self.reports())
                took = time.monotonic() - now
                observe_due = now + max(_OBSERVE_EVERY_S, took * _OBSERVED_SHARE)
            self._resumer.begin_due(now)
            self._tracker.tick(now)
            await self._net.sleep(min(_TICK_S, deadline - now))
        if self._crash is not None:
            raise self._crash

    async def _adopt(self, rows: Sequence[LeaseRow]) -> None:
        """Add partitions that appeared; a cluster that does not answer is asked again when they are resumed."""
        with suppress(kafka_errors.KafkaError):
            await self._source.learn({row.topic for row in rows})
        with suppress(kafka_errors.KafkaError):
            await self._target.learn({row.remote_topic for row in rows})
        if not self._adopts:
            return  # the lease has ended meanwhile: the next plan has them
        for row in rows:
            if (row.topic, row.partition) not in self._copies:
                self._begin(row, None)

    def _confirm_claims(self, now: float) -> None:
        if now >= self._claims_due:
            self._claims_due = now + CONFIRM_EVERY_S
            self._spawn(self._exact.confirm(self._copies, self._error_policy))

    def _done(self) -> bool:
        return self._terms.bounded and not self._error_policy.unfinished

    def _is_steady(self) -> bool:
        return self._crash is None and all(copy.state is not PartitionState.RESUMING for copy in self._copies.values())

    def _begin_stats(self) -> None:
        for copy in self._copies.values():
            copy.begin_stats()

    def _begin(self, row: LeaseRow, left: Handover | None) -> None:
        known = row.said()
        copy = PartitionCopy(
            row,
            producer_id(self._source_id, row.topic, row.partition),
            known.announced,
            halt=known.halt,
            stop=known.stop,
            stored=known.progress if left is None else left.newest(known.progress),
            written=known.progress,
            source_end=row.source_end,
            window=SendWindow(self._terms.remembered_ms),
            exact=self._exact.state_of(row.topic, known, self._source_id),
            opposite_id=producer_id(self._target_id, row.remote_topic, row.partition),
            local=ProducerFilter(row.copies_at_source),
            stats=PartitionStats() if left is None else left.stats,
            open_transaction=None if left is None else left.open_transaction,
        )
        self._copies[copy.place] = copy
        self._error_policy.begin(copy)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the lease; what it raises ends the lease."""

        async def watched() -> None:
            try:
                await work
            except BaseException as error:  # noqa: BLE001 -- raised where the lease runs
                self._crash = error

        self._net.call_soon(watched())

    def _let_go(self) -> None:
        """Fetch and send nothing more: the event loop runs on without this lease."""
        self._fetcher.stop()
        self._appender.close()
        self._exact.rule.stop()

    async def _land(self) -> None:
        """Wait for what is in flight, then write the progress of all that was acknowledged.

        What is not answered by then is given up: another run may copy when a link that is cut would let it through.
        """
        self._let_go()
        until = time.monotonic() + _LANDING_S
        while self._queues.in_flight and time.monotonic() < until:
            await self._net.sleep(0.002)
        if self._queues.in_flight:
            self._target.give_up_unanswered()
        releasing = self._net.call_soon_with_future(self._exact.release(self._copies.values()))
        while not releasing.is_done and time.monotonic() < until:
            await self._net.sleep(0.002)
        for copy in self._copies.values():
            copy.drop_queue()
        self._tracker.land(max(0.5, until - time.monotonic()))
        self._landed = True
