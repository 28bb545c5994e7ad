"""Watches the lease of a run of the functions engine, and ends it."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.clusters import outages
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.copy.engines.control import SlotControl
    from mirrorless.copy.engines.work_meter import WorkMeter
    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.copy.planning.run_order import RunOrder
    from mirrorless.settings import Flow

_LOOK_EVERY_S: Final = 0.05
_IDLE_S: Final = 5.0
CLUSTER_AWAY: Final = "a cluster does not answer"
DEALT: Final = "partitions were assigned again"
CUT_OFF: Final = "its mark in the progress topic could not be renewed"


class TimeLeft(Protocol):
    """How long a run may last."""

    @property
    def left_s(self) -> float:
        """Seconds for work; 0 if the run is to end."""


class RunWatch:
    """`slot.lease.LeaseObserver` of one lease: ends it when the next run is ready, or has to.

    `ended` is why; empty as long as the lease may continue, or if its own time was over. With `idle`, which all leases
    of a run share, it ends when nothing arrives. Once `dealt` returns true the run continues with another lease.
    """

    def __init__(
        self,
        flow: Flow,
        *,
        order: RunOrder,
        time_left: TimeLeft,
        meter: WorkMeter,
        slot: SlotControl,
        leased: Callable[[list[Report]], None],
        idle: IdleTime | None = None,
        dealt: Callable[[], bool] = lambda: False,
    ) -> None:
        self.ended = ""
        self._dealt = dealt
        self._order = order
        self._time_left = time_left
        self._meter = meter
        self._slot = slot
        self._leased = leased
        self._look_due = 0.0
        self._is_heartbeats = policy_for(flow).is_heartbeats_topic
        self._idle = idle
        self._ends = flow.source.alias, flow.target.alias
        self._connections = partial(outages.generation, flow.source.alias, flow.target.alias)
        self._began_with = self._connections()

    @property
    def watched(self) -> bool:
        """Reports are for the mark, too."""
        return True

    def stopping(self) -> bool:
        """Whether the lease is to end."""
        now = time.monotonic()
        if not self.ended and now >= self._look_due:
            self._look_due = now + _LOOK_EVERY_S
            self.ended = self._reason(now)
        return bool(self.ended)

    def observe(self, reports: list[Report]) -> None:
        """Take reports of the running lease, and those at its end."""
        self._meter.observed(reports)
        self._slot.observe(reports)
        states = {one.state for one in reports} - {PartitionState.HALTED}
        if states and states <= {PartitionState.RESUMING, "unreachable"} and any(one.error for one in reports):
            for alias in self._ends:
                outages.suspect(alias)
        if self._idle is not None:
            self._idle.take([one for one in reports if not self._is_heartbeats(one.topic)])

    def holding(self) -> None:
        """The copy does not continue after its lease."""

    def handed_over(self) -> None:
        """The copy does not continue after its lease."""

    def landed(self, reports: list[Report]) -> None:
        """Take reports of what was copied after the lease's end."""
        self._leased(reports)

    def _reason(self, now: float) -> str:
        if self._slot.stopping():
            return "a stop was requested"
        if self._time_left.left_s <= 0:
            return "its time is over"
        self._order.wait(0)
        if (successor := self._order.successor()) is not None:
            return "the copy job takes over" if successor.engine == "spark" else "the next invocation takes over"
        if self._connections() != self._began_with:
            return CLUSTER_AWAY
        if self._order.is_stale:
            outages.suspect(self._ends[1])
            return CUT_OFF
        if self._idle is not None and now - self._idle.since >= _IDLE_S:
            return "nothing arrives"
        return DEALT if self._dealt() else ""


class IdleTime:
    """Since when (monotonic seconds) nothing but heartbeats has arrived, and nothing is left to copy."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self._offsets = -1

    def take(self, reports: Iterable[Report]) -> None:
        """Take reports of all partitions but those of heartbeats."""
        offsets = lag = 0
        for one in reports:
            offsets += one.next_offset or 0
            lag += 0 if one.state == "halted" else one.lag_records
        if lag or offsets != self._offsets:
            self.since, self._offsets = time.monotonic(), offsets
