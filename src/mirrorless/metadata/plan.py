"""What to change on the target so that it has what the source has: frozen actions, each with its reason. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.filters import replicated_topics
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Create a topic on the target; `replication_factor` -1 leaves it to the brokers."""

    topic: str
    partitions: int
    replication_factor: int
    reason: str
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowTopic:
    """Raise a topic's partition count on the target."""

    topic: str
    partitions: int
    reason: str


Action = CreateTopic | GrowTopic


def replicated(flow: Flow, source: Mapping[str, int]) -> dict[str, str]:
    """Which of the source's topics the flow replicates, each with its remote topic (reference, section 3.4)."""
    policy = policy_for(flow)
    chosen = replicated_topics(flow)
    return {topic: policy.format_remote_topic(flow.source.alias, topic) for topic in sorted(source) if chosen(topic)}


def plan_topics(flow: Flow, *, source: Mapping[str, int], target: Mapping[str, int]) -> list[Action]:
    """Remote topics to create and to grow; `source` and `target` are topics with their partition counts.

    Partitions grow and never shrink; topics that are gone from the source keep their remote topic.
    """
    actions: list[Action] = []
    for topic, remote in replicated(flow, source).items():
        count = source[topic]
        if remote not in target:
            reason = f"{topic} has no remote topic on {flow.target.alias}"
            actions.append(
                CreateTopic(topic=remote, partitions=count, replication_factor=flow.replication_factor, reason=reason)
            )
        elif target[remote] < count:
            reason = f"{topic} has {count} partitions, {remote} has {target[remote]}"
            actions.append(GrowTopic(topic=remote, partitions=count, reason=reason))
    return actions


def plan_internal_topics(flow: Flow, *, target: Mapping[str, int]) -> list[CreateTopic]:
    """The progress topic, as Kafka Connect makes it (reference, section 1.6), and the dead letter topic, if any."""
    wanted = [
        CreateTopic(
            topic=flow.offset_storage_topic,
            partitions=flow.offset_storage_partitions,
            replication_factor=flow.offset_storage_replication_factor,
            reason=f"the progress of {flow.name} is kept there (offset.storage.topic)",
            config={"cleanup.policy": "compact"},
        )
    ]
    if flow.dead_letter_topic and flow.errors_tolerance == "all":
        wanted.append(
            CreateTopic(
                topic=flow.dead_letter_topic,
                partitions=1,
                replication_factor=flow.dead_letter_replication_factor,
                reason=f"{flow.name} says there what it leaves out (errors.deadletterqueue.topic.name)",
            )
        )
    return [action for action in wanted if action.topic not in target]
