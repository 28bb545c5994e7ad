"""Runs every flow of a configuration on this machine: its functions as on AWS, the copy job on a local Spark."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from mirrorless.clusters import first_contact, outages
from mirrorless.clusters.attempts import LoginAttempts
from mirrorless.copy.api import GAVE_UP, LANDING_S
from mirrorless.errors import ClusterUnavailable, LoopError
from mirrorless.local.copy_job import ON_PURPOSE
from mirrorless.local.flow_run import FlowRun
from mirrorless.local.jars import cache_folder
from mirrorless.local.spark_host import SparkHost, check_spark
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mirrorless.local.displays import Display
    from mirrorless.settings import Cluster, Settings

_LOOK_EVERY_S = 0.25
_SELDOM_S = 2.0
_POLL_S = 2.0
_LOOKED_SHARE = 40
"""Reports of thousands of partitions are read less often, to take a fortieth of the time at most."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING_S = 1.0
"""How long the query may take to end."""
_ENDING_S = 0.5
"""How long functions that are running when the run ends may take."""
_THREADS = 1024
"""Maximum number of slots at once, or as many as the configuration has: it may be raised while the flow runs."""

_READ_EVERY_S = 1.0
_READ_SELDOM = 50


class StopRequest:
    """Set by the first SIGINT or SIGTERM; then the run ends."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._asked = False
        self._wake: SimpleQueue[None] = SimpleQueue()
        # A first `get` whose time is over before it waits would wait endlessly (CPython, `_queue.SimpleQueue.get`: the
        # lock is free then, and a negative rest means no limit). From now on the lock is taken.
        with suppress(Empty):
            self._wake.get_nowait()

    def wait(self, seconds: float) -> None:
        """Wait for a signal, in the main thread.

        The main thread must not wait for the event: a signal handler runs between any two of its steps, and would wait
        endlessly for the event's lock. `SimpleQueue.put` is reentrant.
        """
        with suppress(Empty):
            self._wake.get(timeout=seconds)

    def wake(self) -> None:
        """End a `wait` in the main thread."""
        self._wake.put(None)

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM in this context; only in the main thread."""
        kept = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, self._ask)
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    def ask(self) -> None:
        """Request a stop, as the first signal does."""
        self._asked = True
        self._wake.put(None)
        self.event.set()

    def _ask(self, *_: object) -> None:
        if self._asked:
            # A second one is intended. It unwinds the stack, so that everything is stopped; the default would not.
            raise KeyboardInterrupt
        self.ask()


def run_flows(
    settings: Settings, *, bounded: bool, display: Display, stop: StopRequest, master: str | None = None
) -> bool:
    """Copy until a stop is requested, or with `bounded` until all records that exist now are copied.

    `master` is Spark's; None is this process with a thread for every slot.

    Returns whether there were no errors; errors were reported to `display`. Raises `MirrorlessError` before anything is
    written if a cluster does not answer, if both ends of a flow are one cluster, or if Spark is needed and cannot be
    started; of several unbounded flows those with available clusters begin without the others. Flows that would
    replicate in a loop do not begin at all, and if there are no others this is raised too.
    """
    threads = max(_THREADS, sum(flow.tasks_max for flow in settings.flows))
    with (
        tempfile.TemporaryDirectory(prefix="mirrorless-", ignore_cleanup_errors=True) as scratch,
        ExitStack() as stack,
    ):
        folder = Path(scratch)
        spark = SparkHost(master=master or f"local[{threads}]", folder=folder, asked=stop.event)
        runs = [
            FlowRun(
                settings,
                flow,
                folder=folder / str(number),
                bounded=bounded,
                display=display,
                spark=spark,
                asked=stop.event,
            )
            for number, flow in enumerate(settings.flows)
        ]
        if any(run.needs_spark for run in runs):
            check_spark()
        if not bounded:  # a copy with an end fails instead
            stack.enter_context(_outages_shown(settings, display))
        stack.enter_context(first_contact.shown(partial(_failed_connection, display)))
        runs, refused = _first(runs, display, together=bounded, stop=stop)
        try:
            with spark:
                for run in runs if not stop.event.is_set() else ():
                    run.copy()
                    display.waiting(run.name, run.waits_for)
                _watch(runs, display=display, stop=stop)
                _refuse_without(spark, runs)
                first = [found for run in runs for found in run.synced(seconds=_STOPPING_S, asked=stop.event)]
                _land(runs, display, whole=all(found.topics_are_there for found in first))
                for run in runs if spark.is_starting else ():
                    display.waiting(run.name, "ending Spark, which is still starting")
            until = time.monotonic() + _ENDING_S
            for run in runs:
                run.land(until=until)  # a copy that did not end in time has no Java any more
        finally:
            _end(runs)
        _refuse_without(spark, runs)
        failed = [run for run in runs if run.failure is not None]
        for run in failed:
            kept = "" if spark.log is None else f"; Spark's log: {_keep(spark.log)}"
            display.trouble(run.name, f"the query ended: {_first_line(run.failure)}{kept}")
    for run in runs if bounded and not stop.event.is_set() else ():
        display.waiting(run.name, "translating group offsets")
    translated = [run.last() for run in runs] if bounded and not stop.event.is_set() else []
    for run in runs:
        display.waiting(run.name, "")
    asked = stop.event.is_set()
    whole = not bounded or (not asked and all(translated) and all(run.stats.complete for run in runs))
    # A second stop request stops this too.
    in_step = all((replace(found, left=()) if asked else found).went_well for found in first)
    failed += [run for run in runs if run.sync_failed and not asked]
    return whole and in_step and not refused and not failed and not any(run.stats.faulty for run in runs)


