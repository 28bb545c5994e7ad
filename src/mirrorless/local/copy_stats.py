"""What the copy of one flow has done in this run, whichever engine runs it."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mirrorless.copy.api import Control, summary
from mirrorless.local.progress_view import PASSING, ProgressView

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.copy.api import CopyOutcome, Report
    from mirrorless.local.progress_view import TopicView


class CopyStats:
    """Totals and errors of all leases of one flow; an engine calls `lease_ended` after each, and `ended` at its end.

    `folder` is created: slots report in it while a lease runs, and a stop request is a file there; `control` is that of
    the Spark job, `function_control` that of the functions engine.
    `on_lease` is called after every lease.
    """

    def __init__(self, folder: Path, *, bounded: bool, on_lease: Callable[[list[Report]], None]) -> None:
        self.control, self.function_control = (Control(str(folder / name)) for name in ("spark", "functions"))
        for control in (self.control, self.function_control):
            Path(str(control.folder)).mkdir(parents=True)
        self.watch = ProgressView(self.control, self.function_control)
        self.bounded = bounded
        self._may_begin = threading.Event()
        self._lock = threading.Lock()
        self.closing = False
        """Whether the run is to end."""
        self.leases = 0
        self.records = 0
        self.copied_bytes = 0
        self.complete = False
        self.stuck = False
        self.over = False
        """Whether a bounded copy has ended, completely or not."""
        self._failing: tuple[Report, ...] = ()  # of the partitions that had an error at the end of the latest lease
        self._on_lease = on_lease

    def begin(self) -> None:
        """Let the copy begin: the flow's topics were compared, and those that were missing exist."""
        self._may_begin.set()

    def wait_to_begin(self, seconds: float) -> bool:
        """Wait at most so long for `begin`; returns whether it was called."""
        return self._may_begin.wait(seconds)

    def lease_ended(self, reports: list[Report]) -> None:
        """Add the reports of a lease, one per partition; in a thread of the engine."""
        totals = summary(reports)
        self.leases += 1
        self.records += totals.records
        self.copied_bytes += totals.copied_bytes
        self._failing = tuple(one for one in reports if one.error)
        self._on_lease(reports)

    def ended(self, outcome: CopyOutcome) -> None:
        """Store how the copy ended."""
        self.complete, self.stuck, self.over = outcome.complete, outcome.stuck, True

    def ask_to_stop(self) -> None:
        """Let the lease end; the run is to end."""
        with self._lock:
            self.closing = True
            self.control.ask_to_stop()
            self.function_control.ask_to_stop()

    def let_functions_copy(self, allowed: bool) -> None:
        """End the functions' lease if the flow is paused; let them copy if it is not.

        Not of a bounded copy: its next lease is refused if the flow is paused, with the reason.
        """
        with self._lock:
            if self.closing or self.bounded or allowed is not self.function_control.stopping():
                return
            if allowed:
                self.function_control.begin()
            else:
                self.function_control.ask_to_stop()

    @property
    def faulty(self) -> bool:
        """Whether the latest lease ended with an error.

        An error that was being retried when a stop was requested is reported, but is no fault, whether the lease had
        just ended or not: the next copy asks the target first.
        """
        return any(map(self.is_fault, self._failing))

    @property
    def errors(self) -> dict[str, bool]:
        """The errors at the end of the latest lease, and whether each is a fault."""
        found: dict[str, bool] = {}
        for report in self._failing:
            text = str(report.error)
            found[text] = found.get(text, False) or self.is_fault(report)
        return found

    def is_fault(self, report: Report) -> bool:
        """Whether a partition's error is a fault, in the sense of `faulty`."""
        return report.error is not None and not self._passes(report.state)

    def excused(self, topic: TopicView) -> TopicView:
        """Return how the topic is shown at the end: without an error that is no fault."""
        return replace(topic, error=None) if self._passes(topic.state) else topic

    @property
    def waits_for(self) -> str:
        """What the first report of the copy waits for, once its engine runs; valid until the first report."""
        if self.closing:
            return "finishing in-flight work"
        if not self.control.planned() and not self.function_control.planned():
            return "planning the first lease"
        if self.control.planned() and not self.leases:
            return "starting the workers of the first lease"
        return "no topic to replicate yet"

    def _passes(self, state: str) -> bool:
        return state in PASSING and self.closing and not self.bounded
