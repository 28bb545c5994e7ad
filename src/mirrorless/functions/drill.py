"""drill: rehearses a failover of the flow on a schedule, stores the report and emits its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.target_state import TargetState, states_in_turns, waits_for_its_turn
from mirrorless.doctor.findings import Status
from mirrorless.errors import AwsError
from mirrorless.functions.environment import drill_environment
from mirrorless.operations.drill.run import drill_flow
from mirrorless.operations.drill.stored import store

if TYPE_CHECKING:
    from mirrorless.functions.invocation import Invocation
    from mirrorless.operations.drill.report import DrillReport

_ALARMING: Final = {
    Status.FAILED: ("drill-checks-failed", "a check of the drill failed"),
    Status.NOT_CHECKED: ("drill-checks-not-done", "a check of the drill could not be done"),
}
"""The metric of a status, and what is logged for each of its checks."""


def rehearse(invocation: Invocation) -> dict[str, Any]:
    """Drill the flow, also if it is paused; a failed check is a metric and no error.

    A flow to whose target applications write is not drilled, because they have moved there already; that neither flow
    copies is a failed check. Raises `ClusterError` if a cluster does not answer, `AwsError` if the report cannot be
    stored.
    """
    folder, flow = drill_environment().reports, invocation.flow
    if (reason := waits_for_its_turn(flow, Admin(flow.target))) is not None:
        return _of_the_other_turn(invocation, reason)
    report = drill_flow(invocation.settings, flow)
    _measure(invocation, report)
    try:
        place = store(folder, report)
    except OSError as error:
        raise AwsError(f"the report of the drill is not stored: {error}") from error
    return {
        "status": report.status.value,
        "failed": _checks(report, Status.FAILED),
        "not_checked": _checks(report, Status.NOT_CHECKED),
        "warnings": _checks(report, Status.WARNING),
        "rpo_records": report.rpo_records,
        "rpo_s": _rpo_s(report),
        "rto_s": round(report.rto_seconds, 3),
        "report": place,
    }


def _of_the_other_turn(invocation: Invocation, reason: str) -> dict[str, Any]:
    """Report a flow whose target has the applications: a failed check if the opposite flow does not copy either."""
    is_idle = {*states_in_turns(invocation.flow).values()} == {TargetState.STOPPED}
    if is_idle:
        reason = (
            f"neither {invocation.flow.name} nor the opposite flow copies: run `mirrorless operation FILE close`, or "
            "after a failover `mirrorless failback`"
        )
        invocation.sink.tell("error", reason)
    invocation.measure("drill-checks-failed", int(is_idle))
    invocation.measure("drill-checks-not-done", 0)  # ends the alarm of an earlier drill
    return {"note": f"not drilled: {reason}"}


def _measure(invocation: Invocation, report: DrillReport) -> None:
    """Emit the figures of a report, and log each check that failed or could not be done."""
    for status, (metric, text) in _ALARMING.items():
        found = [one for one in report.results if one.status is status]
        invocation.measure(metric, len(found))
        for one in found:
            invocation.sink.tell("error", f"{text}: {one.check}", reason=one.text)
    if report.rpo_records is not None:
        invocation.measure("drill-rpo-records", report.rpo_records)
    if (rpo_s := _rpo_s(report)) is not None:
        invocation.measure("drill-rpo-seconds", rpo_s)
    invocation.measure("drill-rto-seconds", report.rto_seconds)


def _rpo_s(report: DrillReport) -> float | None:
    """The age of the oldest record that is not copied, in seconds; 0 if all are, None if it is not known."""
    return 0.0 if report.rpo_records == 0 else report.rpo_seconds


def _checks(report: DrillReport, status: Status) -> list[str]:
    return [one.check for one in report.results if one.status is status]
