"""job_supervisor: chooses what copies the flow, and keeps one run of the copy job active where that is Spark."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.engine_decision import Seen, choose
from mirrorless.functions.environment import supervisor_environment
from mirrorless.functions.events import JobStateChange
from mirrorless.functions.glue_runs import glue_runs
from mirrorless.functions.job_decision import TakenOver, decide
from mirrorless.functions.runtime_context import runtime_context
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.mark_writer import write_choice
from mirrorless.progress.run_marks import deployment_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.functions.invocation import Invocation
    from mirrorless.functions.job_decision import JobRun, JobRuns
    from mirrorless.functions.runtime_context import Sink
    from mirrorless.progress.engine_choice import EngineChoice

OVER: Final = frozenset({"SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED"})

_LOOKS_EVERY_MS: Final = 30_000

_states: Final = ClientCache(TargetStates.close)
_marks: Final = ClientCache(MarkReader.close)


def supervise(invocation: Invocation) -> dict[str, Any]:
    """Choose an engine, and start, stop or keep the job, as `engine_decision` and `job_decision` decide.

    If the target does not answer, nothing is started: then it is not known whether the flow is paused. Raises
    `AwsError`, or `ClusterUnavailable`.
    """
    told, event = supervisor_environment(), invocation.event
    job = told.job
    if isinstance(event, JobStateChange) and event.job != job:
        return {"note": f"{event.job} is another job"}
    flow = invocation.flow
    with _states.kept(flow.name, flow, lambda: TargetStates(flow)) as states:
        state = states.read()
    now = datetime.now(UTC)
    given = runtime_context()
    if given is not None:
        given.copy.let_functions_copy(state is TargetState.STARTED)
    with (glue_runs if given is None else given.jobs)(job) as jobs:
        runs = _told(jobs.latest(), event, now=now)
        taken_over = None if state is not TargetState.STARTED else _taken_over(invocation, jobs)
        decision = decide(state, runs, now=now, patience=jobs.patience, release=told.release, taken_over=taken_over)
        if decision.stop:
            jobs.stop(decision.stop)
        started = jobs.start(told.release) if decision.start else None
    stopped = set(decision.stop)
    running = started is not None or any(run.is_under_way and run.id not in stopped for run in runs)
    paused = state is not TargetState.STARTED
    invocation.measure("job-running", int(running))
    invocation.measure("job-paused", int(paused))
    invocation.measure("copy-missing", 0 if taken_over is None else taken_over.missing)
    invocation.measure("engine-functions", int(taken_over is not None))
    invocation.measure("job-starts", int(bool(started)))
    return {
        "state": state.value,
        "engine": "spark" if taken_over is None else "functions",
        "running": running,
        "started_run": started or None,
        "stopped_runs": list(decision.stop),
        "reason": decision.reason,
    }


def _taken_over(invocation: Invocation, jobs: JobRuns) -> TakenOver | None:
    """Whether functions are to copy the flow; writes the choice."""
    flow = invocation.flow
    if flow.engine == "spark":
        return None
    deployment = deployment_of(supervisor_environment().config, flow.name)
    with _marks.kept(flow.name, flow.connections, lambda: MarkReader(flow)) as reader:
        marks = reader.read()
        now_ms = int(time.time() * 1000)
        valid = marks.valid(flow, now_ms=now_ms, now=time.monotonic(), deployment=deployment)
        before = marks.chosen(flow, deployment)
        seen = Seen(marks=valid, no_spark=jobs.missing, shares=_shares())
        choice = choose(before, seen, flow, now_ms=now_ms)
        if not reader.is_missing and _is_worth_writing(before, choice):
            write_choice(flow, choice, deployment)
    if before is None or before.engine != choice.engine:
        invocation.sink.tell("info", f"engine {choice.engine}: {choice.reason}", engine=choice.engine)
    if choice.engine == "spark":
        return None
    until = datetime.fromtimestamp(choice.since_ms / 1000, UTC) + timedelta(seconds=jobs.ends_itself_s)
    return TakenOver(reason=choice.reason, until=until, missing=0 if flow.copy_idle_exit else seen.missing_shares)


def _shares() -> int:
    return 1 if runtime_context() is not None else supervisor_environment().copy_functions


def _is_worth_writing(before: EngineChoice | None, choice: EngineChoice) -> bool:
    """Whether more has changed than the lag, or the time of a look, which is written twice a minute."""
    if before is None or choice.silent_ms - before.silent_ms >= _LOOKS_EVERY_MS:
        return True
    return replace(choice, silent_ms=0, lag_bytes=0) != replace(before, silent_ms=0, lag_bytes=0)


def stand_down(sink: Sink) -> None:
    """Stop the runs of a flow that is not enabled any more: they copy nothing, and cost. Raises `AwsError`."""
    given = runtime_context()
    with (glue_runs if given is None else given.jobs)(supervisor_environment().job) as jobs:
        if under_way := [run.id for run in jobs.latest() if run.is_under_way]:
            jobs.stop(under_way)
            sink.tell("warning", "the flow is not enabled any more; its run is stopped", stopped_runs=under_way)


def _told(runs: Sequence[JobRun], event: object, *, now: datetime) -> list[JobRun]:
    """Use the event where it is newer than Glue's list: the two are not updated at the same time."""
    return [
        replace(run, state=event.state, ended=run.ended or now)
        if isinstance(event, JobStateChange) and event.run == run.id and event.state in OVER
        else run
        for run in runs
    ]
