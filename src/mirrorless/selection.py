"""Decides which topics of its source a flow replicates, and why it does not replicate the others. No I/O."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from mirrorless.policy import keeps_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.policy import ReplicationPolicy
    from mirrorless.settings import Flow


class LeftOut(Enum):
    """Why a flow does not replicate a topic of its source."""

    INTERNAL = "internal"
    CYCLE = "cycle"
    FILTER = "filter"
    SERVICE = "service"
    NAME = "name"


def left_out(topic: str, *, flow: Flow, policy: ReplicationPolicy, selects: Callable[[str], bool]) -> LeftOut | None:
    """Return why a flow does not replicate this topic of its source, or None; `selects` is the flow's topic filter.

    Rule (`MirrorSourceConnector.shouldReplicateTopic`): heartbeats pass the filter unless disabled (KIP-1089);
    internal topics and cycles never pass. In addition, heartbeats that were on the source already do not pass
    (KAFKA-9914): if another file uses another alias for the target, the target is not visible in their names.
    """
    if policy.is_internal_topic(topic):
        return LeftOut.INTERNAL
    if policy.is_cycle(topic, flow.target.alias):
        return LeftOut.CYCLE
    if policy.is_heartbeats_topic(topic) and carries_source(topic, flow=flow, policy=policy):
        return LeftOut.CYCLE
    wanted = selects(topic) or (flow.heartbeats_replication_enabled and policy.is_heartbeats_topic(topic))
    return None if wanted else LeftOut.FILTER


def carries_source(topic: str, *, flow: Flow, policy: ReplicationPolicy) -> bool:
    """Whether the source's own alias is a hop in the name of its topic, as if the topic had been copied back."""
    alias = flow.source.alias
    if topic == policy.heartbeats_topic() or keeps_names(policy, alias, topic):  # then names have no hops
        return False
    return policy.is_cycle(topic, alias)


def should_replicate(topic: str, *, flow: Flow, policy: ReplicationPolicy, selects: Callable[[str], bool]) -> bool:
    """Whether a flow replicates this topic of its source; see `left_out`."""
    return left_out(topic, flow=flow, policy=policy, selects=selects) is None
