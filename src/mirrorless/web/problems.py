"""Derives from everything else on the page what needs an operator, the most urgent first. No I/O."""

from __future__ import annotations

import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mirrorless.errors import GapKind
from mirrorless.operations.results import count_of
from mirrorless.web.snapshot import ClusterState, Fix, FlowState, Level, ProblemRow, TopicState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mirrorless.web.snapshot import FlowRow, HaltedRow, Snapshot

KINDS: Final = (
    "cluster unavailable",
    "flow not readable",
    "gap",
    "halted",
    "unexplained fence",
    "no process copies",
    "beyond RPO",
    "partitions unreachable",
    "operation not finished",
    "near RPO",
    "flow paused",
    "cluster slow",
    "fence",
    "flow",
    "not readable",
    "drill failed",
    "rights and limits",
)
"""The kinds of problems; their order is that of urgency."""
NEAR: Final = 0.5
"""A lag in time above this part of the RPO is a warning."""
_ERRORS: Final = frozenset(KINDS[: KINDS.index("operation not finished")])
_NAMED: Final = 10


def problems(found: Snapshot, location: str, more: Iterable[ProblemRow] = ()) -> tuple[ProblemRow, ...]:
    """Return what needs an operator, with `more`; `location` is that of the configuration, for commands."""
    file = shlex.quote(location)
    rows = [
        *_clusters(found, file),
        *(row for flow in found.flows for row in _flow(flow, found, file)),
        *_halted(found.halted, file),
        *_fences_and_operations(found),
        *_readings(found, file),
        *_drills(found),
        *more,
    ]
    return tuple(sorted(rows, key=lambda one: (one.rank, one.subject)))


def problem(kind: str, subject: str, text: str, manual: str, *fixes: Fix, **named: str) -> ProblemRow:
    """Make a row; `named` are its `title`, `flow` and `topic`."""
    return ProblemRow(
        rank=KINDS.index(kind),
        level=Level.ERROR if kind in _ERRORS else Level.WARNING,
        kind=kind,
        subject=subject,
        flow=named.get("flow", ""),
        topic=named.get("topic", ""),
        title=named.get("title", subject),
        text=text,
        fixes=fixes,
        manual=manual,
    )


def _clusters(found: Snapshot, file: str) -> Iterator[ProblemRow]:
    for one in found.clusters:
        flows = [flow.name for flow in found.flows if one.alias in (flow.source, flow.target)]
        if one.state is ClusterState.UNAVAILABLE:
            text = f"{one.error or 'it does not answer'}. Of {', '.join(flows)} it is unknown how far the copy is."
            fix = Fix(text="Check address, name, TLS and login one by one.", command=f"mirrorless doctor {file}")
            yield problem("cluster unavailable", one.alias, text, "troubleshooting.md#lines", fix)
        elif one.state is ClusterState.SLOW:
            text = f"The last answer took {one.answer_ms} ms."
            yield problem("cluster slow", one.alias, text, "links.md")


def _flow(flow: FlowRow, found: Snapshot, file: str) -> Iterator[ProblemRow]:
    name, option = flow.name, f"--flow {shlex.quote(flow.name)}"
    if flow.error is not None:
        if not _is_of_cluster(flow.error, found):
            yield problem("flow not readable", name, flow.error, "troubleshooting.md#lines", flow=name)
        return
    if flow.read_ms is None:
        return
    if flow.state is FlowState.PAUSED:
        fix = Fix(text="If it is not paused on purpose:", command=f"mirrorless resume {file} {option}")
        text = "No records are copied, and retention on the source does not wait."
        yield problem("flow paused", name, text, "operations.md#pause-and-resume", fix, flow=name)
    elif is_not_copied(flow):
        fix = Fix(text="Start a process:", command=f"mirrorless run {file}")
        text = "The flow is to run, but no process that copies it has left a mark in the progress topic."
        yield problem("no process copies", name, text, "operations.md#status", fix, flow=name)
    if flow.rpo_s is not None and flow.lag_s is not None and flow.lag_s > NEAR * flow.rpo_s:
        kind = "beyond RPO" if flow.lag_s > flow.rpo_s else "near RPO"
        text = f"The oldest record that is not copied has waited {flow.lag_s:,.0f} s; the RPO is {flow.rpo_s:,.0f} s."
        fix = Fix(text="What to look at, in which order: the manual.", command=f"mirrorless status {file} {option}")
        yield problem(kind, name, text, "troubleshooting.md#questions", fix, flow=name)
    away = [one for one in found.topics if one.flow == name and one.state is TopicState.UNREACHABLE]
    if away:
        text = f"{_names([one.topic for one in away])}: {away[0].error or 'a partition cannot be reached'}"
        title = f"{name}: {count_of(len(away), 'topic')}"
        yield problem(
            "partitions unreachable", name, text, "operations.md#states-of-a-partition", flow=name, title=title
        )
    for text in flow.problems:
        yield problem("flow", f"{name}: {text}", text, "troubleshooting.md#lines", flow=name, title=name)


