"""The copy of one flow as a job: a query, and the condition for its end."""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from mirrorless.copy.engines.lease_run import HOLDOVER_S
from mirrorless.copy.engines.outcome import GAVE_UP, LANDING_S, BoundedEnd, CopyOutcome
from mirrorless.copy.engines.spark.query import start_copy
from mirrorless.copy.engines.work_meter import WorkMeter
from mirrorless.copy.partition.lease_rows import summary, without_lease
from mirrorless.errors import MirrorlessError
from mirrorless.progress.mark_writer import take_back
from mirrorless.progress.run_marks import run_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from mirrorless.copy.engines.control import Control
    from mirrorless.copy.flow.reference import FlowRef
    from mirrorless.copy.partition.lease_rows import Report

SLOT_BYTES_PER_S: Final = 20_000_000
"""What one slot surely copies: a twentieth of what was measured of one core, and the figure of docs/cost.md."""
BEHIND_S: Final = 30
"""A flow is behind if it has more left than arrives in so many seconds."""


class SlotCount:
    """The slots of successive leases, between one and the executors' cores.

    The first lease has as many slots as cores, and so has every lease after one that left the flow behind. Others have
    as many as the rate of the last lease needs, and at least half as many as before. With one slot the copy continues
    between two leases; several pause.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._slots: int | None = None

    def after(self, reports: Sequence[Report], *, cores: int) -> int:
        """Return the number of slots for the next lease; `reports` is empty if the last one was not planned."""
        now = self._clock()
        seconds, self._since = max(now - self._since, 1.0), now
        before = self._slots or cores
        wanted = before
        if reports:
            # What is halted, or left to another run, does not come faster with more slots.
            copied = summary([one for one in reports if one.state != "halted" and not one.waits])
            behind = copied.lag_records > BEHIND_S * copied.records / seconds
            needed = math.ceil(copied.copied_bytes / seconds / SLOT_BYTES_PER_S)
            wanted = cores if behind else max(needed, before // 2, 1)
        self._slots = min(wanted, cores)
        return self._slots


def executor_cores(spark: SparkSession) -> int | None:
    """Return the cores of the executors that are there; None where slots are threads of this process.

    A slot's task lasts the whole lease, so of more slots than cores some would wait for the next one to begin.
    """
    context = spark.sparkContext
    cores = context.getConf().get("spark.executor.cores")
    if cores is None or (context.master or "local").startswith("local"):
        return None
    executors = context._jsc.sc().statusTracker().getExecutorInfos()  # the driver is one
    return max(1, len(executors) - 1) * int(cores)


_LOOK_EVERY_S: Final = 0.1
_TICK_S: Final = 0.02
_IDLE: Final = "Waiting for data to arrive"


def copy_flow(
    spark: SparkSession,
    place: FlowRef,
    *,
    checkpoint: str,
    control: Control,
    on_lease: Callable[[list[Report]], None],
    on_trouble: Callable[[str], None] | None = None,
) -> CopyOutcome:
    """Copy until `control` requests a stop, or a bounded copy reaches its end, or gives up; raises the query's error.

    `on_lease` receives the reports of every finished lease, and of a lease that could not be planned because a cluster
    does not answer, all partitions as unreachable; but not of a lease that was refused on purpose, as for a paused
    flow. `on_trouble` receives once errors of planning, if `control` is not displayed, and that a bounded copy gives
    up: after three consecutive leases without progress.
    """
    job = _Job(place, control, on_lease, on_trouble)
    count, meter = SlotCount(), WorkMeter()

    def lease_ended(reports: list[Report]) -> None:
        cores = executor_cores(spark)  # executors come and go
        control.offer_slots(cores if cores is None or place.bounded else count.after(reports, cores=cores))
        if reports:  # not of a lease that could not be planned
            meter.lease_ended(reports)
            control.note_work(meter.work)
        job.lease_ended(reports)

    control.offer_slots(executor_cores(spark))
    query = start_copy(spark, place, checkpoint=checkpoint, control=control, on_reports=lease_ended)
    failure = None
    try:
        job.wait(query)
        failure = query.exception()  # before the stop, which may make a running query fail
        with suppress(PySparkException):  # it does not end in time: the session is about to end end
            query.stop()
    finally:
        job.tell_left()
    if control.folder is not None and control.stopping():
        if not control.for_slots and not place.bounded:
            time.sleep(HOLDOVER_S)  # a slot on another machine may still copy, and sees no request to stop
        with suppress(MirrorlessError):
            take_back(place.load(), run_in(control.folder))
    if not job.landed.is_set() and failure is not None:
        raise failure
    return job.outcome


class _Job:
    def __init__(
        self,
        place: FlowRef,
        control: Control,
        on_lease: Callable[[list[Report]], None],
        on_trouble: Callable[[str], None] | None,
    ) -> None:
        self._bounded = place.bounded
        self._control = control
        self._on_lease = on_lease
        self._on_trouble = on_trouble
        self._trouble = ""
        self._last: list[Report] = []
        self._end = BoundedEnd()
        self.landed = threading.Event()

    @property
    def outcome(self) -> CopyOutcome:
        """How the copy ended."""
        return CopyOutcome(complete=self._end.complete, stuck=self._end.stuck)

    def wait(self, query: StreamingQuery) -> None:
        """Wait until no other lease is wanted, and in-flight work is finished."""
        until: float | None = None
        while query.isActive:
            landed = self.landed.wait(_LOOK_EVERY_S)
            if landed or self._control.stopping():
                until = until or time.monotonic() + LANDING_S
                at_rest = landed or query.status["message"] == _IDLE
                if (at_rest and not self._control.held()) or time.monotonic() >= until:
                    break
                time.sleep(_TICK_S)

    def lease_ended(self, reports: list[Report]) -> None:
        self.tell_left()
        trouble = self._control.complaint()
        if trouble and trouble != self._trouble and self._on_trouble is not None:
            self._on_trouble(trouble)
        self._trouble = trouble
        if reports:
            self._last = reports
        elif self._control.unreachable():
            reports = [without_lease(report, trouble) for report in self._last]
        if reports or not trouble:
            self._on_lease(reports)
        if self._bounded and not self._control.stopping():
            self._at_the_end(reports)
        if self._control.stopping():
            self.landed.set()

    def tell_left(self) -> None:
        """Report what slots copied after a lease's end when no other lease took over from them."""
        for reports in self._control.left():
            self._on_lease(reports)

    def _at_the_end(self, reports: list[Report]) -> None:
        self._end.lease_ended(reports)
        if self._end.stuck and self._on_trouble is not None:
            self._on_trouble(GAVE_UP)
        if self._end.over:
            # Before this returns, otherwise Spark would begin another lease.
            self._control.ask_to_stop()
            self.landed.set()
