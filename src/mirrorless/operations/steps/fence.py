"""Blocks writers on the cluster that applications leave, and proves later that nothing was written."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.consumers import records_in
from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.clusters.topics import high_watermarks
from mirrorless.modes import Modes
from mirrorless.operations.fences import fence_of, settle
from mirrorless.operations.producers import active_producers
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, OwnershipLost, StepFailed, places_of
from mirrorless.operations.turns import halt_flow, start_paused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Cluster

_SEEN_S: Final = 30.0


class FenceStep(OperationStep):
    """Puts the fence up, and waits until every broker knows it. `topics` are what the operation moves.

    Flows that append to these topics are paused before, as the fence would block them too: those that keep names, such
    as with `mirrorless.both.directions=skip`, and those whose remote topics are replicated on. `paused` are those that
    ran.
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
            "paused": _blocked(context, counts),
        }

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Put it up."""
        for name in planned["paused"]:
            halt_flow(context, context.settings.flow(name), TargetState.PAUSED)
        fence = fence_of(planned["fence"], context.forward.source, context.source)
        with changing_fence(context, context.forward.source, planned):
            fence.apply(planned["planned"])
            until = time.monotonic() + _SEEN_S
            while unseen := fence.unseen(planned["planned"]):
                if not context.wait(until):
                    raise StepFailed("the fence is not known everywhere", unseen)
        return planned

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:
        """Take it down."""
        with changing_fence(context, context.forward.source, data):
            fence_of(data["fence"], context.forward.source, context.source).remove(data["planned"])
        start_paused(context.settings, data["paused"], by=context.writer)

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        what = {"acl": "DENY WRITE", "config": "max.message.bytes", "none": "no fence"}.get(
            data["fence"], data["fence"]
        )
        return f"{what} on {count_of(len(data['topics']), 'topic')}"


@contextmanager
def changing_fence(context: OperationContext, cluster: Cluster, data: dict[str, Any]) -> Iterator[None]:
    """Change a fence on a cluster; what a process does that lost the operation before or meanwhile is reverted.

    `data` has the fence and what was planned, as the step's. Brokers cannot bind the change to the operation.
    """
    context.check()
    try:
        yield
        context.check()
    except OwnershipLost:
        fence = fence_of(data["fence"], cluster)
        settle(fence, data["planned"], lambda: context.logged().fenced_on(cluster.alias))
        raise


def _blocked(context: OperationContext, topics: Iterable[str]) -> list[str]:
    """Return the flows that append to topics of the source, and are not paused; raises `ClusterUnavailable`."""
    found: list[str] = []
    for flow in context.settings.flows:
        if flow.target.alias == context.forward.source.alias and Modes(flow).appends_to(topics):
            with closing(TargetStates(flow, admin=context.source)) as states:
                if states.read() is TargetState.STARTED:
                    found.append(flow.name)
    return found


def _refuse_unfenced(context: OperationContext) -> None:
    """Raise `StepFailed` if the fence was removed meanwhile."""
    data = context.operation.data("fence")
    fence = fence_of(data["fence"], context.forward.source, context.source)
    if missing := fence.unseen(data["planned"]):
        raise StepFailed(f"the fence on {context.forward.source.alias} was removed by another process", missing)


class QuietStep(OperationStep):
    """Waits until nothing was written for a while since the drain; steps between ran meanwhile.

    Markers of transactions move the end of a log too: only records count.
    """

    name = "verify fence"

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Wait, then compare the ends of the source with those of the drain."""
        drained = context.operation.data("drain")
        quiet_s = context.request.quiet_s
        # Only this process's own clock: where another one drained, the whole time begins now.
        began = time.monotonic() if context.drained_at is None else context.drained_at
        until = began + quiet_s
        while True:
            more = context.wait(until)
            self._refuse_written(context, drained["ends"])
            if not more:
                _refuse_unfenced(context)
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
