"""Checks beforehand whether an operation can succeed; writes nothing."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.identity import ends_of
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.operations.drill.checks import check_all
from mirrorless.operations.drill.gather import gather
from mirrorless.operations.producers import active_producers
from mirrorless.operations.results import CheckResult, count_of
from mirrorless.operations.steps.context import OperationStep, StepFailed, places_of
from mirrorless.operations.switches import document, throw

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
        failed = [one for one in results if one.status is Status.FAILED and one.check not in self._accepted]
        if failed:
            lines = [line for one in failed for line in _lines(one)]
            raise StepFailed(f"{count_of(len(failed), 'check')} failed", lines)
        said = document(context.operation.id, context.request, context.forward.target, dry_run=True)
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
