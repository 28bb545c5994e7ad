"""Runs every flow of a configuration on this machine: its metadata on schedule, the copy on a local Spark."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mirrorless.copy.slot import FlowPlace
from mirrorless.local.flow_run import ON_PURPOSE, FlowRun
from mirrorless.local.jars import cache_folder
from mirrorless.local.metadata_schedule import MetadataSchedule
from mirrorless.local.offsets_schedule import OffsetsSchedule
from mirrorless.local.spark import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mirrorless.copy.rows import Report
    from mirrorless.local.watching import TopicView
    from mirrorless.metadata.passes import Pass
    from mirrorless.settings import Settings

_LOOK_EVERY_S = 0.25
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LANDING_S = 3.5


class Display(Protocol):
    """Who shows a run to people or to a log collector."""

    def discovered(self, flow: str, found: Pass) -> None:
        """Topics, configs or ACLs were looked at."""

    def note(self, flow: str, text: str) -> None:
        """Something is not done, and why; told once."""

    def trouble(self, flow: str, text: str) -> None:
        """Something does not work at the moment; empty when it works again."""

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        """How far a flow is."""

    def leased(self, flow: str, reports: list[Report]) -> None:
        """A lease ended; called from a thread of Spark's."""

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """A pass of the checkpoints ended."""

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        """A flow ended; `complete` says that all there was at the start is on the target."""


class StopRequest:
    """Set by the first SIGINT or SIGTERM, from then on the run comes to its end."""

    def __init__(self) -> None:
        self.event = threading.Event()

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take over SIGINT and SIGTERM meanwhile; only in the main thread."""
        kept = {number: signal.getsignal(number) for number in _SIGNALS}
        self.listen()
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def listen(self) -> None:
        """Take the signals over again: Spark's session takes SIGINT for itself (`SparkContext._do_init`)."""
        for number in _SIGNALS:
            signal.signal(number, self._ask)

    def _ask(self, *_: object) -> None:
        if self.event.is_set():
            # A second one is meant. It unwinds, so that what was started is stopped; the default would not.
            raise KeyboardInterrupt
        self.event.set()


def run_flows(
    settings: Settings, *, bounded: bool, display: Display, stop: StopRequest, master: str | None = None
) -> bool:
    """Copy until a stop is asked for, or with `bounded` until all that is there now is copied.

    `master` is Spark's, this very process with a thread for every slot if it is None.

    Returns whether all went well; what did not was told to `display`. Raises `MirrorlessError` before anything is
    written if a cluster does not answer, or if a flow has one cluster at both ends.
    """
    metadata = {flow.name: MetadataSchedule(flow, display) for flow in settings.flows}
    first = [schedule.first() for schedule in metadata.values()]
    offsets = OffsetsSchedule(settings, display)
    threads = sum(flow.tasks_max for flow in settings.flows)
    with tempfile.TemporaryDirectory(prefix="mirrorless-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        with spark_session(master=master or f"local[{threads}]", folder=folder) as spark:
            stop.listen()
            runs = []
            if not stop.event.is_set():
                runs = [
                    FlowRun(
                        spark,
                        FlowPlace(location=settings.file, flow=flow.name, bounded=bounded),
                        folder / str(number),
                        partial(display.leased, flow.name),
                    )
                    for number, flow in enumerate(settings.flows)
                ]
            offsets.start()
            try:
                _watch(runs, metadata, display=display, stop=stop)
            finally:
                offsets.stop()
            _land(runs, display, whole=all(found.topics_are_there for found in first))
        failed = [run for run in runs if run.failure is not None]
        for run in failed:
            display.trouble(run.name, f"the query ended: {_first_line(run.failure)}; Spark's log: {_keep(folder)}")
    if bounded and not stop.event.is_set():
        offsets.last()
    whole = stop.event.is_set() or not bounded or all(run.complete for run in runs)
    in_step = all(found.went_well for found in first)
    return whole and in_step and not failed and not any(run.errors for run in runs)


def _watch(
    runs: Sequence[FlowRun], metadata: Mapping[str, MetadataSchedule], *, display: Display, stop: StopRequest
) -> None:
    while any(run.active for run in runs) and not stop.event.is_set():
        for run in runs:
            run.revive()
            display.trouble(run.name, run.trouble)
            display.show(run.name, run.watch.look())
            metadata[run.name].tick()
        stop.event.wait(_LOOK_EVERY_S)


def _land(runs: Sequence[FlowRun], display: Display, *, whole: bool) -> None:
    until = time.monotonic() + _LANDING_S
    for run in runs:
        run.ask_to_stop()
    for run in runs:
        run.land(until=until)
        display.show(run.name, run.watch.look())
        for error in run.errors:
            display.trouble(run.name, error)
        display.finished(run.name, records=run.records, copied_bytes=run.copied_bytes, complete=run.complete and whole)


def _first_line(failure: object) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if ON_PURPOSE in line]
    return lines[-1].partition(": ")[2] if lines else str(failure).partition("\n")[0]


def _keep(folder: Path) -> Path:
    """Save Spark's log from being deleted."""
    logs = cache_folder(os.environ) / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(folder / "spark.log", logs / f"spark-{int(time.time())}.log"))
