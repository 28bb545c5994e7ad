"""Checks each right that a flow needs, by the table in `mirrorless.rights`; one finding per right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.msk import is_serverless
from mirrorless.clusters.side_by_side import each
from mirrorless.doctor.examples import examples, is_invented, literals
from mirrorless.doctor.findings import Finding, Status, some_of
from mirrorless.doctor.probes import NotSaid
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.metadata.kind import DELETES, SETTING
from mirrorless.policy import policy_for
from mirrorless.rights import CONNECT, SWITCHES, Function, On, Operation, When, name_of, needed, without_implied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mirrorless.doctor.probes import Probes
    from mirrorless.rights import Row, Side
    from mirrorless.settings import Flow

_GROUPS_ASKED: Final = 500  # some rights are checked one by one


@dataclass(frozen=True, slots=True)
class Names:
    """The visible names of the source: topics that the flow replicates, and groups whose offsets it translates."""

    topics: tuple[str, ...]
    groups: tuple[str, ...]


def rights_there(
    flow: Flow, side: Side, *, probes: Probes, names: Names, functions: Iterable[Function] | None = None
) -> list[Finding]:
    """Check the rights on one side, for all functions of the flow or for some."""
    cluster = flow.source if side == "source" else flow.target
    rows = [
        row
        for row in needed(flow, functions)
        if row.side is side
        and row.when is not When.OLD_BROKERS
        # MSK Serverless has no ACLs to read or to add.
        and not (row.on is On.CLUSTER and _is_about_acls(row) and is_serverless(cluster))
    ]
    grouped: dict[tuple[On, Operation], list[Row]] = {}
    for row in without_implied(rows):
        grouped.setdefault((row.on, row.operation), []).append(row)
    return each([partial(_check, flow, side, some, probes=probes, names=names) for some in grouped.values()])


def _check(flow: Flow, side: Side, rows: Sequence[Row], *, probes: Probes, names: Names) -> Finding:
    row = rows[0]
    alias = (flow.source if side == "source" else flow.target).alias
    check = f"{row.operation} on {row.on}"
    things = _things(flow, row.on, names)
    if not things and row.on is not On.CLUSTER:
        text = f"no {row.on.kind} is visible on {flow.source.alias}, and the patterns contain no name to check"
        return Finding(check=check, status=Status.NOT_CHECKED, text=text, cluster=alias)
    try:
        refused = sorted(_refused(probes, row, things))
    except NotSaid as error:
        return Finding(check=check, status=Status.NOT_CHECKED, text=str(error), cluster=alias)
    invented = row.on is On.GROUPS and all(map(is_invented, things))
    if not refused and invented:
        # A right on a name that no group has says nothing about a group that this user may not see.
        text = f"no group is visible on {flow.source.alias} that `groups` selects; one that exists may be hidden"
        fix = f"on {alias}, allow the flow's user {row.operation} on all groups of `groups`: {_patterns(flow)}"
        return Finding(check=check, status=Status.WARNING, text=text, cluster=alias, fix=fix)
    if not refused:
        text = f"granted on {_on(row.on, things)}" if things else "granted"
        return Finding(check=check, status=Status.OK, text=text, cluster=alias)
    required = [one for one in rows if one.required]
    on = f"all groups of `groups`: {_patterns(flow)}" if invented else _on(row.on, refused)
    fix = f"on {alias}, allow the flow's user {row.operation} on {on}"
    fix += f" (MSK IAM: {', '.join((CONNECT, *row.iam_actions))})"
    if not required:
        return Finding(check=check, status=Status.WARNING, text=_lesser(row, refused), cluster=alias, fix=fix)
    which = on if invented else _on(row.on, refused)
    if len(refused) < len(things):
        which = f"{len(refused)} of {len(things)} {row.on.kind}s, among them {some_of(refused)}"
    purposes: dict[str, list[Function]] = {}
    for one in required:
        purposes.setdefault(one.why, []).append(one.function)
    fix += _or_without(required)
    needed_by = ", ".join(f"{' and '.join(functions)} to {why}" for why, functions in purposes.items())
    text = f"no {row.operation} on {which}; needed by {needed_by}"
    return Finding(check=check, status=Status.FAILED, text=text, cluster=alias, fix=fix)


def _or_without(rows: Sequence[Row]) -> str:
    """Return how to do without what needs the rows, if one setting is enough; else nothing."""
    if all(one.kind is not None for one in rows):
        return f", or remove {', '.join(dict.fromkeys(str(one.kind) for one in rows))} from {SETTING}"
    if all(one.when is When.DELETES for one in rows):
        return f", or set {DELETES}=false"
    needing = {one.part or one.function for one in rows}
    switch = SWITCHES.get(needing.pop()) if len(needing) == 1 else None
    return "" if switch is None else f", or set {switch}=false"


def _patterns(flow: Flow) -> str:
    return ", ".join("*" if pattern == ".*" else pattern for pattern in flow.groups)


def _is_about_acls(row: Row) -> bool:
    return row.function in (Function.ACL_SYNC, Function.DRILL) or row.when in (When.ACLS, When.COMPARED)


def _lesser(row: Row, refused: Sequence[str]) -> str:
    return f"no {row.operation} on {_on(row.on, refused)}; {row.when.value if row.when is not None else ''}"


def _things(flow: Flow, on: On, names: Names) -> list[str]:
    """Return the names to check; if none is visible, examples that the patterns would select."""
    if on is On.CLUSTER:
        return []
    if on is On.GROUPS:
        return _all(names.groups, flow.groups, group_filter_for(flow).selects)[:_GROUPS_ASKED]
    if (name := name_of(flow, on)) is not None:
        return [name]
    topics = _all(names.topics, flow.topics, topic_filter_for(flow).selects)
    if on is On.TOPICS:
        return topics
    policy = policy_for(flow)
    return [policy.format_remote_topic(flow.source.alias, topic) for topic in topics]


def _all(seen: Sequence[str], patterns: Sequence[str], selects: Callable[[str], bool]) -> list[str]:
    return list(dict.fromkeys((*seen, *literals(patterns, selects)))) or examples(patterns, selects)


def _refused(probes: Probes, row: Row, things: list[str]) -> list[str]:
    if row.on is On.CLUSTER:
        return [] if probes.may_on_cluster(row.operation) else ["the cluster"]
    if row.on.kind == "group":
        return probes.refused_groups(row.operation, things)
    return probes.refused_topics(row.operation, things)


def _on(on: On, things: Sequence[str]) -> str:
    if on is On.CLUSTER:
        return "the cluster"
    if len(things) == 1:
        return f"{on.kind} {things[0]}"
    return f"{len(things)} {on.kind}s: {some_of(list(things))}"
