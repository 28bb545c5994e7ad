"""The copy job of one flow on this machine: the script that Glue runs, in a thread, on the shared Spark session."""

from __future__ import annotations

import logging
import re
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mirrorless import errors
from mirrorless.errors import MirrorlessError
from mirrorless.functions.job_decision import JobRun, Patience
from mirrorless.local.events import job_state_event
from mirrorless.local.script_loader import attribute_of
from mirrorless.local.spark_host import spark_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mirrorless.copy.api import CopyOutcome, Report
    from mirrorless.local.copy_stats import CopyStats
    from mirrorless.local.spark_host import SparkHost
    from mirrorless.local.wiring import Job

ON_PURPOSE: Final = "mirrorless.errors."
"""Part of the text of every exception that was raised on purpose, when Spark passes it on."""
_RAISED: Final = re.compile(re.escape(ON_PURPOSE) + r"(\w+)")
_PY4J: Final = "py4j.protocol"
_NO_JAVA: Final = (OSError, EOFError)
"""What py4j raises in a call to a Java that has ended, beside its own errors."""
_LOG: Final = logging.getLogger(__name__)
_MAX_ACCIDENTS: Final = 8
_REMEMBERED: Final = 50
_WAIT_S: Final = 0.1


class CopyJob:
    """`job_decision.JobRuns` of one flow; `folder` is its own, and every lease is added to `stats`.

    The first run starts Spark, and every run waits until the session exists. A run that ended by an accident, such as a
    killed Python process, may be followed by another; the end of one that ended on purpose is final, so is that of a
    bounded copy, or of one without Spark. `on_change` receives the event of each run that ends.
    """

    # A local run costs nothing and is watched: seconds instead of Glue's minutes.
    patience = Patience(quick_s=10.0, first_s=2.0, longest_s=30.0)
    ends_itself_s = 0.0

    def __init__(
        self,
        job: Job,
        folder: Path,
        *,
        stats: CopyStats,
        spark: SparkHost,
        on_change: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._job = job
        self._folder = folder
        self._stats = stats
        self._control = stats.control
        self._bounded = stats.bounded
        self._spark = spark
        self._on_change = on_change
        self._lock = threading.Lock()
        self._runs: list[JobRun] = []
        self._thread: threading.Thread | None = None
        self._accidents = 0
        self.failure: str | None = None

    @property
    def active(self) -> bool:
        """Whether there may be another lease."""
        with self._lock:
            return not self._stats.closing and not (self._runs and self._runs[-1].final)

    @property
    def waits_for(self) -> str:
        """What the first report of the copy waits for; valid until the first report."""
        waits = not self._stats.closing and not self._spark.is_ready
        return "starting Spark" if waits else self._stats.waits_for

    @property
    def trouble(self) -> str:
        """The current error of the copy, empty if there is none."""
        with self._lock:
            last = self._runs[-1] if self._runs else None
        if last is None or last.is_under_way or last.is_ending or last.state == "STOPPED":
            return self._stats.watch.complaint
        if last.final and last.state == "SUCCEEDED":
            return ""
        return "the query ended; other flows continue" if last.final else "the query was killed; it restarts"

    @property
    def missing(self) -> str:
        """Why Spark cannot be started, or could not be; empty if it can."""
        return spark_missing() or ("" if self._spark.failure is None else str(self._spark.failure))

    @property
    def has_run(self) -> bool:
        """Whether a run is under way, or being stopped."""
        with self._lock:
            return bool(self._runs) and (self._runs[-1].is_under_way or self._runs[-1].is_ending)

    def latest(self) -> list[JobRun]:
        """Return the last fifty runs."""
        with self._lock:
            return self._runs[-_REMEMBERED:]

    def stop(self, runs: Sequence[str]) -> None:
        """Let the run's lease end, and then the run.

        Not of a bounded copy: its next lease is refused if the flow is paused, with the reason.
        """
        with self._lock:
            if not self._bounded and self._runs and self._runs[-1].id in runs and self._runs[-1].is_under_way:
                self._control.ask_to_stop()
                self._runs[-1] = replace(self._runs[-1], state="STOPPING")

    def start(self, release: str | None = None) -> str:  # noqa: ARG002 -- this process has one
        """Start a run; returns an empty id if one is active, or none is wanted any more."""
        with self._lock:
            last = self._runs[-1] if self._runs else None
            if self._stats.closing or (last is not None and (last.final or last.is_under_way or last.is_ending)):
                return ""
            run = JobRun(id=f"jr_{len(self._runs) + 1}", state="RUNNING", started=datetime.now(UTC))
            self._control.begin()
            self._spark.start()
            self._runs.append(run)
            self._thread = threading.Thread(target=self._run, args=(run.id,), name=run.id, daemon=True)
            self._thread.start()
            return run.id

    def ask_to_stop(self) -> None:
        """Let the lease end, and start no other run."""
        with self._lock:
            self._stats.ask_to_stop()

    def join(self, *, until: float) -> None:
        """Wait for the run's end until the monotonic time `until`."""
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))

    def _run(self, run: str) -> None:
        arguments = [*self._job.arguments, *(["--available-now"] if self._bounded else [])]
        failure: str | None = None
        on_purpose = False
        try:
            while not self._spark.wait(_WAIT_S) and not self._control.stopping():
                pass
            if self._spark.is_ready:
                main, folder = self._script(), str(self._folder / "checkpoint")
                self._stats.ended(main(arguments, control=self._control, folder=folder, told=self._lease_ended))
        except Exception as error:  # noqa: BLE001 -- Spark's, Java's, or its connection's: the run failed
            if self._is_expected(error):
                _LOG.debug("the query of %s ended with its session: %s", self._job.name, error)
            else:
                failure = str(error) or type(error).__name__
                on_purpose = self._is_meant(error, failure)
        self._ended(run, failure, on_purpose=on_purpose)

    def _script(self) -> Callable[..., CopyOutcome]:
        """Load the script, which imports PySpark, and return its function."""
        main: Callable[..., CopyOutcome] = attribute_of(
            self._job.script, "main", module=f"script of {self._job.name}", of=f"job {self._job.name}"
        )
        return main

    def _is_expected(self, error: Exception) -> bool:
        """Whether a call only found that the session has ended, as it does after a stop request.

        Not if the copy itself had failed: that is an exception of Spark's, or one that was raised on purpose.
        """
        ended = self._stats.closing and not self._spark.is_ready
        # By name, because py4j is imported only with Spark.
        no_java = isinstance(error, _NO_JAVA) or any(kind.__module__ == _PY4J for kind in type(error).__mro__)
        return ended and no_java and ON_PURPOSE not in str(error)

    def _is_meant(self, error: Exception, failure: str) -> bool:
        """Whether the next run would end the same way: not if an unbounded copy had a retriable error.

        Without Spark it would, whatever the reason.
        """
        if error is self._spark.failure:
            return True
        raised = [type(error)] if isinstance(error, MirrorlessError) else []
        raised += [getattr(errors, name, MirrorlessError) for name in _RAISED.findall(failure)]
        return any(self._bounded or not kind.retriable for kind in raised)

    def _ended(self, run: str, failure: str | None, *, on_purpose: bool) -> None:
        with self._lock:
            self.failure = failure
            self._accidents = 0 if failure is None else self._accidents + 1
            state = "SUCCEEDED" if self._bounded else "STOPPED" if self._control.stopping() else "SUCCEEDED"
            final = self._bounded
            if failure is not None:
                state, final = "FAILED", on_purpose or self._accidents > _MAX_ACCIDENTS
            self._runs[-1] = replace(self._runs[-1], state=state, ended=datetime.now(UTC), final=final)
        self._spark.release()
        message = "Job run ended" if failure is None else failure.partition("\n")[0]
        self._on_change(job_state_event(self._job.name, run, state, message=message))

    def _lease_ended(self, reports: list[Report]) -> None:
        self._accidents = 0
        self._stats.lease_ended(reports)
