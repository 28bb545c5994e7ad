"""Checks beforehand whether an operation can succeed; writes nothing."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.groups import subscriptions
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.topics import partition_counts
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterError
from mirrorless.modes import Modes
from mirrorless.operations.drill.checks import check_all
from mirrorless.operations.drill.gather import gather
from mirrorless.operations.producers import active_producers
from mirrorless.operations.results import CheckResult, UnreadPart, count_of, not_checked
from mirrorless.operations.steps.context import OperationStep, StepFailed, places_of
from mirrorless.operations.switches import document, throw
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow

_MOST_POSITIONS: Final = 100
_ACTIVE_S: Final = 60.0
_SHOWN: Final = 20


class PreflightStep(OperationStep):
    """Doctor for both directions, the checks of a drill, and a dry call of every switch.

    A failed check ends the operation before anything was changed, unless its name is in `accepted`.
    """

    name = "preflight"

    def __init__(self, accepted: tuple[str, ...] = ()) -> None:
        self._accepted = accepted

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Check everything."""
        ends_of(
            context.forward,
            source=context.source,
            target=context.target,
            at_source=context.source.metadata(),
            at_target=context.target.metadata(),
        )
        results = [*_examined(context.forward), *([] if context.reverse is None else _examined(context.reverse))]
        facts = gather(
            context.forward,
            location=context.settings.file,
            most_positions=_MOST_POSITIONS,
            chance=random.Random(),  # noqa: S311 -- a sample
        )
        results += check_all(facts)
        if topics := Modes(context.forward).second_names(context.counts()):
            single = _subscriptions(context, set(topics), {one.group for one in facts.plan.forecasts})
            results.append(single)
            if single.status is Status.WARNING:
                context.warnings.append(f"{single.check}: {single.text}")
        failed = [one for one in results if one.status is Status.FAILED and one.check not in self._accepted]
        if failed:
            lines = [line for one in failed for line in _lines(one)]
            raise StepFailed(f"{count_of(len(failed), 'check')} failed", lines)
        said = document(context.operation, context.forward.target, dry_run=True)
        for switch in context.request.switches:
            throw(switch, said)
        warnings = [f"{one.check}: {one.text}" for one in results if one.status is Status.WARNING]
        accepted = [f"{one.check}: {one.text}" for one in results if one.status is Status.FAILED]
        context.warnings += accepted
        return {
            "checks": len(results),
            "warnings": [*accepted, *warnings],
            "writers": _writers(context),
            "groups": len({one.group for one in facts.plan.forecasts}),
        }

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        return (
            f"{count_of(data['checks'], 'check')}, {count_of(len(data['warnings']), 'warning')}; "
            f"{count_of(len(data['writers']), 'active producer')}, {count_of(data['groups'], 'group')}"
        )


def _examined(flow: Flow) -> list[CheckResult]:
    """The findings of `mirrorless doctor` for a flow."""
    return [
        CheckResult(
            check=f"doctor {flow.name}, {one.check}" if one.cluster is None else f"doctor {one.cluster}, {one.check}",
            status=one.status,
            text=one.text,
            fix=one.fix,
        )
        for one in examine(flow)
    ]


def _subscriptions(context: OperationContext, topics: set[str], groups: set[str]) -> CheckResult:
    """Whether groups subscribe to both names that a topic has after the move.

    Judged by topics that have both names on the source: members do not show names of topics that do not exist.
    """
    check, flow = "subscriptions", context.forward
    try:
        known = subscriptions(flow.source, groups)
    except ClusterError as error:
        return not_checked(check, UnreadPart(str(error)))
    separator = flow.replication_policy_separator
    there = partition_counts(context.source.metadata()).keys()
    found = [
        (group, topic)
        for group, subscribed in sorted(known.items())
        for topic in sorted(subscribed & topics)
        if (others := {name for name in there if name.endswith(f"{separator}{topic}")}) and not others & subscribed
    ]
    if not found:
        text = f"{count_of(len(known), 'group')} with members, none subscribes to one name of a topic only"
        return CheckResult(check=check, status=Status.OK, text=text)
    lines = tuple(f"group {group} subscribes to {topic} only" for group, topic in found)
    remote = policy_for(flow).format_remote_topic(flow.source.alias, found[0][1])
    more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
    text = f"{lines[0]}{more}, whose earlier records are in {remote} on {flow.target.alias}: subscribe to both names"
    return CheckResult(check=check, status=Status.WARNING, text=text, lines=lines)


def _writers(context: OperationContext) -> list[str]:
    """The producers that wrote to the topics within the last minute."""
    places = places_of(context.counts())
    since_ms = int((time.time() - _ACTIVE_S) * 1000)
    found = active_producers(context.forward.source, context.source.metadata(), places)
    ids = sorted({one.id for one in found if one.last_ms >= since_ms})
    return [f"producer {one}" for one in ids]


def _lines(one: CheckResult) -> Iterator[str]:
    yield f"{one.check}: {one.text}"
    yield from (f"  {line}" for line in one.lines[:_SHOWN])
    if one.fix is not None:
        yield f"  -> {one.fix}"
