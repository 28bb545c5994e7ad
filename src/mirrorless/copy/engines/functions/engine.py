"""Copies a flow in this process, one run after the other; each takes over strictly from the one before it.

A run keeps a mark in the progress topic. It plans and connects while the run before it still copies, tells it by its
mark that it is ready, and copies once that one has finished its in-flight work and deleted its own mark. So nothing is
copied twice, also where the target has forgotten the producer. The copy job of Spark takes part in the same order.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from mirrorless.clusters import outages
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.copy.engines.functions.run_result import RunResult
from mirrorless.copy.engines.functions.run_watch import CLUSTER_AWAY, CUT_OFF, DEALT, IdleTime, RunWatch, TimeLeft
from mirrorless.copy.engines.lease_plans import LeasePlans
from mirrorless.copy.engines.lease_run import connect_slot, forget_slot, run_watched_lease
from mirrorless.copy.engines.outcome import BoundedEnd
from mirrorless.copy.engines.work_meter import WorkMeter
from mirrorless.copy.partition.lease_rows import summary
from mirrorless.copy.planning.dealing import Dealer, DealtShare
from mirrorless.copy.planning.run_order import RunOrder
from mirrorless.errors import ClusterUnavailable, ConfigurationError, FlowPaused, MirrorlessError
from mirrorless.progress.run_marks import WHOLE, Share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.copy.engines.control import Control
    from mirrorless.copy.flow.memory_limits import MemoryLimits
    from mirrorless.copy.flow.reference import FlowRef
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.progress.engine_choice import EngineName
    from mirrorless.settings import Flow

RUNS: Final = 2
"""How many runs of a share there may be: one that copies, and one that is ready to."""
_WAIT_S: Final = 0.2
_PAUSE_S: Final = 2.0
_LOOK_S: Final = 0.05


class _ConnectionsChanged(Exception):
    """The next run uses the new connections."""


class FunctionsEngine:
    """The runs of one share of a flow; clients and connections are kept from run to run. Not thread-safe."""

    def __init__(self, place: FlowRef, *, control: Control, memory: MemoryLimits, share: Share = WHOLE) -> None:
        self._place = place
        self._control = control
        self._memory = memory
        self._share = share
        self._order: RunOrder | None = None
        self._of_order: Flow | None = None
        self._plans = LeasePlans(place, control, self._order_of)
        self._dealt = DealtShare(share)
        self._dealer = Dealer(share.of) if share.number == 0 and share.of > 1 else None
        self._meter = WorkMeter()
        self._began_with: object = None
        self._prepared: object = None

    def prepare(self) -> None:
        """Open all connections of the first run side by side, and read what its plan needs; errors are left to `run`.

        Without this each client would connect when it is first used. `run` does it too, unless this read the progress.
        """
        with suppress(ConfigurationError):
            flow = self._place.load()
            if flow.engine != "spark" and not self._prepare(flow):
                self._prepared = None

    def _prepare(self, flow: Flow) -> bool:
        if self._prepared == flow.connections:
            return True
        self._prepared = flow.connections
        order = self._order_of(flow)
        _, has_read, _ = side_by_side(
            partial(_attempt, order.look),
            partial(_attempt, lambda: self._plans.prepare(flow)),
            partial(_attempt, lambda: connect_slot(self._place, (), memory=self._memory)),
        )
        return bool(has_read)

    def run(
        self,
        time_left: TimeLeft,
        on_lease: Callable[[list[Report]], None],
        *,
        claims: Callable[[], None] = lambda: None,
        begins: Callable[[], None] = lambda: None,
    ) -> RunResult:
        """Copy until the next run is ready, the time is over, or Spark takes over; finishes all in-flight work.

        `on_lease` gets the reports of each finished lease. `claims` is called when functions copy the flow, before this
        run plans, `begins` when it is this run's turn. Returns at once if two runs exist already, the flow is paused,
        or Spark is to copy it. A run that was cut off from the target is followed by another one as long as there is
        time. While a cluster is away, as `outages` knows it, nothing is connected. Raises `MirrorlessError`.
        """
        first = partial(self._run, time_left, on_lease, begins, claims)
        again = partial(self._run, time_left, on_lease, lambda: None)
        while True:
            if outages.any_away():
                with suppress(ConfigurationError):
                    outages.wait(self._place.load(), stopping=lambda: self.is_stopping() or time_left.left_s <= 0)
            result = self._runs(first, again, time_left)
            if not result.cluster_away or self.is_stopping():
                return result
            self.close()

    def _runs(self, first: Callable[[], RunResult], again: Callable[[], RunResult], time_left: TimeLeft) -> RunResult:
        """Copy; a run that is cut off from the target is followed by another one."""
        try:
            result = first()
        except ClusterUnavailable as error:
            if not outages.suspect(error.cluster):
                raise
            return RunResult(note=str(error), cluster_away=True)
        while result.cut_off and time_left.left_s > 0 and not self.is_stopping():
            try:
                next_one = again()
            except ClusterUnavailable as error:
                if outages.suspect(error.cluster):
                    return replace(result, cluster_away=True)
                result = replace(result, trouble=str(error))
                time.sleep(min(_PAUSE_S, time_left.left_s))
            else:
                result = next_one.after(result)
        return result

    def _run(
        self,
        time_left: TimeLeft,
        on_lease: Callable[[list[Report]], None],
        begins: Callable[[], None],
        claims: Callable[[], None] = lambda: None,
    ) -> RunResult:
        flow = self._place.load()
        if flow.engine == "spark":
            return RunResult(note="mirrorless.engine is spark: the copy job copies the flow")
        self._prepare(flow)
        order = self._order_of(flow)
        if self._is_sparks(flow, order):
            return RunResult(note="the copy job copies the flow")
        claims()
        if self._functions_in(order) >= RUNS:
            return RunResult(note="two other invocations are running")
        self.measure_again()
        self._began_with = flow.connections
        try:
            self._plans.refuse_paused(flow)
            order.adopt(order.deal)  # it copies nothing yet
            order.claim(ready=False, another=True)
            self._plans.refuse_paused(flow)  # who stops the flow now, sees the mark
            if self._functions_in(order) >= RUNS:
                return RunResult(note="two other invocations are running")
            run = _CurrentRun(self, flow, order, time_left, on_lease)
            return replace(run.result(begins), trouble=self._plans.complaint)
        except FlowPaused as paused:
            if self._place.bounded:
                raise
            if self._functions_in(order):
                self._end_others(order, time_left)
            return RunResult(note=str(paused), paused=True)
        except _ConnectionsChanged:
            return RunResult(note="the connections in the configuration changed", copied=True)
        finally:
            order.release()

    def _end_others(self, order: RunOrder, time_left: TimeLeft) -> None:
        """Let a run that copies a flow which was paused meanwhile end, as if this one was to take over."""
        order.claim(another=True)
        while order.earlier() and time_left.left_s > 0 and not self.is_stopping():
            order.wait(_WAIT_S)

    def close(self) -> None:
        """Close all connections."""
        self._plans.close()
        if self._order is not None:
            self._order.close()
            self._order = None
        self._prepared = None
        forget_slot(self._place)

    def _order_of(self, flow: Flow) -> RunOrder:
        if self._order is None or self._of_order is None or self._of_order.connections != flow.connections:
            if self._order is not None:
                self._order.close()
            self._order = RunOrder(
                flow,
                engine="functions",
                share=self._share,
                deployment=self._place.deployment,
                work=lambda: self._meter.work,
            )
            self._of_order = flow
        self._order.follow(flow)
        return self._order

    def _is_sparks(self, flow: Flow, order: RunOrder) -> bool:
        """Whether the copy job copies the flow."""
        choice = order.look()
        chosen: EngineName = "functions" if flow.engine == "functions" or choice is None else choice.engine
        return chosen == "spark" and any(mark.engine == "spark" for mark in order.others())

    def _functions_in(self, order: RunOrder) -> int:
        return sum(mark.engine == "functions" for mark in order.earlier())

    def rows(self, time_left: TimeLeft) -> list[LeaseRow] | None:
        """Plan between leases, and return the rows of the share; None if no lease could be planned."""
        with suppress(ConfigurationError):  # being edited: the plan uses the last valid one
            if self._place.load().connections != self._began_with:
                raise _ConnectionsChanged
        if self._order is not None:
            self._dealt.begin(self._order)  # before the progress is read, which a former owner has written
        piles = self._plans.next(stopping=lambda: self._control.stopping() or time_left.left_s <= 0, slots=1)
        if piles is None:
            return None
        rows = [row for pile in piles for row in pile]
        if self._dealer is not None and self._plans.planner is not None and not self._plans.planner.missing:
            self._dealer.planned(rows)
        planned = next((row.planned for row in rows if row.planned is not None), None)
        mine = [replace(row, slots=self._share.of, planned=None) for row in rows if self._dealt.has(row.place)]
        return [replace(mine[0], planned=planned), *mine[1:]] if mine else []

    def deal_again(self, order: RunOrder) -> None:
        """Deal the flow's partitions again if shares differ; only the first run of share 0 does, the others follow."""
        if self._dealer is None:
            return
        with suppress(ClusterUnavailable):
            dealt = self._dealer.next_deal(order.deal, order.dealt_at)
            if dealt is not None and order.may_deal():
                order.write_deal(dealt)

    def refuse_paused(self) -> None:
        """Raise `FlowPaused` if the flow was paused since it was planned."""
        if self._plans.planner is not None:
            self._plans.planner.refuse_paused()

    def connect(self, rows: Sequence[LeaseRow]) -> None:
        """Connect ahead of the lease of `rows`."""
        if rows:
            connect_slot(self._place, rows, memory=self._memory)

    def planned_again(self, rows: Sequence[LeaseRow]) -> list[LeaseRow]:
        """Return the rows with what the run before has written."""
        planner = self._plans.planner
        return list(rows) if planner is None else planner.planned_again(rows)

    def lease(self, rows: Sequence[LeaseRow], watch: RunWatch, time_left: TimeLeft) -> list[Report]:
        """Copy rows for one lease."""
        reports = run_watched_lease(
            self._place,
            rows,
            watch=watch,
            slot=self._share.number,
            seconds=time_left.left_s,
            is_own=self._dealt.has,
            memory=self._memory,
        )
        self._meter.lease_ended(reports)
        if self._dealer is not None:
            self._dealer.lease_ended(reports)
        return reports

    def measure_again(self) -> None:
        """Forget what was measured: of an earlier run, or while this one waited for its turn."""
        self._meter = WorkMeter()

    def watch(
        self,
        flow: Flow,
        order: RunOrder,
        time_left: TimeLeft,
        leased: Callable[[list[Report]], None],
        idle: IdleTime | None,
    ) -> RunWatch:
        """Return the watch of the next lease."""
        slot = self._control.of(int(time.time() * 1000), self._share.number)
        return RunWatch(
            flow,
            order=order,
            time_left=time_left,
            meter=self._meter,
            slot=slot,
            leased=leased,
            idle=idle,
            dealt=partial(self._dealt.is_over, order),
        )

    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._control.stopping()

    @property
    def idle(self) -> str:
        """Why the last plan had nothing to plan, as for a paused flow; empty if it had."""
        return self._plans.idle

    @property
    def bounded(self) -> bool:
        """Whether the copy has an end."""
        return self._place.bounded


