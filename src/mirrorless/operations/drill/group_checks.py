"""Judges what is known about groups: their translations, and what cannot be moved. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Status
from mirrorless.offsets.failover_plan import skipping
from mirrorless.offsets.translation import How
from mirrorless.operations.results import CheckResult, UnreadPart, count_of, not_checked
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.operations.drill.facts import DrillFacts

_OTHER_KINDS: Final = ("share", "streams")
_EMPTY: Final = "empty"


def translations(facts: DrillFacts) -> CheckResult:
    """The forecast of all groups: whether each would have an offset on the target, and what it would read again."""
    check, plan = "translation of groups", facts.plan
    groups = {one.group for one in plan.forecasts}
    none = [
        f"group {one.group}, {one.topic}-{one.partition} at {one.source_offset}: {one.how}"
        for one in plan.forecasts
        if one.target_offset is None
    ]
    again = [
        f"group {one.group}, {one.topic}-{one.partition} at {one.source_offset}: "
        f"up to {count_of(one.read_again, 'record')} would be read again"
        for one in plan.forecasts
        if one.target_offset is not None and one.how == How.NEAREST and one.read_again
    ]
    done = f"{count_of(len(groups), 'group')} with {count_of(len(plan.forecasts), 'offset')}"
    lines = (*none, *again, *plan.troubles)
    if none:
        text = f"{done}: {len(none):,} without an offset on the target"
        fix = "compare with `mirrorless failover-plan`; offsets before the first offset sync cannot be translated"
        return CheckResult(check=check, status=Status.FAILED, text=text, lines=lines, fix=fix)
    if again:
        most = max(one.read_again or 0 for one in plan.forecasts)
        text = f"{done}: {len(again):,} inexact, up to {count_of(most, 'record')} read again"
        return CheckResult(check=check, status=Status.WARNING, text=text, lines=lines)
    if plan.troubles:
        return CheckResult(check=check, status=Status.WARNING, text=f"{done}, with notes", lines=lines)
    text = f"{done}, all exact" if groups else "no selected group has offsets on replicated topics"
    return CheckResult(check=check, status=Status.OK, text=text)


def committed(facts: DrillFacts) -> CheckResult:
    """Whether a group without members would skip records on the target: it is ahead there, and not by this program."""
    check, forecasts = "committed on the target", [one for one in facts.plan.forecasts if not one.has_members]
    there = [one for one in forecasts if one.committed is not None and one.target_offset is not None]
    equal = sum(one.committed == one.target_offset for one in there)
    back = sum((one.committed or 0) > (one.continues_at or 0) for one in there)
    done = f"{equal:,} offsets equal the translation, {len(there) - equal:,} do not"
    if back:
        done += f", of which {back:,} would be set back, since the group went back on {facts.flow.source.alias}"
    ahead = [one for one in there if one.skipped]
    if ahead:
        return CheckResult(
            check=check,
            status=Status.FAILED,
            text=f"{count_of(len(ahead), 'offset')} ahead of the translation; {done}",
            lines=tuple(skipping(ahead, facts.flow.target)),
            fix="reset these offsets on the target with kafka-consumer-groups.sh --reset-offsets",
        )
    text = done if there else "no group has a committed offset on the target"
    return CheckResult(check=check, status=Status.OK, text=text)


def not_movable(facts: DrillFacts) -> CheckResult:
    """What a switchover cannot move or decide on, as far as it can be seen."""
    check, groups = "what cannot be moved", facts.groups
    if isinstance(groups, UnreadPart):
        return not_checked(check, groups)
    ours = {one.group for one in facts.plan.forecasts}
    kinds = {one.name: one.kind for one in groups.listed if one.kind in _OTHER_KINDS}
    without = sorted(
        one.name for one in groups.listed if one.name in ours and one.state == _EMPTY and not one.has_protocol
    )
    source, target = facts.flow.source.alias, facts.flow.target.alias
    lines = [
        *(f"{kind} group {name}: groups of this kind are not moved" for name, kind in sorted(kinds.items())),
        *(
            f"group {name}: its offsets were committed without membership, so {source} does not show whether a "
            "consumer is running"
            for name in without
        ),
        *(
            f"group {name} has members on {target}: its offsets there are left"
            for name in sorted(groups.active_on_target & ours)
        ),
        *(
            f"group {name} has offsets on replicated topics, but is not selected by groups"
            for name in groups.unselected
        ),
    ]
    policy = policy_for(facts.flow)
    read = {one.topic for one in facts.plan.forecasts}
    unread = [topic for topic in facts.remote if topic not in read and not policy.is_heartbeats_topic(topic)]
    note = f"{count_of(len(unread), 'topic')} that no selected group reads" if unread else ""
    if lines:
        text = f"{count_of(len(lines), 'group')}{f'; {note}' if note else ''}"
        return CheckResult(check=check, status=Status.WARNING, text=text, lines=tuple(lines))
    text = f"nothing was found{f'; {note}, whose readers may keep their offsets elsewhere' if note else ''}"
    return CheckResult(check=check, status=Status.OK, text=text)


def without_the_source(facts: DrillFacts) -> CheckResult:
    """Whether offsets can be translated once the source is lost."""
    check, flow = "without the source", facts.flow
    if not facts.plan.forecasts:
        return CheckResult(check=check, status=Status.OK, text="no group has an offset to translate")
    on_target = flow.offset_syncs_topic_location == "target"
    key = "offset-syncs.topic.location=target"
    if not flow.writes_checkpoints and not on_target:
        text = f"offset syncs are on {flow.source.alias}, and no checkpoints are written"
        return CheckResult(check=check, status=Status.FAILED, text=text, fix=f"enable checkpoints, or set {key}")
    lacking = [
        f"group {one.group}, {one.topic}-{one.partition}: no checkpoint"
        for one in facts.plan.forecasts
        if one.checkpoint_offset is None
    ]
    if on_target:
        return CheckResult(check=check, status=Status.OK, text=f"offset syncs are on {flow.target.alias}")
    text = f"offset syncs are on {flow.source.alias}: if it is lost, groups continue from their last checkpoint"
    if lacking:
        text += f"; {count_of(len(lacking), 'position')} without one"
    return CheckResult(
        check=check, status=Status.WARNING, text=text, lines=tuple(lacking), fix=f"set {key}, before the flow starts"
    )


GROUP_CHECKS: Final[tuple[Callable[[DrillFacts], CheckResult], ...]] = (
    translations,
    committed,
    without_the_source,
    not_movable,
)