def is_not_copied(flow: FlowRow) -> bool:
    """Whether no process copies a flow that is to run."""
    idle = not flow.copiers and flow.bytes_per_s is None and not flow.waiting
    return flow.state is FlowState.RUNNING and flow.error is None and idle


def _halted(rows: Iterable[HaltedRow], file: str) -> Iterator[ProblemRow]:
    """Yield one problem for all partitions of a topic that are halted alike."""
    alike: dict[tuple[str, str, str | None], list[HaltedRow]] = defaultdict(list)
    for one in rows:
        alike[one.flow, one.topic, one.gap].append(one)
    for (flow, topic, gap), some in alike.items():
        first = some[0]
        places = [f"{one.partition} at offset {one.offset:,}" for one in some]
        records = [one.records for one in some if one.records is not None]
        lines = [
            f"{first.reason.rstrip('.')}.",
            f"Halted: {'partition' if len(some) == 1 else 'partitions'} {_names(places)}.",
        ]
        if records:
            lines.append(f"{count_of(sum(records), 'record')} missing.")
        title, manual = topic, "operations.md#gaps"
        partition = f" --partition {first.partition}" if len(some) == 1 else ""
        reset = f"mirrorless offsets reset {file} --flow {shlex.quote(flow)} --topic {shlex.quote(topic)}"
        fixes: tuple[Fix, ...] = (Fix(text="Every lease retries: fix the cause that the reason names.", command=None),)
        if gap == GapKind.CREATED_AGAIN.name:
            title, manual = f"{topic} was deleted and recreated", "operations.md#a-recreated-source-topic"
            fixes = (
                Fix(text="Copy the new topic from its beginning, at the next lease.", command=reset),
                Fix(text="Or, for every topic of the flow from now on, set:", command="mirrorless.on.gap=continue"),
            )
        elif gap is not None:
            fixes = (
                Fix(
                    text="Skip gaps of this flow: set this in the configuration.", command="mirrorless.on.gap=continue"
                ),
                Fix(text="Or copy from the beginning again, at the next lease.", command=reset + partition),
            )
        kind = "halted" if gap is None else "gap"
        subject = f"{flow} {topic} {gap or ''}".rstrip()
        text = " ".join(lines) if gap is None else f"{gap}: {' '.join(lines)}"
        yield problem(kind, subject, text, manual, *fixes, flow=flow, topic=topic, title=title)


def _fences_and_operations(found: Snapshot) -> Iterator[ProblemRow]:
    for one in found.fences:
        if one.operation is None:
            subject = f"{', '.join(one.topics)} on {one.cluster}"
            yield problem("unexplained fence", subject, one.text, "switchover.md#fence", one.fix)
        elif not any(row.id == one.operation and row.outcome == "running" for row in found.operations):
            text = f"{one.text}: {_names(one.topics, one.count)}."
            title = f"{count_of(one.count, 'topic')} on {one.cluster}"
            yield problem("fence", f"{one.operation} {one.cluster}", text, "switchover.md#fence", one.fix, title=title)
    for row in found.operations:
        if row.outcome == "running":
            text = f"It began, and is not finished. Last run by {row.owner or 'an unknown process'}."
            fix = Fix(
                text="If no process runs it now, continue it, or abort it as the manual says.", command=row.next_command
            )
            title = f"{row.kind} from {row.source} to {row.target}"
            manual = "switchover.md#continue-abort-show"
            yield problem("operation not finished", row.id, text, manual, fix, title=title)


def _readings(found: Snapshot, file: str) -> Iterator[ProblemRow]:
    for one in found.readings:
        if one.error is not None and not _is_of_cluster(one.error, found):
            title = f"{one.table} of {one.flow}" if one.flow else one.table
            fix = Fix(text="If a right is missing, this names it.", command=f"mirrorless doctor {file}")
            yield problem("not readable", title, one.error, "web.md#rights", fix, flow=one.flow)
    for text in found.notes:
        yield problem("not readable", text, text, "drill.md#keep-reports", title="reports of drills")


def _drills(found: Snapshot) -> Iterator[ProblemRow]:
    """Yield the last drill of each flow, if it failed; the newest is first."""
    seen: set[str] = set()
    for one in found.drills:
        if one.flow not in seen and one.status == "failed":
            text = "; ".join(f"{check.check}: {check.text}" for check in one.problems if check.status == "failed")
            yield problem(
                "drill failed", one.flow, f"Of the last drill these checks failed: {text}.", "drill.md", flow=one.flow
            )
        seen.add(one.flow)


def _is_of_cluster(error: str, found: Snapshot) -> bool:
    """Whether the error is that of a cluster, which is a problem of its own."""
    return any(
        one.error is not None and (one.error in error or f"cluster {one.alias}:" in error) for one in found.clusters
    ) or (error.endswith("not connected yet"))


def _names(names: Sequence[str], count: int | None = None) -> str:
    more = (len(names) if count is None else count) - len(names[:_NAMED])
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
