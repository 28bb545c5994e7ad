"""Flows that take turns (`loops.opposite`): ends the turn of one, and begins that of the other."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.clusters.topics import high_watermarks
from mirrorless.copy.progress.mark_reader import MarkReader
from mirrorless.copy.progress.records import Known
from mirrorless.copy.progress.run_marks import deployment_of
from mirrorless.copy.progress.topic import ProgressTopic
from mirrorless.copy.resume.reset import Resetter
from mirrorless.errors import ClusterError, OperationError
from mirrorless.metadata.planning import Part
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.operations.steps.context import StepFailed, places_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow

Ends = dict[str, list[int]]
"""Offsets by topic, one for each partition."""

_STOPPED_S: Final = 240.0
"""A copy job that was killed keeps its mark until its lease ends, and thirty seconds more."""


def stop_flow(context: OperationContext) -> None:
    """Stop the flow that keeps topic names, and wait until no process copies it: its topics have other writers now."""
    flow = context.forward
    with closing(TargetStates(flow, admin=context.target)) as states:
        states.write(TargetState.STOPPED)
    until = time.monotonic() + _STOPPED_S
    with closing(MarkReader(flow)) as reader:
        while True:
            now_ms, now = int(time.time() * 1000), time.monotonic()
            deployment = deployment_of(context.settings.file, flow.name)
            runs = [
                mark
                for mark in reader.read().valid(flow, now_ms=now_ms, now=now, deployment=deployment)
                if mark.is_ready
            ]
            if not runs:
                return
            if not context.wait(until):
                raise ClusterError(
                    f"{flow.name} is stopped, but {runs[0].engine} has not ended after {_STOPPED_S:.0f} s",
                    cluster=flow.target.alias,
                )


def copied_ends(context: OperationContext, *, drained: bool) -> Ends:
    """Return where the copies of the stopped flow end on the target: from there on the opposite flow copies.

    After a drain it is where the copy's progress ends, so that what was written to the target by others comes back too;
    without one, where the logs end.
    """
    flow, counts = context.forward, context.recorded_counts()
    ends, missing = high_watermarks(context.target, places_of(counts))
    for (topic, partition), reason in missing.items():
        raise StepFailed(f"the end of {topic}-{partition} is not known: {reason}")
    if drained:
        with closing(ProgressTopic(flow, context.target)) as topic_of_progress:
            known = topic_of_progress.read()
        for place in ends:
            progress = known[place].progress if place in known else None
            if progress is not None and progress.epoch is not None and progress.last_downstream is not None:
                ends[place] = min(ends[place], progress.last_downstream + 1)
    return {topic: [ends[topic, number] for number in range(count)] for topic, count in counts.items()}


def newest_epochs(flow: Flow, starts: Mapping[str, list[int]]) -> Ends:
    """Return the newest epoch of each partition that is about to start, -1 without one. Raises `ClusterError`."""
    with closing(ProgressTopic(flow, Admin(flow.target), must_exist=False)) as topic_of_progress:
        known = topic_of_progress.read()
    return {
        topic: [
            max(known[topic, number].announced, default=-1) if (topic, number) in known else -1
            for number in range(len(offsets))
        ]
        for topic, offsets in starts.items()
    }


def start_turn(flow: Flow, starts: Mapping[str, list[int]], before: Ends, *, emptied: Collection[str] = ()) -> None:
    """Let a flow copy from these offsets of its source on; `emptied` are remote topics that have no records any more.

    `before` are the `newest_epochs` as they were: partitions with a later one were started by an earlier attempt. One
    that was copied up to its start, or beyond, continues where it is. Raises `ClusterError`.
    """
    admin = Admin(flow.target)
    for failed in one_pass(flow, [Part.TOPICS]).failures:  # its internal topics
        raise ClusterError(f"cannot create {failed.action.topic}: {failed.error}", cluster=flow.target.alias)
    with closing(ProgressTopic(flow, admin)) as topic_of_progress:
        known = topic_of_progress.read()

    def is_there(topic: str, number: int, start: int) -> bool:
        one = known.get((topic, number)) or Known()
        if max(one.announced, default=-1) > before[topic][number]:
            return True
        return topic not in emptied and one.progress is not None and one.progress.last_offset + 1 >= start

    with closing(Resetter(flow)) as resetter:
        for topic, offsets in starts.items():
            wanted = {number: start for number, start in enumerate(offsets) if not is_there(topic, number, start)}
            if wanted:
                resetter.apply(resetter.plan(topic, wanted, partitions=wanted))
    with closing(TargetStates(flow, admin=admin)) as states:
        if states.read() is not TargetState.STARTED:
            states.write(TargetState.STARTED)


def refuse_other_turn(flow: Flow) -> None:
    """Raise `OperationError` if a flow is stopped along which applications are to move: they are on its target."""
    with closing(TargetStates(flow)) as states:
        state = states.read()
    if state is TargetState.STOPPED:
        there, here = flow.target.alias, flow.source.alias
        raise OperationError(
            f"flow {flow.name} is stopped. Either applications are on {there}: to move them, use --to {here}. Or the "
            f"fence of the last move is up on {there}: run `mirrorless operation FILE close` first. Or {there} was "
            f"abandoned by a failover: run `mirrorless failback FILE --to {there}`"
        )
