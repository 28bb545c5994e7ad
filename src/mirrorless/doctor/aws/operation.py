"""Checks of what runs: concurrency of the functions, states of the triggers, last runs of the jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mirrorless.doctor.aws.api import Missing
from mirrorless.doctor.findings import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.doctor.aws.api import Api
    from mirrorless.doctor.aws.deployment import Deployment

CONCURRENCY: Final = "concurrency"
TRIGGERS: Final = "triggers"
RUNS: Final = "job runs"
_KEPT: Final = 100
"""What Lambda keeps for functions without a reservation; it refuses reservations beyond that."""
_TRIGGERED: Final = ("Checkpoint", "HeartbeatMonitor")
_CHANGING: Final = frozenset({"Creating", "Enabling", "Updating", "Disabling"})
_FAILED_RUN: Final = frozenset({"FAILED", "TIMEOUT", "ERROR"})
_LATEST: Final = 5
_LONGEST: Final = 300


def check_concurrency(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Compare what the account has left with what the functions need."""
    limits = api.ask("lambda:GetAccountSettings")["AccountLimit"]
    total, left = int(limits["ConcurrentExecutions"]), int(limits["UnreservedConcurrentExecutions"])
    text = f"{left} of {total} concurrent executions of the account are unreserved"
    text += f"; {deployment.name} needs {deployment.concurrency}"
    quota = "request a quota increase (Concurrent executions, L-B99A9384)"
    others = deployment.concurrency - deployment.reserved
    if deployment.reserves and deployment.is_deployed:
        text = f"{deployment.reserved} are reserved; {left} of {total} concurrent executions of the account are not"
        text += f"; {deployment.name} needs {others} of these" if others else ""
    elif deployment.reserves and left - deployment.reserved < _KEPT:
        text += f", and Lambda keeps {_KEPT} unreserved: the deployment will fail"
        fix = f"set ReservedConcurrency=false, or {quota}"
        yield Finding(check=CONCURRENCY, status=Status.FAILED, text=text, fix=fix)
        return
    if others > left:
        text += ": functions are throttled, and run a minute later"
        yield Finding(check=CONCURRENCY, status=Status.WARNING, text=text, fix=quota)
        return
    yield Finding(check=CONCURRENCY, status=Status.OK, text=text)


def check_triggers(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check the state and the last result of each event source mapping of a stack."""
    if not deployment.is_deployed:
        return
    found = list(mappings(deployment, api))
    if found:
        yield from (_mapping(name, one) for name, one in found)
        return
    expected = [end for end in deployment.clusters if deployment.polled(end) is not None]
    text = "no event source mapping: schedules do the work every minute"
    if not expected:
        yield Finding(check=TRIGGERS, status=Status.OK, text=text)
        return
    ends = ", ".join(f"{end.prefix}ClusterArn" for end in expected)
    text += f", though Lambda can poll {ends}"
    fix = (
        "a login by user and password or mTLS needs FirstSecretArn or SecondSecretArn; otherwise deploy the stack again"
    )
    yield Finding(check=TRIGGERS, status=Status.WARNING, text=text, fix=fix)


def mappings(deployment: Deployment, api: Api) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the event source mappings of a stack, each with its function."""
    for name in (name for logical in _TRIGGERED for name in deployment.functions.get(logical, ())):
        for one in api.every("lambda:ListEventSourceMappings", "EventSourceMappings", FunctionName=name):
            yield name, one


def _mapping(function: str, mapping: Mapping[str, Any]) -> Finding:
    topics, state = ", ".join(mapping.get("Topics", [])), str(mapping.get("State"))
    result = _line(mapping.get("LastProcessingResult") or "no records processed yet")
    name = f"{topics or mapping['UUID']} -> {function}"
    if state in _CHANGING:
        return Finding(check=TRIGGERS, status=Status.WARNING, text=f"{name} is {state.lower()}", fix="wait a minute")
    if state != "Enabled":
        reason = _line(mapping.get("StateTransitionReason") or "")
        text = f"{name} is {state.lower()}" + (f" ({reason})" if reason else "") + f"; last result: {result}"
        fix = f"aws lambda update-event-source-mapping --uuid {mapping['UUID']} --enabled"
        return Finding(check=TRIGGERS, status=Status.FAILED, text=text, fix=fix)
    if "PROBLEM" in result:
        fix = "check the network of the cluster's subnets (access of triggers to AWS), the secret and the role"
        return Finding(check=TRIGGERS, status=Status.FAILED, text=f"{name}: {result}", fix=fix)
    return Finding(check=TRIGGERS, status=Status.OK, text=f"{name} is enabled; last result: {result}")


def check_runs(deployment: Deployment, api: Api) -> Iterator[Finding]:
    """Check the last run of each job of a stack."""
    for job in deployment.jobs:
        try:
            answer = api.ask("glue:GetJobRuns", JobName=job, MaxResults=_LATEST)
        except Missing:
            text, fix = f"{job} does not exist", "deploy the stack again"
            yield Finding(check=RUNS, status=Status.FAILED, text=text, fix=fix)
            continue
        runs = sorted(answer["JobRuns"], key=lambda one: one["StartedOn"], reverse=True)
        yield _run(job, runs[0]) if runs else _never(job, has_functions=bool(deployment.copy_names))


def _never(job: str, *, has_functions: bool) -> Finding:
    if job.endswith("-verify"):
        return Finding(check=RUNS, status=Status.OK, text=f"{job} has not run yet")
    if has_functions:
        text = f"{job} has not run yet; job_supervisor starts it when the functions do not suffice"
        return Finding(check=RUNS, status=Status.OK, text=text)
    fix = "job_supervisor starts it within a minute unless the flow is paused; check the log of job_supervisor"
    return Finding(check=RUNS, status=Status.WARNING, text=f"{job} has not run yet", fix=fix)


def _run(job: str, run: Mapping[str, Any]) -> Finding:
    state, started = str(run["JobRunState"]), _time(run.get("StartedOn"))
    text = f"{job}: {state}" + (f" since {started}" if started else "")
    reason = _line(run.get("ErrorMessage") or "")
    if state in _FAILED_RUN:
        name, _, kind = job.rpartition("-")
        text = f"{job}: {state}, run {run['Id']}" + (f", started {started}" if started else "")
        fix = f"read log group /mirrorless/{name}/{kind}/error"
        if "AZ_NULL" in reason:
            fix = "the Glue connection needs the zone of its subnet: see the check zone"
        return Finding(check=RUNS, status=Status.FAILED, text=f"{text}: {reason or 'no reason'}", fix=fix)
    return Finding(check=RUNS, status=Status.OK, text=text)


def _time(value: object) -> str:
    """Return a time in UTC, to the minute: such texts sort by time."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if isinstance(value, datetime) else ""


def _line(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
