"""One flow on this machine: its functions, its triggers and its copy job, wired as in the SAM templates."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters import outages
from mirrorless.clusters.target_state import TargetState, configs_topic
from mirrorless.errors import FlowPaused, PrerequisiteError
from mirrorless.functions.runtime_context import RuntimeContext
from mirrorless.local.copy_job import CopyJob
from mirrorless.local.copy_stats import CopyStats
from mirrorless.local.display_sink import DisplaySink
from mirrorless.local.local_function import LocalFunction
from mirrorless.local.msk_trigger import MskPoller
from mirrorless.local.wiring import wiring

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mirrorless.copy.api import Report
    from mirrorless.functions.job_decision import JobRuns
    from mirrorless.local.displays import Display
    from mirrorless.local.spark_host import SparkHost
    from mirrorless.local.wiring import FunctionSpec
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow, Settings

SUPERVISOR: Final = "job_supervisor"
_COPY: Final = "copy"
_CHECKPOINT: Final = "checkpoint"
_HEARTBEAT: Final = "heartbeat"
_ON_THE_TARGET: Final = frozenset({SUPERVISOR, "heartbeat_monitor"})
_METADATA: Final = ("topic_discovery", "config_sync", "acl_sync")
_AT_ONCE: Final = frozenset({_COPY, _HEARTBEAT, SUPERVISOR})
"""Functions whose schedule triggers at the start; the others have been called then, or have nothing to do yet."""
_AGAIN_S: Final = 30.0
"""When the first sync run is retried after it failed."""


class FlowRun:
    """The run of `flow`; `folder` is its own, `spark` has the session that all flows share.

    `asked` is set when the run has to end.
    """

    def __init__(
        self,
        settings: Settings,
        flow: Flow,
        *,
        folder: Path,
        bounded: bool,
        display: Display,
        spark: SparkHost,
        asked: threading.Event,
    ) -> None:
        self.name = flow.name
        self._flow = flow
        self._bounded = bounded
        self._asked = asked
        self._ended = threading.Event()
        self._looked = self._sync_failed = False
        self._syncing: list[threading.Thread] = []
        self._synced: dict[str, SyncPass] = {}
        self._display = display
        self._wiring = wiring(settings, flow)
        self.stats = CopyStats(folder / "control", bounded=bounded, on_lease=self._leased)
        self._job = CopyJob(self._wiring.job, folder, stats=self.stats, spark=spark, on_change=self._job_changed)
        self._functions = {name: self._function(spec) for name, spec in self._wiring.functions.items()}
        self.pollers = [
            MskPoller(
                one,
                self._functions[one.function].hand,
                tell=self._functions[one.function].sink.trouble,
                ended=self._over,
            )
            for one in self._wiring.triggers
        ]

    def prepare(self) -> None:
        """Let functions that copy open their connections; they begin at `copy`."""
        if not self.needs_spark:
            self._start(_COPY)

    def discover(self) -> None:
        """Discover topics for the first time, in this thread.

        Configs and ACLs are compared afterwards, side by side, while the copy begins; `synced` has the results. Raises
        `MirrorlessError` before anything is written if a cluster does not answer, or if there is only one.
        """
        # Like an operator after a deployment; a copy must find all its topics.
        self._functions[_METADATA[0]].invoke({}, limited=False)
        self._looked = True
        self._note(_METADATA[0])
        for name in _METADATA[1:]:
            thread = threading.Thread(target=self._sync, args=(name,), name=f"first {name}", daemon=True)
            self._syncing.append(thread)
            thread.start()

    def synced(self, *, seconds: float, asked: threading.Event) -> list[SyncPass]:
        """Wait for the first comparison of configs and ACLs; returns the result of each enabled part, topics first.

        Once the run was `asked` to end, at most so long.
        """
        for thread in self._syncing:
            while thread.is_alive():
                thread.join(seconds)
                if asked.is_set():
                    break
        return [self._synced[name] for name in _METADATA if name in self._synced]

    @property
    def sync_failed(self) -> bool:
        """Whether an error ended the first comparison of configs or ACLs, which was reported."""
        return self._sync_failed

    def _sync(self, name: str) -> None:
        went_well = self._functions[name].attempt({}, limited=False)
        self._note(name)
        self._sync_failed |= not went_well and name not in self._synced

    def _note(self, name: str) -> None:
        if (found := self._functions[name].sink.found) is not None:
            self._synced[name] = found

    def copy(self) -> None:
        """Begin to copy: by functions at once, or as soon as Spark has started."""
        self.stats.begin()
        if self.needs_spark and self._bounded:
            self._job.start()
        self._start(SUPERVISOR)

    def start(self) -> None:
        """Begin everything else."""
        for name in self._functions.keys() - {_COPY, SUPERVISOR}:
            self._start(name)
        for poller in self.pollers:
            poller.start()

    @property
    def needs_spark(self) -> bool:
        """Whether the flow cannot be copied without Spark."""
        return self._flow.engine == "spark"

    @property
    def active(self) -> bool:
        """Whether there may be another lease."""
        if self.needs_spark:
            return self._job.active
        failed = self._bounded and not self._job.has_run and not self._functions[_COPY].sink.went_well
        return not self.stats.closing and not (self._bounded and (self.stats.over or failed))

    @property
    def failure(self) -> str | None:
        """Why the copy failed, None if it did not."""
        return self._job.failure

    @property
    def waits_for(self) -> str:
        """What the first report of the copy waits for; valid until the first report."""
        return self._job.waits_for if self.needs_spark or self._job.has_run else self.stats.waits_for

    @property
    def trouble(self) -> str:
        """The current error of the copy, empty if there is none."""
        state = self._functions[SUPERVISOR].sink.last.get("state", TargetState.STARTED)
        if state != TargetState.STARTED and not self._bounded:
            topic = None if self._flow.paused_by_file else configs_topic(self._flow).name
            return str(FlowPaused(flow=self.name, state=state, topic=topic))
        trouble = "" if self.is_away() else self._job.trouble
        return "" if any(topic in trouble for topic in self._not_created()) else trouble

    def _not_created(self) -> list[str]:
        """Topics that could not be created, which was reported with the reason: it is not reported again."""
        found = self._functions[_METADATA[0]].sink.found
        return [] if found is None else [one.action.topic for one in found.failures]

    def ask_to_stop(self) -> None:
        """Let the lease end, and every function; see `land`."""
        self._ended.set()
        self._job.ask_to_stop()
        for function in self._functions.values():
            function.end()

    def land(self, *, until: float) -> None:
        """Wait for the end of the copy until the monotonic time `until`."""
        self._job.join(until=until)
        self._functions[_COPY].join(until=until)

    def join(self, *, seconds: float) -> None:
        """Wait for functions and triggers, not for long: their work may be repeated."""
        until = time.monotonic() + seconds
        for function in self._functions.values():
            function.join(until=until)
        for poller in self.pollers:
            poller.join(until=until)

    def last(self) -> bool:
        """Make one checkpoint run, after a copy that has ended; returns whether it went well."""
        function = self._functions[_CHECKPOINT]
        function.sink.ended = self._asked.is_set
        return function.attempt({}, ended=self._asked.is_set, limited=False)

    def _leased(self, reports: list[Report]) -> None:
        faulty = any(map(self.stats.is_fault, reports)) and not self.is_away()
        self._display.leased(self.name, reports, faulty=faulty)

    def _over(self) -> bool:
        return self._ended.is_set() or self._asked.is_set()

    def _function(self, spec: FunctionSpec) -> LocalFunction:
        sink = DisplaySink(self.name, spec.name, self._display, ended=self._over, away=self.is_away)
        given = RuntimeContext(variables=spec.variables, sink=sink, jobs=self._jobs, copy=self.stats)
        away = partial(self._cannot_work, spec.name)
        return LocalFunction(spec, given, sink, flow=self.name, ended=self._over, away=away)

    def is_away(self) -> bool:
        """Whether one of the flow's clusters does not answer, which was reported."""
        return outages.is_away(self._flow.source.alias) or outages.is_away(self._flow.target.alias)

    def _cannot_work(self, function: str) -> bool:
        """Whether a function can do nothing until a cluster answers again."""
        source, target = self._flow.source.alias, self._flow.target.alias
        if function == _CHECKPOINT:  # which commits group offsets while the source is down
            return outages.is_away(target) or outages.refuses(source)
        if function == _HEARTBEAT:
            return outages.is_away(target) and outages.is_away(source)
        return outages.is_away(target) or (function not in _ON_THE_TARGET and outages.is_away(source))

    def _jobs(self, job: str | None) -> AbstractContextManager[JobRuns]:
        if job != self._wiring.job.name:
            raise PrerequisiteError(f"job {job} is not the copy job of flow {self.name}")
        return nullcontext(self._job)

    def _start(self, name: str) -> None:
        first_s = every_s = self._wiring.functions[name].every_s
        if name in _AT_ONCE and not (name == SUPERVISOR and self._bounded):
            first_s = 0.0
        elif name in _METADATA and not self._looked:
            first_s = min(first_s, _AGAIN_S)
        self._functions[name].start(every_s=every_s, first_s=first_s)

    def _job_changed(self, event: Mapping[str, Any]) -> None:
        self._functions[SUPERVISOR].hand(event)
