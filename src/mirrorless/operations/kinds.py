"""The steps of each kind of operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.operation_log.records import OperationKind
from mirrorless.operations.steps.clients import ReverseStep, SwitchStep
from mirrorless.operations.steps.drain import DrainStep
from mirrorless.operations.steps.failover import FailoverGroupsStep, FailoverOpenStep, RecordStep
from mirrorless.operations.steps.fence import FenceStep, QuietStep
from mirrorless.operations.steps.groups import GroupsStep
from mirrorless.operations.steps.open_topics import OpenStep
from mirrorless.operations.steps.preflight import PreflightStep
from mirrorless.operations.steps.stranded import StrandedStep

if TYPE_CHECKING:
    from mirrorless.operations.steps.context import OperationStep


def steps_of(kind: OperationKind, accepted: tuple[str, ...] = ()) -> tuple[OperationStep, ...]:
    """Return the steps in their order; `accepted` are names of checks that may fail."""
    if kind is OperationKind.FAILOVER:
        return RecordStep(), FailoverOpenStep(), FailoverGroupsStep(), SwitchStep(), ReverseStep()
    moving: tuple[OperationStep, ...] = (
        PreflightStep(accepted),
        FenceStep(),
        DrainStep(),
        GroupsStep(),
        QuietStep(),
        OpenStep(),
        SwitchStep(),
        ReverseStep(),
    )
    return (StrandedStep(), *moving) if kind is OperationKind.FAILBACK else moving