def _outages_shown(settings: Settings, display: Display) -> AbstractContextManager[None]:
    """Connect to clusters that do not answer by one client each, and show when they stop to, and answer again."""

    def tell(alias: str, text: str, *, is_error: bool) -> None:
        (display.trouble if is_error else display.note)(f"cluster {alias}", text)

    return outages.watched(_clusters(settings), _Current(settings).clusters, attempts=LoginAttempts(), tell=tell)


class _Current:
    """The clusters as the configuration has them now, for any number of threads.

    It is read again at most once a second, and so seldom that this takes a fiftieth of a core: with many clusters away
    each of them asks every few seconds.
    """

    def __init__(self, settings: Settings) -> None:
        self._file = settings.file
        self._clusters = _clusters(settings)
        self._lock = threading.Lock()
        self._again = 0.0

    def clusters(self) -> list[Cluster]:
        """Return them; raises `MirrorlessError` if the configuration cannot be read."""
        with self._lock:
            began = time.monotonic()
            if began >= self._again:
                self._again = began + _READ_EVERY_S
                self._clusters = _clusters(load(self._file))
                self._again = time.monotonic() + max(_READ_EVERY_S, _READ_SELDOM * (time.monotonic() - began))
            return self._clusters


def _clusters(settings: Settings) -> list[Cluster]:
    return [cluster for flow in settings.flows for cluster in (flow.source, flow.target)]


def _failed_connection(display: Display, alias: str, reason: str) -> None:
    display.trouble(f"cluster {alias}", f"{reason}; trying again")


class _Discovery(threading.Thread):
    """Discovers each flow's topics; a client that waits for a cluster cannot be interrupted, so not in the main thread.

    `refused` are the flows that must not begin, because they would replicate in a loop.
    """

    def __init__(self, runs: Sequence[FlowRun], display: Display, *, together: bool, over: Callable[[], None]) -> None:
        super().__init__(name="first discovery", daemon=True)
        self._runs, self._display, self._together, self._over = runs, display, together, over
        self.refused: list[FlowRun] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        """Discover."""
        try:
            self.refused = _discover(self._runs, self._display, together=self._together)
        except BaseException as error:  # noqa: BLE001 -- raised in the main thread
            self.error = error
        self._over()


