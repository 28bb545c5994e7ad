"""checkpoint: one checkpoint run, triggered by new offset syncs or by a schedule."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import ClusterError, ClusterUnavailable, MirrorlessError
from mirrorless.formats import Malformed, OffsetSync
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.copying import EMITTED_BY_COPY, copied_by_functions
from mirrorless.functions.events import ScheduleEvent, TopicRecords, refusal
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.translation import How

if TYPE_CHECKING:
    from mirrorless.functions.invocation import Invocation
    from mirrorless.offsets.checkpoint_pass import GroupSyncReport, PassReport

_LONGEST_WALK_S: Final = 20.0
_EARLY_S: Final = 5.0
"""How much earlier than the interval a schedule may trigger a run that commits group offsets."""


_warm: Final = ClientCache(Checkpoints.close)
"""Clients that have read the topics up to the last run."""
_groups_at: dict[str, float] = {}
"""When group offsets were last committed, monotonic seconds, by flow."""


def checkpoint(invocation: Invocation) -> dict[str, Any]:
    """Translate the offsets of all groups, write changed checkpoints, and commit group offsets if enabled.

    A trigger's records only say that there are new offset syncs: everything is read from the topics. So a run that
    fails is not retried with the same records; the schedule triggers the next one, which raises its error.
    """
    flow, event = invocation.flow, invocation.event
    if not flow.writes_checkpoints:
        return {"note": "checkpoints are disabled in the configuration"}
    by_hand = isinstance(event, ScheduleEvent) and event.by_hand
    if not invocation.continues and not by_hand and copied_by_functions(flow):
        return dict(EMITTED_BY_COPY)
    if not isinstance(event, TopicRecords):
        return _pass(invocation)
    unreadable = [
        refusal(record, sync.reason)
        for record in event.records
        if record.value is not None
        for sync in [OffsetSync.parse(record.key, record.value)]
        if isinstance(sync, Malformed)
    ]
    invocation.refuse([*event.refused, *unreadable])
    refused = {"refused": len(event.refused) + len(unreadable)}
    try:
        return refused | _pass(invocation)
    except MirrorlessError as error:
        invocation.sink.tell("error", f"{error}; the next scheduled run retries")
        return refused | {"error": str(error)}


def _pass(invocation: Invocation) -> dict[str, Any]:
    flow = invocation.flow
    with _warm.kept(flow.name, flow, lambda: Checkpoints(flow)) as checkpoints:
        if (stopped := checkpoints.stopped()) is not None:
            return {"note": stopped}
        return _pass_of(checkpoints, invocation)


def _pass_of(checkpoints: Checkpoints, invocation: Invocation) -> dict[str, Any]:
    budget = invocation.budget
    try:
        report = checkpoints.emit(walking_s=min(_LONGEST_WALK_S, budget.left_s / 2), stopping=budget.is_used_up)
    except ClusterUnavailable as error:
        if invocation.flow.sync_group_offsets_enabled and error.cluster == invocation.flow.source.alias:
            with suppress(ClusterError):  # read early; an error of the source is raised below
                _commit(checkpoints, invocation)
        raise
    left = [f"group {group}" for group in report.left]
    done = _measured(invocation, report)
    troubles = [*report.troubles]
    if invocation.flow.sync_group_offsets_enabled:
        if budget.is_used_up():
            left.append("group offsets on the target")
        elif _are_groups_due(invocation):
            groups = _commit(checkpoints, invocation)
            left += [f"group {group} on the target" for group in groups.left]
            done |= {"group_offsets": groups.written, "active_groups": len(groups.active)}
            done |= {"raised_group_offsets": groups.raised} if groups.raised else {}
    for trouble in troubles:
        invocation.sink.tell("error", trouble)
    if len(report.latencies_ms) < report.emitted or (troubles and not report.groups):
        # Nothing was raised, but the producer's login, or that of the groups' client, may have expired.
        _warm.forget(invocation.flow.name)
    return done | invocation.leave(left)


def _commit(checkpoints: Checkpoints, invocation: Invocation) -> GroupSyncReport:
    groups = checkpoints.sync_groups(stopping=invocation.budget.is_used_up)
    _groups_at[invocation.flow.name] = time.monotonic()
    invocation.measure("group-offset-count", groups.written)
    for trouble in groups.troubles:
        invocation.sink.tell("error", trouble)
    return groups


def _are_groups_due(invocation: Invocation) -> bool:
    """Whether `sync.group.offsets.interval.seconds` have passed, as runs may be more frequent; always if manual."""
    event, flow = invocation.event, invocation.flow
    last = _groups_at.get(flow.name)
    if last is None or (isinstance(event, ScheduleEvent) and event.by_hand):
        return True
    interval_s = flow.sync_group_offsets_interval_seconds
    return time.monotonic() - last >= interval_s - min(_EARLY_S, interval_s / 4)


def _measured(invocation: Invocation, report: PassReport) -> dict[str, Any]:
    invocation.measure("checkpoint-count", report.emitted)
    if report.latencies_ms:
        invocation.measure("checkpoint-latency-ms", *report.latencies_ms)
    invocation.measure("offsets-inexact", report.how[How.NEAREST])
    invocation.measure("offsets-unknown", sum(report.unknown.values()))
    return {
        "groups": report.groups,
        "offsets": report.offsets,
        "emitted": report.emitted,
        "how": dict(report.how),
        "unknown": dict(report.unknown),
        "walked_records": report.walked_records,
        "malformed": report.malformed,
    }
