"""Derives events from two successive snapshots: what an operator would want to have seen happen. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.doctor.findings import Status
from mirrorless.operations.results import count_of
from mirrorless.web.snapshot import ClusterState, FlowState, Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.web.snapshot import ClusterRow, FlowRow, OperationRow, Snapshot

_RECENT_MS: Final = 600_000


class Change(NamedTuple):
    """An event without its number and time; `flow` is empty if it is not of one flow."""

    level: Level
    flow: str
    kind: str
    text: str


def changes(before: Snapshot | None, after: Snapshot) -> list[Change]:
    """Return what changed; of the first snapshot, only what needs an operator."""
    return [
        *_clusters({one.alias: one for one in before.clusters} if before else {}, after.clusters),
        *_flows({one.name: one for one in before.flows} if before else {}, after.flows),
        *_halted(before, after),
        *_operations({one.id: one for one in before.operations} if before else {}, after.operations),
        *_drills(before, after),
    ]


def _clusters(before: dict[str, ClusterRow], after: Iterable[ClusterRow]) -> Iterator[Change]:
    for one in after:
        was = before[one.alias].state if one.alias in before else ClusterState.CONNECTING
        if one.state is was:
            continue
        if one.state is ClusterState.UNAVAILABLE:
            yield Change(Level.ERROR, "", "cluster", one.error or f"cluster {one.alias} does not answer")
        elif one.state is ClusterState.SLOW:
            yield Change(Level.WARNING, "", "cluster", f"cluster {one.alias} answers slowly, in {one.answer_ms} ms")
        elif was is not ClusterState.CONNECTING:
            yield Change(Level.INFO, "", "cluster", f"cluster {one.alias} answers again")


def _flows(before: dict[str, FlowRow], after: Iterable[FlowRow]) -> Iterator[Change]:
    for one in after:
        was = before.get(one.name)
        if was is None or FlowState.UNKNOWN in (was.state, one.state):
            continue
        if one.state is not was.state:
            level = Level.INFO if one.state is FlowState.RUNNING else Level.WARNING
            yield Change(level, one.name, "state", f"the flow is {one.state}")
        engines, earlier = ({copier.engine for copier in row.copiers} for row in (one, was))
        if engines != earlier:
            yield Change(Level.INFO, one.name, "engine", f"copied by {' and '.join(sorted(engines)) or 'no process'}")
        for problem in one.problems:
            if problem not in was.problems:
                yield Change(Level.WARNING, one.name, "problem", problem)


def _halted(before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
    was = {(one.flow, one.topic, one.partition): one for one in before.halted} if before else {}
    now = {(one.flow, one.topic, one.partition): one for one in after.halted}
    for place, one in now.items():
        if place not in was:
            text = f"{one.topic}-{one.partition} halted at offset {one.offset}: {one.reason}"
            yield Change(Level.ERROR, one.flow, "gap" if one.gap else "halted", text)
    for (flow, topic, partition), _ in sorted(was.items()):
        if (flow, topic, partition) not in now:
            yield Change(Level.INFO, flow, "resumed", f"{topic}-{partition} continues")


def _operations(before: dict[str, OperationRow], after: Iterable[OperationRow]) -> Iterator[Change]:
    for one in after:
        was = before.get(one.id)
        name = f"{one.kind} from {one.source} to {one.target}"
        if was is None:
            if before or one.outcome == "running":
                yield Change(Level.INFO, "", "operation", f"{name} begins")
        elif one.outcome != was.outcome:
            yield Change(Level.INFO, "", "operation", f"{name}: {one.outcome}")
        earlier = {step.step: step.state for step in was.steps} if was else {}
        for step in one.steps if was else ():
            if step.state != "begun" and earlier.get(step.step) != step.state:
                yield Change(Level.INFO, "", "operation", f"{name}: {step.step}: {step.result or step.state}")


def _drills(before: Snapshot | None, after: Snapshot) -> Iterator[Change]:
    """Yield drills that were stored since, of the latest minutes: older ones appear when they are first listed."""
    was = {(one.flow, one.began_ms) for one in before.drills} if before else set()
    for one in after.drills:
        is_new = before is not None and (one.flow, one.began_ms) not in was
        if is_new and after.at_ms - one.ended_ms < _RECENT_MS:
            failed = sum(check.status == Status.FAILED for check in one.problems)
            level = Level.ERROR if failed else Level.INFO
            text = f"{count_of(failed, 'check')} failed" if failed else one.status
            yield Change(level, one.flow, "drill", f"drill: {text}")