def _first(
    runs: Sequence[FlowRun], display: Display, *, together: bool, stop: StopRequest
) -> tuple[list[FlowRun], list[FlowRun]]:
    """Discover each flow's topics; unless they end `together`, an unavailable cluster does not stop other flows.

    Returns the flows that begin, none once a stop is requested meanwhile, and those that must not, because they would
    replicate in a loop.
    """
    discovery = _Discovery(runs, display, together=together, over=stop.wake)
    discovery.start()
    try:
        while discovery.is_alive() and not stop.event.is_set():
            stop.wait(_SELDOM_S)
        if discovery.is_alive():
            discovery.join(_ENDING_S)
    except BaseException:
        _end(runs)
        raise
    if discovery.is_alive():
        _end(runs)
        return [], []
    if discovery.error is not None:
        _end(runs)
        raise discovery.error
    return [run for run in runs if run not in discovery.refused], discovery.refused


def _end(runs: Sequence[FlowRun]) -> None:
    """End all functions, which have a moment for it."""
    for run in runs:
        run.ask_to_stop()
    for run in runs:
        run.join(seconds=_ENDING_S / len(runs))


def _discover(runs: Sequence[FlowRun], display: Display, *, together: bool) -> list[FlowRun]:
    away: list[tuple[str, ClusterUnavailable]] = []
    loops: dict[FlowRun, LoopError] = {}
    for run in runs:
        display.waiting(run.name, "comparing both clusters, creating topics")
        try:
            run.prepare()
            run.discover()
        except LoopError as error:
            loops[run] = error
            run.ask_to_stop()
        except ClusterUnavailable as error:
            if together:
                raise
            away.append((run.name, error))
    if away and len(away) == len(runs):
        raise away[0][1]
    if loops and len(loops) == len(runs):
        raise next(iter(loops.values()))
    for name, reason in (*away, *((run.name, error) for run, error in loops.items())):
        display.trouble(name, str(reason))
    return list(loops)


def _refuse_without(spark: SparkHost, runs: Sequence[FlowRun]) -> None:
    """Raise what made Spark's start or end fail, unless all flows can be copied without it."""
    if spark.failure is not None and any(run.needs_spark for run in runs):
        raise spark.failure


def _watch(runs: Sequence[FlowRun], *, display: Display, stop: StopRequest) -> None:
    for run in runs if not stop.event.is_set() else ():
        run.start()
    told: dict[str, str] = {}
    poll_at = time.monotonic()
    while any(run.active for run in runs) and not stop.event.is_set():
        took = 0.0
        if time.monotonic() >= poll_at:
            poll_at = time.monotonic() + _POLL_S
            outages.poll()
        for run in runs:
            if run.is_away():  # its cluster was reported; until it answers, nothing changes
                continue
            trouble = run.trouble
            if trouble and trouble != told.get(run.name):
                display.trouble(run.name, trouble)
            told[run.name] = trouble
            began = time.monotonic()
            topics = run.stats.watch.look()
            took += time.monotonic() - began
            display.show(run.name, topics)
            display.waiting(run.name, "" if topics or trouble else run.waits_for)
        stop.wait(min(_SELDOM_S, max(_LOOK_EVERY_S, _LOOKED_SHARE * took)))


def _land(runs: Sequence[FlowRun], display: Display, *, whole: bool) -> None:
    until = time.monotonic() + LANDING_S + _STOPPING_S
    for run in runs:
        run.ask_to_stop()
        display.waiting(run.name, run.waits_for)
    for run in runs:
        run.land(until=until)
        stats = run.stats
        display.waiting(run.name, "")
        display.show(run.name, [stats.excused(topic) for topic in stats.watch.look()])
        for error, is_fault in stats.errors.items():
            (display.trouble if is_fault else display.note)(run.name, error)
        if stats.stuck:
            display.trouble(run.name, GAVE_UP)
        display.finished(
            run.name, records=stats.records, copied_bytes=stats.copied_bytes, complete=stats.complete and whole
        )


def _first_line(failure: object) -> str:
    lines = [line.strip() for line in str(failure).splitlines() if ON_PURPOSE in line]
    return lines[-1].partition(": ")[2] if lines else str(failure).partition("\n")[0]


def _keep(log: Path) -> Path:
    """Keep Spark's log from being deleted, and return where it is."""
    logs = cache_folder(os.environ) / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(log, logs / f"spark-{int(time.time())}.log"))
