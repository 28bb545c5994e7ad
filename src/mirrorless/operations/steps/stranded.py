"""Finds the stranded tail: what the old cluster has that was never replicated before a failover."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.clusters.topics import partition_counts
from mirrorless.copy.api import copy_once
from mirrorless.metadata.plan import replicated
from mirrorless.modes import Modes
from mirrorless.offsets.backlog import backlogs
from mirrorless.offsets.turn_translation import progress_translator
from mirrorless.operations.results import count_of
from mirrorless.operations.steps.context import OperationStep, StepFailed, places_of
from mirrorless.operations.steps.stranded_tail import SAID, TOPIC, plan_tail, settle_tail, undo_emptied
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.backlog import Backlog
    from mirrorless.operations.steps.context import OperationContext
    from mirrorless.settings import Flow

_WALKING_S: Final = 60.0


class StrandedStep(OperationStep):
    """With default names nothing stays stranded: the flow from the old cluster continues, and completes its copies.

    `partitions` are those with records that were missing, each with the number, and the offset where they begin. Flows
    that take turns have a tail on the old cluster (`stranded_tail`).
    """

    name = "stranded"

    @staticmethod
    def way(flow: Flow, wanted: str) -> str:
        """Return what happens with a tail, where `wanted` is asked for: the first words of a sentence."""
        return "copies" if Modes(flow).other_turn is None else f"--stranded {wanted} for"

    def plan(self, context: OperationContext) -> dict[str, Any]:
        """Count what is missing."""
        if Modes(context.forward).other_turn is not None:
            return plan_tail(context)
        if context.reverse is None:
            raise StepFailed(
                f"the file has no flow {context.forward.target.alias}->{context.forward.source.alias}, along which "
                "records of the old cluster would be copied"
            )
        missing = _missing(context)
        with closing(TargetStates(context.reverse)) as states:
            state = states.read()
        return {
            "state": state,
            "partitions": [
                [topic, partition, one.records, one.copied_to] for (topic, partition), one in sorted(missing.items())
            ],
        }

    def act(self, context: OperationContext, planned: dict[str, Any]) -> dict[str, Any]:
        """Wait until they are copied, or copy them."""
        if "how" in planned:
            return settle_tail(context, planned)
        until = time.monotonic() + context.request.drain_timeout_s
        assert context.reverse is not None
        with closing(TargetStates(context.reverse)) as states:
            if planned["state"] != TargetState.STARTED:
                context.warnings.append(f"{context.reverse.name} was paused, and is resumed")
                states.write(TargetState.STARTED, by=context.writer)
        copied_here, patience = False, time.monotonic() + 5.0
        while left := _missing(context):
            if time.monotonic() > patience:
                context.say(f"nothing copies {context.reverse.name}; this process copies")
                context.check()
                copy_once(context.settings, context.reverse)
                copied_here, patience = True, time.monotonic() + 5.0
            if not context.wait(until):
                lines = [
                    f"{topic}-{partition}: {count_of(one.records, 'record')}"
                    for (topic, partition), one in left.items()
                ]
                raise StepFailed("records of the old cluster are not copied", lines)
        return planned | {"copied_here": copied_here}

    def undo(self, context: OperationContext, data: dict[str, Any]) -> None:
        """Set the state that the flow had; copies stay."""
        if "how" in data:
            with closing(TargetStates(context.forward)) as states:
                states.write(TargetState.STOPPED, by=context.writer)
            undo_emptied(context, data)
            return
        if context.reverse is not None and data["state"] != TargetState.STARTED:
            with closing(TargetStates(context.reverse)) as states:
                states.write(TargetState(data["state"]), by=context.writer)

    def text(self, data: dict[str, Any]) -> str:
        """Return the result in one line."""
        number = sum(one[2] for one in data["partitions"])
        if not number:
            return "nothing was stranded"
        where = count_of(len(data["partitions"]), "partition")
        if "how" in data:
            emptied = ", and the old topics are emptied" if data["how"] == TOPIC and data["ids"] else ""
            return f"{count_of(number, 'record')} in {where}: {SAID[data['how']]}{emptied}"
        return f"{count_of(number, 'record')} in {where} had not been replicated, and are now"


def _missing(context: OperationContext) -> dict[TopicPartition, Backlog]:
    """The records of the old cluster, along the opposite flow, that the live one lacks."""
    flow = context.reverse
    assert flow is not None
    policy = policy_for(flow)
    there = partition_counts(context.target.metadata())
    counts = {topic: there[topic] for topic in replicated(flow, there) if not policy.is_heartbeats_topic(topic)}
    places = places_of(counts)
    with closing(progress_translator(flow, source=context.target, target=context.source)) as translator:
        translator.refresh(places)
        found, troubles = backlogs(
            flow, translator, source=context.target, places=places, deadline=time.monotonic() + _WALKING_S
        )
    if len(found) < len(places):
        raise StepFailed("not every partition of the old cluster could be read", troubles)
    return {place: one for place, one in found.items() if one.records or not one.exact}
