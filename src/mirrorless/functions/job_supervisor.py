"""job_supervisor: keeps one run of the copy job active, unless the flow is paused or not enabled."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.environment import supervisor_environment
from mirrorless.functions.events import JobStateChange
from mirrorless.functions.glue_runs import glue_runs
from mirrorless.functions.job_decision import decide
from mirrorless.functions.runtime_context import runtime_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.functions.invocation import Invocation
    from mirrorless.functions.job_decision import JobRun
    from mirrorless.functions.runtime_context import Sink

OVER: Final = frozenset({"SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED", "ERROR", "EXPIRED"})

_states: Final = ClientCache(TargetStates.close)


def supervise(invocation: Invocation) -> dict[str, Any]:
    """Start, stop or keep the job, as `job_decision` decides. Raises `AwsError`, or `ClusterUnavailable`.

    If the target does not answer, nothing is started: then it is not known whether the flow is paused.
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
    with (glue_runs if given is None else given.jobs)(job) as jobs:
        runs = _told(jobs.latest(), event, now=now)
        decision = decide(state, runs, now=now, patience=jobs.patience, release=told.release)
        if decision.stop:
            jobs.stop(decision.stop)
        started = jobs.start(told.release) if decision.start else None
    stopped = set(decision.stop)
    running = started is not None or any(run.is_under_way and run.id not in stopped for run in runs)
    paused = state is not TargetState.STARTED
    invocation.measure("job-running", int(running))
    invocation.measure("job-paused", int(paused))
    invocation.measure("job-down", int(not running and not paused))
    invocation.measure("job-starts", int(bool(started)))
    return {
        "state": state.value,
        "running": running,
        "started_run": started or None,
        "stopped_runs": list(decision.stop),
        "reason": decision.reason,
    }


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
