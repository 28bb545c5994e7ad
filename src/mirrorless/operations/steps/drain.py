"""Waits for open transactions, fixes the ends of the source, and waits until the target has everything up to them."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import high_watermarks, last_stable_offsets, partition_counts
from mirrorless.copy.api import copy_once
from mirrorless.errors import ClusterError, FlowPaused, MirrorlessError
from mirrorless.metadata.plan import replicated
from mirrorless.modes import Modes
from mirrorless.offsets.backlog import backlogs
from mirrorless.offsets.turn_translation import progress_translator
from mirrorless.operations.producers import active_producers
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, StepFailed, places_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.backlog import Backlog
    from mirrorless.offsets.translation_service import Translator
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow

_PATIENCE_S: Final = 5.0
"""How long the copier may make no progress before this process copies."""
_WALKING_S: Final = 20.0


class DrainStep(OperationStep):
    """`ends` are the source's, by topic, a list of partitions; `ms` is when they were read.

    A second copier beside a running one is safe: appends are compare-and-append, and where the target may have
    forgotten the producer, the first run copies (`RunOrder`).
    """

    name = "drain"

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Wait, and copy here if nothing else does."""
        until = time.monotonic() + context.request.drain_timeout_s
        counts = context.recorded_counts()
        ends = _settled_ends(context, places_of(counts), until)
        settled_ms, context.drained_at = int(time.time() * 1000), time.monotonic()
        copied_here = _copied(context, ends, until)
        _wait_for_others(context, until)
        return {
            "ends": {topic: [ends[topic, number] for number in range(count)] for topic, count in counts.items()},
            "ms": settled_ms,
            "copied_here": copied_here,
        }

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        here = ", by this process" if data["copied_here"] else ""
        number = sum(map(len, data["ends"].values()))
        return f"everything in {count_of(number, 'partition')} is copied{here}"


def _settled_ends(context: OperationContext, places: list[TopicPartition], until: float) -> dict[TopicPartition, int]:
    """Wait until no transaction is open, and return the ends of the source."""
    while True:
        ends, missing = high_watermarks(context.source, places)
        stable, unstable = last_stable_offsets(context.source, places)
        open_in = [place for place, end in ends.items() if stable.get(place, end) < end]
        if not (open_in or missing or unstable):
            return ends
        if not context.wait(until):
            unknown = [f"{topic}-{partition}: {reason}" for (topic, partition), reason in (missing | unstable).items()]
            if unknown:
                raise StepFailed("the ends of the source are not known", unknown)
            producers = active_producers(context.forward.source, context.source.metadata(), open_in)
            lines = [one.text for one in producers if one.open_since is not None]
            seconds = context.request.drain_timeout_s
            raise StepFailed(
                f"transactions are still open in {count_of(len(open_in), 'partition')} after {seconds:g} s",
                lines or [f"{topic}-{partition}" for topic, partition in open_in],
            )


def _copied(context: OperationContext, ends: Mapping[TopicPartition, int], until: float) -> bool:
    """Wait until the target has everything before these ends; returns whether this process had to copy."""
    flow = context.forward
    exact = Modes(flow).keeps_offsets_in_turns({topic for topic, _ in ends})
    copied_here = False
    with closing(progress_translator(flow, source=context.source, target=context.target)) as translator:
        best, since = -1, time.monotonic()
        trouble: str | None = None
        while True:
            left, troubles = _backlog(context, translator, ends)
            lacking = [place for place, end in ends.items() if not _is_copied(left.get(place), end, place[0] in exact)]
            if not lacking:
                return copied_here
            reached = sum(one.copied_to for one in left.values())
            if reached > best:
                best, since = reached, time.monotonic()
            elif time.monotonic() - since > _PATIENCE_S:
                context.say("no copier makes progress; this process copies")
                trouble = _copy(context)
                copied_here, since = True, time.monotonic()
            if not context.wait(until):
                lines = [
                    f"{topic}-{partition}: {count_of(one.records, 'record')} not copied, from offset {one.copied_to} on"
                    for topic, partition in lacking
                    if (one := left.get((topic, partition))) is not None
                ]
                seconds = context.request.drain_timeout_s
                troubles += [] if trouble is None else [trouble]
                raise StepFailed(f"not everything was copied in {seconds:g} s", [*lines, *troubles])


def _wait_for_others(context: OperationContext, until: float) -> None:
    """Wait until records of other clusters, which groups have read on the source, are on the target too.

    Otherwise groups read them there again: if it takes too long, that is a warning.
    """
    target = context.forward.target.alias
    for flow in Modes(context.forward).other_origins:
        try:
            is_there = _has_all(context, flow, until)
        except ClusterError as error:
            is_there = False
            context.say(str(error))
        if not is_there:
            origin, source = flow.source.alias, context.forward.source.alias
            context.warnings.append(
                f"{flow.name} has not copied everything: groups may read records of {origin} again on {target} that "
                f"they have read on {source}"
            )


def _has_all(context: OperationContext, flow: Flow, until: float) -> bool:
    """Whether a flow has copied what its source has now, within the time left."""
    source, counts = Admin(flow.source), context.recorded_counts()
    there = partition_counts(source.metadata())
    common = {topic: there[topic] for topic in replicated(flow, there) if topic in counts}
    ends, _ = last_stable_offsets(source, places_of(common))
    with closing(progress_translator(flow, source=source, target=context.target)) as translator:
        while True:
            translator.refresh(ends)
            deadline = time.monotonic() + _WALKING_S
            left, _ = backlogs(flow, translator, source=source, places=ends, deadline=deadline, up_to=ends)
            if len(left) == len(ends) and not any(one.records for one in left.values()):
                return True
            if not context.wait(until):
                return False


def _is_copied(left: Backlog | None, end: int, and_markers: bool) -> bool:
    """Whether nothing is left; `and_markers`: with identical offsets both logs have to end at one offset."""
    if left is None:
        return False
    return left.copied_to >= end if and_markers else left.exact and not left.records


def _copy(context: OperationContext) -> str | None:
    """Copy what there is in this process; returns why that was not possible."""
    try:
        context.check()
        copy_once(context.settings, context.forward)
    except FlowPaused:
        flow, target = context.forward.name, context.forward.target.alias
        raise StepFailed(f"flow {flow} is paused, and {target} lacks records: run `mirrorless resume` first") from None
    except MirrorlessError as error:
        if not error.retriable:
            raise
        return str(error)
    return None


def _backlog(
    context: OperationContext, translator: Translator, ends: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, Backlog], list[str]]:
    translator.refresh(ends)
    deadline = time.monotonic() + _WALKING_S
    return backlogs(context.forward, translator, source=context.source, places=ends, deadline=deadline, up_to=ends)
