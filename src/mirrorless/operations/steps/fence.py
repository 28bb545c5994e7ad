"""Blocks writers on the cluster that applications leave, and proves later that nothing was written."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.consumers import records_in
from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.clusters.topics import high_watermarks
from mirrorless.loops import shares_topics, skips_copies
from mirrorless.operations.fences import fence_of
from mirrorless.operations.producers import active_producers
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, StepFailed, places_of
from mirrorless.operations.turns import halt_flow

if TYPE_CHECKING:
    from mirrorless.operations.steps.context import OperationContext

_SEEN_S: Final = 30.0


class FenceStep(OperationStep):
    """Puts the fence up, and waits until every broker knows it. `topics` are what the operation moves.

    Flows that copy to the same topics (`mirrorless.loops=skip`) are paused before, as the fence would block them too;
    `paused` has the state of each.
    """

    name = "fence"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Record what was before."""
        counts = context.counts()
        if not counts:
            raise StepFailed("no topic of the flow matches")
        fence = context.request.fence
        planned = fence_of(fence, context.forward.source, context.source).plan(list(counts))
        return {
            "topics": counts,
            "fence": fence,
            "planned": planned,
            "began_ms": int(time.time() * 1000),
            "paused": _states_of_blocked(context),
        }

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Put it up."""
        for name in planned["paused"]:
            halt_flow(context, context.settings.flow(name), TargetState.PAUSED)
        fence = fence_of(planned["fence"], context.forward.source, context.source)
        fence.apply(planned["planned"])
        until = time.monotonic() + _SEEN_S
        while unseen := fence.unseen(planned["planned"]):
            if not context.wait(until):
                raise StepFailed("the fence is not known everywhere", unseen)
        return planned

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:
        """Take it down."""
        fence_of(data["fence"], context.forward.source, context.source).remove(data["planned"])
        for name, state in data["paused"].items():
            with closing(TargetStates(context.settings.flow(name))) as states:
                states.write(TargetState(state))

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        what = {"acl": "DENY WRITE", "config": "max.message.bytes", "none": "no fence"}.get(
            data["fence"], data["fence"]
        )
        return f"{what} on {count_of(len(data['topics']), 'topic')}"


def _states_of_blocked(context: OperationContext) -> dict[str, str]:
    """Return the states of flows that copy to the topics of the source; raises `ClusterUnavailable`."""
    found: dict[str, str] = {}
    if shares_topics(context.forward):
        for flow in context.settings.flows:
            if flow.target.alias == context.forward.source.alias and skips_copies(flow):
                with closing(TargetStates(flow, admin=context.source)) as states:
                    found[flow.name] = states.read()
    return found


class QuietStep(OperationStep):
    """Waits until nothing was written for a while since the drain; steps between ran meanwhile.

    Markers of transactions move the end of a log too: only records count.
    """

    name = "verify fence"

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Wait, then compare the ends of the source with those of the drain."""
        drained = context.operation.data("drain")
        quiet_s = context.request.quiet_s
        until = time.monotonic() + max(0.0, quiet_s - (time.time() - drained["ms"] / 1000))
        while True:
            more = context.wait(until)
            self._refuse_written(context, drained["ends"])
            if not more:
                return {"quiet_s": quiet_s}

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        return f"no record was written for {data['quiet_s']:g} s"

    def _refuse_written(self, context: OperationContext, drained: dict[str, list[int]]) -> None:
        places = places_of(context.recorded_counts())
        ends, missing = high_watermarks(context.source, places)
        for (topic, partition), reason in missing.items():
            raise StepFailed(f"the end of {topic}-{partition} is not known: {reason}")
        moved = {place: (drained[place[0]][place[1]], end) for place, end in ends.items()}
        moved = {place: span for place, span in moved.items() if span[1] > span[0]}
        if not moved:
            return
        written = records_in(context.forward.source, moved)
        if not written:
            return
        began_ms = context.operation.data("fence")["began_ms"]
        producers = active_producers(context.forward.source, context.source.metadata(), written)
        lines = [f"{topic}-{partition}: {count_of(number, 'record')}" for (topic, partition), number in written.items()]
        lines += [one.text for one in producers if one.last_ms >= began_ms]
        number = count_of(sum(written.values()), "record")
        raise StepFailed(f"{number} arrived on {context.forward.source.alias} after the fence", lines)