def _attempt(work: Callable[[], object]) -> object:
    with suppress(MirrorlessError):
        return work()
    return None


class _CurrentRun:
    """One run, and what it has done so far."""

    def __init__(
        self,
        engine: FunctionsEngine,
        flow: Flow,
        order: RunOrder,
        time_left: TimeLeft,
        on_lease: Callable[[list[Report]], None],
    ) -> None:
        self._engine = engine
        self._flow = flow
        self._order = order
        self._time_left = time_left
        self._on_lease = on_lease
        self._end = BoundedEnd()
        self._result = RunResult(note="")

    def result(self, begins: Callable[[], None]) -> RunResult:
        """Plan, wait for the turn, and copy."""
        # Also one that ends while this run plans: what it wrote last may not be in the plan.
        follows = bool(self._order.earlier())
        rows = self._planned()
        if self._engine.idle:
            return replace(self._result, note=self._engine.idle)
        if rows is None and self._is_over():
            return replace(self._result, note="its time was over before a lease could be planned")
        self._engine.connect(rows or [])
        self._order.be_ready()
        began = time.monotonic()
        if note := self._wait():
            return replace(self._result, note=note)
        waited_s = time.monotonic() - began
        self._engine.refuse_paused()
        begins()
        if rows and follows:
            rows = self._engine.planned_again(rows)
        self._engine.measure_again()
        return replace(self._copy(rows), waited_s=round(waited_s, 3))

    def _planned(self) -> list[LeaseRow] | None:
        """Plan, until it succeeds as long as another run copies: that one ends when this one is ready."""
        while True:
            rows = self._engine.rows(self._time_left)
            if rows is not None or self._engine.idle or self._is_over() or not self._order.earlier():
                return rows
            self._order.wait(_WAIT_S)

    def _wait(self) -> str:
        """Wait for all earlier runs to end; returns why this run is not to copy, empty if it is its turn."""
        while self._order.earlier():
            if self._spark_waits():
                return "the copy job takes over"
            if self._is_over():
                return "its time was over while another run copied"
            self._order.wait(_WAIT_S)
        return ""

    def _copy(self, rows: list[LeaseRow] | None) -> RunResult:
        idle = IdleTime() if self._flow.copy_idle_exit else None
        while True:
            self._engine.deal_again(self._order)
            watch = self._engine.watch(self._flow, self._order, self._time_left, self._leased, idle)
            if rows:
                self._leased(self._engine.lease(rows, watch, self._time_left))
            elif rows is not None and self._engine.bounded:
                self._end.lease_ended([])
            if self._engine.bounded and self._end.over:
                note = "everything was copied" if self._end.complete else "the copy ended"
                return replace(self._result, note=note, over=True, complete=self._end.complete, stuck=self._end.stuck)
            if watch.stopping() and watch.ended != DEALT:
                return replace(
                    self._result,
                    note=watch.ended,
                    cut_off=watch.ended == CUT_OFF,
                    cluster_away=watch.ended == CLUSTER_AWAY,
                )
            if not rows:
                self._pause(watch)
            rows = self._engine.rows(self._time_left)
            if self._engine.idle:
                return replace(self._result, note=self._engine.idle)

    def _pause(self, watch: RunWatch) -> None:
        """Wait before another plan, which costs requests: this one had nothing to copy."""
        until = time.monotonic() + _PAUSE_S
        while time.monotonic() < until and not watch.stopping():
            time.sleep(_LOOK_S)

    def _leased(self, reports: list[Report]) -> None:
        totals = summary(reports)
        self._result = replace(
            self._result,
            copied=True,
            records=self._result.records + totals.records,
            copied_bytes=self._result.copied_bytes + totals.copied_bytes,
            lag_records=totals.lag_records,
        )
        if self._engine.bounded and not self._engine.is_stopping():
            self._end.lease_ended(reports)
        self._on_lease(reports)

    def _is_over(self) -> bool:
        return self._engine.is_stopping() or self._time_left.left_s <= 0

    def _spark_waits(self) -> bool:
        return any(mark.engine == "spark" for mark in self._order.later())
