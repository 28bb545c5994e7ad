"""One slot's lease: copies its partitions on one event loop until time is up, a stop is asked for, or all is copied."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS, SendWindow
from mirrorless.copy.partition.state import Left, PartitionCopy, PartitionState
from mirrorless.copy.partition.stats import PartitionStats
from mirrorless.copy.resume.producer_id import producer_id
from mirrorless.copy.slot.appender import Appender
from mirrorless.copy.slot.error_policy import ErrorPolicy
from mirrorless.copy.slot.fetcher import Fetcher
from mirrorless.copy.slot.rate_limit import RateLimit
from mirrorless.copy.slot.resumer import Resumer
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.copy.partition.size_limit import SizeLimits
    from mirrorless.copy.resume.resolver import PositionResolver
    from mirrorless.copy.slot.added_partitions import AddedPartitions
    from mirrorless.copy.slot.progress_tracker import ProgressTracker
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.protocol.cluster_client import ClusterClient

_TICK_S = 0.02
_OBSERVE_EVERY_S = 0.5
_OBSERVED_SHARE = 50
"""Reports of thousands of partitions are written less often, so that they take a fiftieth of the time at most."""
_LEADERS_EVERY_S = 1.0
_LANDING_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """How long a lease lasts and what it may hold.

    `seconds` ends it; `bounded` ends it also when every partition reached its `source_end`. `holdover_s` is how long
    the copy may go on behind its end until the next lease takes it over. `buffer_bytes` bounds the batches that wait
    for the target, `bytes_per_second` what is fetched. `remembered_ms` is as in `SendWindow`. `pass_gaps` and
    `leave_out` say what happens where records are missing or cannot go over.
    """

    seconds: float
    bounded: bool = False
    holdover_s: float = 0.0
    pass_gaps: bool = False
    leave_out: bool = False
    bytes_per_second: float | None = None
    remembered_ms: int = PRODUCER_EXPIRY_MS // 2
    buffer_bytes: int = 64 << 20


class LeaseObserver(Protocol):
    """Who ends a lease early and hears of it."""

    @property
    def watched(self) -> bool:
        """Whether anybody sees what `observe` is told."""

    def stopping(self) -> bool:
        """Whether the lease is to end; asked often."""

    def observe(self, reports: list[Report]) -> None:
        """Hear reports while the lease runs."""

    def holding(self) -> None:
        """Hear that the copy goes on behind the lease's end."""

    def handed_over(self) -> None:
        """Hear that the next lease took the copy over."""

    def landed(self, reports: list[Report]) -> None:
        """Hear what was copied behind the lease's end, where no other took it over."""


