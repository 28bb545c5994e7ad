"""Switches clients over, and starts the opposite flow."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.copy.api import status_of
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.modes import Modes
from mirrorless.operation_log.records import OperationKind
from mirrorless.operations.fences import BLOCKS_FLOWS
from mirrorless.operations.reserve import reserve
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, OwnershipLost
from mirrorless.operations.switches import document, throw
from mirrorless.operations.turns import newest_epochs, next_starts, reserved_starts, start_paused, start_turn
from mirrorless.progress.run_marks import deployment_of

if TYPE_CHECKING:
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow

FAILBACK: Final = "mirrorless failback"
CLOSE: Final = "mirrorless operation close"
_WAITS: Final = {
    FAILBACK: "{flow} copies after `mirrorless failback` only: {old} may have records that were never replicated",
    CLOSE: "the fence on {old} is up, and would block {flow}: when no client is left on {old}, run `mirrorless "
    "operation FILE close`, which removes the fence and starts {flow}",
}


class SwitchStep(OperationStep):
    """Throws every switch; one that fails stops the operation, which can be continued.

    With identical offsets some are reserved before, for what producers that are late add to the old cluster; `starts`
    is where the opposite flow begins then.
    """

    name = "switch clients"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Record which."""
        starts = reserved_starts(context.forward, context.operation.data("open").get("ends", {}))
        return {"switches": list(context.request.switches), "starts": starts}

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Throw them in their order."""
        context.check()
        starts = planned.get("starts", {})  # a release before this one recorded none
        reserve(
            context.forward.target,
            {(topic, number): start for topic, some in starts.items() for number, start in enumerate(some)},
        )
        said = document(context.operation, context.forward.target, dry_run=False)
        for switch in planned["switches"]:
            throw(switch, said, confirm=context.check)
            try:
                context.check()
            except OwnershipLost as lost:
                raise OwnershipLost(f"{lost}; switch {switch} was thrown meanwhile: look where it points") from None
        return planned

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        number = len(data["switches"])
        if not number:
            return "mirrorless.switch is not set: start clients on the other cluster yourself"
        return f"{number} switch{'' if number == 1 else 'es'} thrown"


class ReverseStep(OperationStep):
    """Starts the opposite flow. With default names it runs already, or starts like any flow: it only has to be let.

    Of flows that take turns it begins where the copies of this one end on the target. A fence by ACLs or configs would
    block it too, and without the fence a client that is late could still write to the source: so the flow waits for
    `operation close`, with identical offsets whatever the fence is. After a failover it waits for `failback`.
    """

    name = "reverse"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Read its state."""
        if context.reverse is None:
            return {"flow": None}
        modes = Modes(context.forward)
        takes_turns = modes.other_turn is not None
        if takes_turns and context.request.kind is OperationKind.FAILOVER:
            return {"flow": context.reverse.name, "waits": FAILBACK}
        if context.forward.source.alias in context.unreachable:
            if takes_turns:
                alias = context.forward.source.alias
                raise ClusterUnavailable("the opposite flow cannot begin; continue when it is back", cluster=alias)
            return _copies_later(context, context.reverse)
        try:
            with closing(TargetStates(context.reverse)) as states:
                planned: dict[str, Any] = {"flow": context.reverse.name, "state": states.read()}
            if takes_turns:
                planned["epochs"] = newest_epochs(context.reverse, context.operation.data("open")["ends"])
            waits = takes_turns or modes.shares_topics
            exact = bool(context.operation.data("switch clients").get("starts"))
            if waits and (exact or context.operation.data("fence").get("fence") in BLOCKS_FLOWS):
                planned["waits"] = CLOSE
            return planned
        except ClusterUnavailable:
            if context.request.kind is not OperationKind.FAILOVER:
                raise
            return _copies_later(context, context.reverse)

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Resume it if it was paused, and look whether something copies it."""
        flow = context.reverse
        fence = context.operation.data("fence")
        paused = fence.get("paused", [])
        if paused and fence.get("fence") not in BLOCKS_FLOWS:
            start_paused(context.settings, paused, by=context.writer)
        elif paused:
            context.warnings.append(_WAITS[CLOSE].format(flow=", ".join(paused), old=context.forward.source.alias))
        if flow is None:
            context.warnings.append("there is no opposite flow: what is written now cannot come back")
            return planned | {"runs": False}
        if waits := planned.get("waits"):
            if flow.name not in paused:
                context.warnings.append(_WAITS[waits].format(flow=flow.name, old=flow.target.alias))
            return planned | {"runs": False}
        if planned.get("unreachable"):
            return planned | {"runs": False}
        if "epochs" in planned:
            left_out = start_turn(flow, next_starts(context.operation), planned["epochs"], by=context.writer)
            context.warnings += [f"{topic} is not on both clusters, and is left out" for topic in left_out]
        elif planned["state"] != TargetState.STARTED:
            with closing(TargetStates(flow)) as states:
                states.write(TargetState.STARTED, by=context.writer)
        try:
            status = status_of(flow, deployment=deployment_of(context.settings.file, flow.name))
        except ClusterError as error:
            context.warnings.append(f"{flow.name}: {error}")
            return planned | {"runs": False}
        if not status.runs:
            context.warnings.append(f"nothing copies {flow.name}: start `mirrorless run`, or its deployment")
        return planned | {"runs": bool(status.runs), "halted": len(status.halted)}

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        if data["flow"] is None:
            return "no opposite flow"
        if data.get("unreachable"):
            return f"{data['flow']} copies when its target is back"
        if data.get("waits"):
            return f"{data['flow']} waits for {data['waits']}"
        halted = f", {count_of(data['halted'], 'partition')} halted" if data.get("halted") else ""
        return f"{data['flow']} {'is running' if data['runs'] else 'is not running'}{halted}"


def _copies_later(context: OperationContext, reverse: Flow) -> dict[str, Any]:
    """The plan for a flow whose target does not answer."""
    context.warnings.append(f"{reverse.name} copies when {context.forward.source.alias} is back")
    return {"flow": reverse.name, "state": TargetState.STARTED, "unreachable": True}
