"""One flow's copy on a local Spark: its query, its control folder, and what its leases reported."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from mirrorless.copy.control import Control
from mirrorless.copy.query import start_copy
from mirrorless.copy.rows import summary
from mirrorless.local.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from mirrorless.copy.rows import Report
    from mirrorless.copy.slot import FlowPlace

_FRUITLESS_LEASES = 3
_MAX_PAUSE_S = 30.0
_MAX_ACCIDENTS = 8
ON_PURPOSE = "mirrorless.errors."
"""Stands in the text of every exception that was raised on purpose, when Spark hands it on."""
_IDLE = "Waiting for data to arrive"


class FlowRun:
    """Starts the copy of `place` when made; `folder` is its own, `on_lease` hears every finished lease."""

    def __init__(
        self, spark: SparkSession, place: FlowPlace, folder: Path, on_lease: Callable[[list[Report]], None]
    ) -> None:
        self.name = place.flow
        self._spark = spark
        self._place = place
        self._folder = folder
        self._bounded = place.bounded
        (folder / "control").mkdir(parents=True)
        self._control = Control(str(folder / "control"))
        self.watch = Watch(self._control)
        self.records = 0
        self.copied_bytes = 0
        self.errors: tuple[str, ...] = ()
        self._on_lease = on_lease
        self._landed = threading.Event()
        self._fruitless = 0
        self._reached = -1
        self.complete = False
        self.failure: str | None = None
        self._accidents = 0
        self._again_at = 0.0
        self._query = self._start()

    def _start(self) -> StreamingQuery:
        return start_copy(
            self._spark,
            self._place,
            checkpoint=str(self._folder / "checkpoint"),
            control=self._control,
            on_reports=self._lease_ended,
        )

    @property
    def trouble(self) -> str:
        """What is wrong with the run at the moment, empty if nothing is."""
        if self._query.isActive:
            return self.watch.complaint
        return "its query ended; the others go on" if self._is_over() else "its query was killed; it begins again"

    @property
    def active(self) -> bool:
        """Whether there may be another lease."""
        return not self._is_over() and not self._control.stopping()

    def revive(self) -> None:
        """Start the query again if an accident ended it, such as a Python process that was killed, after a pause."""
        if self._query.isActive or self._is_over() or self._control.stopping():
            return
        if not self._again_at:
            self._again_at = time.monotonic() + min(_MAX_PAUSE_S, 2.0**self._accidents)
            self._accidents += 1
        elif time.monotonic() >= self._again_at:
            self._again_at = 0.0
            with suppress(PySparkException, Py4JError):  # its daemon was killed too; the next attempt has a new one
                self._query = self._start()

    def _is_over(self) -> bool:
        """Whether the query ended for a reason of its own: an error that was raised on purpose would come again."""
        return not self._query.isActive and (
            ON_PURPOSE in str(self._query.exception()) or self._accidents > _MAX_ACCIDENTS or self._control.stopping()
        )

    def ask_to_stop(self) -> None:
        """Let the lease end; see `land`."""
        self._control.ask_to_stop()

    def land(self, *, until: float) -> None:
        """Wait for the lease's end until the monotonic time `until`, then end the query."""
        while time.monotonic() < until and self._query.isActive and not self._landed.is_set():
            if self._query.status["message"] == _IDLE:
                break
            time.sleep(0.02)
        with suppress(PySparkException):  # it does not end in time: the session is about to
            self._query.stop()
        # Read now: when the session has ended, there is no JVM left to ask.
        exception = self._query.exception()
        self.failure = None if exception is None else str(exception)

    def _lease_ended(self, reports: list[Report]) -> None:
        totals = summary(reports)
        self.records += totals.records
        self.copied_bytes += totals.copied_bytes
        self.errors = totals.errors
        self._accidents = 0
        self._on_lease(reports)
        if self._bounded and not self._control.stopping():
            reached = sum(report.next_offset or 0 for report in reports)
            self._fruitless = 0 if reached > self._reached else self._fruitless + 1
            self._reached = reached
            self.complete = totals.over and not totals.errors
            if totals.over or self._fruitless >= _FRUITLESS_LEASES:
                # Before this returns, or Spark would begin another lease.
                self._control.ask_to_stop()
        if self._control.stopping():
            self._landed.set()
