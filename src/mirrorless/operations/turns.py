"""Flows that take turns: ends the turn of one, and begins that of the other."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.clusters.topics import high_watermarks, partition_counts
from mirrorless.copy.api import Resetter
from mirrorless.errors import ClusterError, OperationError
from mirrorless.metadata.planning import Part
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.modes import Modes
from mirrorless.offsets.translation_service import Translator
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import StepFailed, places_of
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.run_marks import deployment_of
from mirrorless.progress.topic import ProgressTopic
from mirrorless.protocol.log_ends import log_ends
from mirrorless.protocol.markers import RESERVED_OFFSETS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mirrorless.clusters.target_state import OperationWriter
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.operation_log.records import OperationState
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow, Settings

Ends = dict[str, list[int]]
"""Offsets by topic, one for each partition."""

_STOPPED_S: Final = 240.0
"""A copy job that was killed keeps its mark until its lease ends, and thirty seconds more."""

_REPLICATED_S: Final = 60.0
"""A follower that does not fetch leaves the in-sync replicas after 30 s, the default of `replica.lag.time.max.ms`."""


def stop_flow(context: OperationContext) -> None:
    """Stop the flow that keeps topic names, and wait until no process copies it: its topics have other writers now."""
    halt_flow(context, context.forward, TargetState.STOPPED)


def halt_flow(context: OperationContext, flow: Flow, state: TargetState) -> None:
    """Set a flow's target state, and wait until no process copies it, or is about to. Raises `ClusterError`.

    A run reads the state after its mark is written: one that has read the state of before has a mark here.
    """
    with closing(TargetStates(flow)) as states:
        states.write(state, by=context.writer)
    until = time.monotonic() + _STOPPED_S
    with closing(MarkReader(flow)) as reader:
        while True:
            runs = reader.read().watched(
                flow, now=time.monotonic(), deployment=deployment_of(context.settings.file, flow.name)
            )
            if not runs:
                return
            if not context.wait(until):
                raise ClusterError(
                    f"{flow.name} is {state.lower()}, but {runs[0].engine} has not ended after {_STOPPED_S:.0f} s",
                    cluster=flow.target.alias,
                )


def start_paused(settings: Settings, names: Iterable[str], *, by: OperationWriter) -> None:
    """Start flows of a file that were paused for a fence. Raises `ClusterError`."""
    for flow in settings.flows:
        if flow.name in set(names):
            with closing(TargetStates(flow)) as states:
                states.write(TargetState.STARTED, by=by)


def copied_ends(context: OperationContext, *, drained: bool) -> Ends:
    """Return where the copies of the stopped flow end on the target, by its names: there the opposite flow begins.

    After a drain it is where the flow's offset map ends, by which it was drained, so that what was written to the
    target by others comes back too; without one, where the logs end.
    """
    flow, counts, name_there = context.forward, context.recorded_counts(), Modes(context.forward).name_there
    places = places_of(counts)
    logs = _replicated_ends(context, [(name_there(topic), number) for topic, number in places])
    ends = {(topic, number): logs[name_there(topic), number] for topic, number in places}
    if drained:
        with closing(Translator(flow, source=context.source, target=context.target)) as translator:
            translator.refresh(places)
            if unknown := set(places) - translator.target_ends.keys():
                topic, number = min(unknown)
                raise StepFailed(f"the end of the copy of {topic}-{number} is not known; try again")
            for place in places:
                if runs := translator.line(place).runs:
                    ends[place] = min(ends[place], runs[-1].end_downstream)
    return {name_there(topic): [ends[topic, number] for number in range(count)] for topic, count in counts.items()}


def _replicated_ends(context: OperationContext, places: list[TopicPartition]) -> dict[TopicPartition, int]:
    """Return where the logs of the target end, once that is replicated: a slow follower would show more later."""
    until = time.monotonic() + _REPLICATED_S
    while True:
        # In this order: what is appended in between does not look like what is not replicated.
        logs = log_ends(context.forward.target, context.target.metadata(), places)
        ends, missing = high_watermarks(context.target, places)
        for (topic, partition), reason in missing.items():
            raise StepFailed(f"the end of {topic}-{partition} is not known: {reason}")
        late = [(place, end) for place, end in ends.items() if end < logs.get(place, end)]
        if not late:
            return ends | logs
        if not context.wait(until):
            ((topic, partition), end), alias = late[0], context.forward.target.alias
            more = f", and {count_of(len(late) - 1, 'partition')} more" if len(late) > 1 else ""
            last = logs[topic, partition] - 1
            raise StepFailed(
                f"{topic}-{partition} on {alias}{more}: offsets {end} to {last} are not replicated after "
                f"{_REPLICATED_S:.0f} s; try again when its replicas are in sync"
            )


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


def reserved_starts(flow: Flow, ends: Ends) -> Ends:
    """Return where the next turn begins in topics of the target that keep their offsets: after the reserved ones."""
    modes = Modes(flow)
    here = {topic: name for name in ends if (topic := modes.name_here(name)) is not None}
    exact = sorted(here[topic] for topic in modes.keeps_offsets_in_turns(here))
    return {topic: [end + RESERVED_OFFSETS for end in ends[topic]] for topic in exact}


def next_starts(operation: OperationState) -> Ends:
    """Return where the turn begins that follows an operation: where its copies end, or after reserved offsets."""
    starts: Ends = operation.data("open")["ends"] | operation.data("switch clients").get("starts", {})
    return starts


def start_turn(
    flow: Flow,
    starts: Mapping[str, list[int]],
    before: Ends,
    *,
    by: OperationWriter,
    emptied: Collection[str] = frozenset(),
) -> list[str]:
    """Let a flow copy from these offsets of its source on; returns topics that one side lacks, which are left out.

    `before` are the `newest_epochs` as they were: partitions with a later one were started by an earlier attempt, and
    continue where they are. `emptied` are topics whose copies begin from scratch. Raises `ClusterError`.
    """
    admin = Admin(flow.target)
    for failed in one_pass(flow, [Part.TOPICS]).failures:  # its internal topics
        raise ClusterError(f"cannot create {failed.action.topic}: {failed.error}", cluster=flow.target.alias)
    on_target, name_there = partition_counts(admin.metadata()), Modes(flow).name_there
    there = {topic for topic in partition_counts(Admin(flow.source).metadata()) if name_there(topic) in on_target}
    now, exact = newest_epochs(flow, starts), Modes(flow).keeps_offsets_in_turns(starts.keys() - emptied)
    with closing(Resetter(flow)) as resetter:
        for topic in sorted(starts.keys() & there):
            wanted = {
                number: start
                for number, start in enumerate(starts[topic])
                if now[topic][number] <= before[topic][number]
            }
            if wanted:
                resetter.apply(resetter.plan(topic, wanted, partitions=wanted, turn=topic in exact))
    with closing(TargetStates(flow, admin=admin)) as states:
        if states.read() is not TargetState.STARTED:
            states.write(TargetState.STARTED, by=by)
    return sorted(starts.keys() - there)


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