class Lease:
    """Copies the partitions of `rows`, and those that `newcomers` finds meanwhile.

    `source_id` and `target_id` are cluster ids, `left` comes from the lease before.

    Where the terms allow a holdover and no partition is being resumed, the copy goes on behind the lease's end, until
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
        left: Mapping[Place, Left],
        added: AddedPartitions,
    ) -> None:
        self._net = net
        self._source = source
        self._target = target
        self._added = added
        self._tracker = tracker
        self._terms = terms
        self._watch = watch
        self._source_id = source_id
        self._target_id = target_id
        self._copies: dict[Place, PartitionCopy] = {}
        self._error_policy = ErrorPolicy(
            source=source,
            target=target,
            tracker=tracker,
            limits=limits,
            pass_gaps=terms.pass_gaps,
            leave_out=terms.leave_out,
        )
        self._appender = Appender(target, self._error_policy, sleep=net.sleep, spawn=self._spawn)
        self._error_policy.appender = self._appender
        self._fetcher = Fetcher(
            source=source,
            copies=self._copies,
            appender=self._appender,
            keeper=self._error_policy,
            bounded=terms.bounded,
            buffer_bytes=terms.buffer_bytes,
            budget=RateLimit(terms.bytes_per_second, now=time.monotonic()),
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
        self._crash: BaseException | None = None
        self._adopts = False
        self._holdover: Any = None
        self._recalled = False
        self._landed = False

    async def run(self) -> list[Report]:
        """Copy until the lease is over; returns a report a partition. Troubles of a partition are in its report."""
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
            self._begin_tallies()
            watch.observe(reports)
            if holdover:
                watch.holding()
                self._holdover = self._net.call_soon_with_future(self._hold(self._error_policy.troubles))
        except BaseException:
            self._let_go()
            raise
        return reports

    async def recall(self) -> bool:
        """End the holdover, and say whether the copy still goes on; if so, `renew`, `leave` or `land` must follow."""
        if self._holdover is None:
            return False
        self._recalled = True
        goes_on: bool = await self._holdover
        self._holdover = None
        return goes_on

    def renew(self, rows: Sequence[LeaseRow], terms: LeaseTerms, watch: LeaseObserver) -> bool:
        """Become the lease of `rows`; `run` follows. Copies that are what they ask for go on, all others begin anew.

        False, and nothing changed, where the terms are others, or a copy that would have to begin anew has batches on
        their way: it has to land.
        """
        wanted = {(row.topic, row.partition): row for row in rows}
        others = [
            copy for place, copy in self._copies.items() if place not in wanted or not copy.goes_on(wanted[place])
        ]
        if terms != self._terms or any(copy.in_flight for copy in others):
            return False
        left = {copy.place: copy.left() for copy in others}
        for copy in others:
            self._error_policy.drop(copy)
            del self._copies[copy.place]
        for place, row in wanted.items():
            if (going := self._copies.get(place)) is None:
                self._begin(row, left.get(place))
            else:
                going.row = row
                going.max_batch_bytes = None  # the limit may be another by now
        self._watch.handed_over()
        self._watch = watch
        self._recalled = False
        return True

    async def leave(self) -> dict[Place, Left]:
        """End a copy that goes on behind its lease, in favour of another lease."""
        if not self._landed:
            await self._land()
        self._watch.handed_over()
        return {place: copy.left() for place, copy in self._copies.items()}

    async def land(self) -> None:
        """End a copy that goes on behind its lease, and say what no lease will."""
        if not self._landed:
            await self._land()
        self._watch.landed(self.reports())
        self._begin_tallies()

    def reports(self) -> list[Report]:
        """Say what every partition did so far."""
        return self._tracker.reports(self._copies.values())

    async def _hold(self, known: int) -> bool:
        """Copy on; at the first trouble beyond the `known`, or if nobody takes over in time, land.

        Says whether the copy goes on. Trouble may be another slot that has these partitions now, so nothing is resumed.
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
            await self._land()  # what was counted is left to the next lease
            watch.handed_over()
        else:
            await self.land()
        return False

    async def _copy(self, seconds: float, *, over: Callable[[], bool], observe: bool = False) -> None:
        """Keep everything going for so long; raises what a part of it ended with."""
        deadline = time.monotonic() + seconds
        leaders_due = observe_due = 0.0
        while (now := time.monotonic()) < deadline and not over():
            if self._crash is not None:
                raise self._crash
            if now >= leaders_due:
                self._fetcher.assign()
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
        """Begin with partitions that appeared; a cluster that does not answer is asked again when they are resumed."""
        with suppress(kafka_errors.KafkaError):
            await self._source.learn({row.topic for row in rows})
        with suppress(kafka_errors.KafkaError):
            await self._target.learn({row.remote_topic for row in rows})
        if not self._adopts:
            return  # the lease has ended meanwhile: the next plan has them
        for row in rows:
            if (row.topic, row.partition) not in self._copies:
                self._begin(row, None)

    def _done(self) -> bool:
        return self._terms.bounded and not self._error_policy.unfinished

    def _is_steady(self) -> bool:
        return self._crash is None and all(copy.state is not PartitionState.RESUMING for copy in self._copies.values())

    def _begin_tallies(self) -> None:
        for copy in self._copies.values():
            copy.stats = PartitionStats()

    def _begin(self, row: LeaseRow, left: Left | None) -> None:
        known = row.said()
        copy = PartitionCopy(
            row,
            producer_id(self._source_id, row.topic, row.partition),
            known.announced,
            halt=known.halt,
            stop=known.stop,
            stored=known.progress if left is None else left.beyond(known.progress),
            written=known.progress,
            source_end=row.source_end,
            window=SendWindow(self._terms.remembered_ms),
            opposite_id=producer_id(self._target_id, row.remote_topic, row.partition),
            stats=PartitionStats() if left is None else left.stats,
            open=None if left is None else left.open,
        )
        self._copies[copy.place] = copy
        self._error_policy.begin(copy)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the lease; a bug in it ends the lease and is not swallowed."""

        async def watched() -> None:
            try:
                await work
            except BaseException as error:  # noqa: BLE001 -- raised where the lease runs
                self._crash = error

        self._net.call_soon(watched())

    def _let_go(self) -> None:
        """Take and send nothing more: the event loop runs on without this lease."""
        self._fetcher.stop()
        self._appender.close()

    async def _land(self) -> None:
        """Let what is in flight arrive, then write the progress of all that did."""
        self._let_go()
        until = time.monotonic() + _LANDING_S
        while self._appender.in_flight and time.monotonic() < until:
            await self._net.sleep(0.002)
        for copy in self._copies.values():
            copy.drop_queue()
        self._tracker.land(max(0.5, until - time.monotonic()))
        self._landed = True
