"""Which topics to make and to grow on the target so that it has what the source has. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.internal_topics import COMPACTED, offset_syncs_topic
from mirrorless.errors import ConfigurationError
from mirrorless.filters import why_left_out
from mirrorless.metadata.actions import Action, CreateTopic, GrowTopic, LeftOutTopic
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.settings import Flow


def replicated(flow: Flow, source: Iterable[str]) -> dict[str, str]:
    """Which of the source's topics the flow replicates, each with its remote topic (reference, section 3.4).

    Raises ConfigurationError if the policy gives two topics the same remote topic, in which they would be mixed.
    """
    return divide(flow, source)[0]


def divide(flow: Flow, source: Iterable[str]) -> tuple[dict[str, str], tuple[LeftOutTopic, ...]]:
    """Divide the source's topics: those the flow replicates, each with its remote topic, and those it leaves out."""
    policy, ask = policy_for(flow), why_left_out(flow)
    chosen: dict[str, str] = {}
    owner: dict[str, str] = {}
    others: list[LeftOutTopic] = []
    for topic in sorted(source):
        if (told := ask(topic)) is not None:
            others.append(LeftOutTopic(topic=topic, kind=told[0], reason=told[1]))
            continue
        remote = policy.format_remote_topic(flow.source.alias, topic)
        if owner.setdefault(remote, topic) != topic:
            raise ConfigurationError(
                f"flow {flow.name}: {owner[remote]} and {topic} would both be replicated to {remote}; "
                "use another policy, or leave one of them out",
                key="replication.policy.class",
                value=flow.replication_policy_class,
            )
        chosen[topic] = remote
    return chosen, tuple(others)


def missing(remote: Mapping[str, str], target: Iterable[str]) -> list[str]:
    """Return the source's topics, of those replicated, that have no remote topic on the target yet."""
    there = set(target)
    return [topic for topic, name in remote.items() if name not in there]


def plan_topics(
    flow: Flow,
    *,
    remote: Mapping[str, str],
    source: Mapping[str, int],
    target: Mapping[str, int],
    configs: Mapping[str, Mapping[str, str]],
) -> list[Action]:
    """Remote topics to create and to grow; `source` and `target` are topics with their partition counts.

    `configs` is what new topics are created with, by source topic; one that is not in it is not created. Partitions
    grow and never shrink; topics that are gone from the source keep their remote topic.
    """
    actions: list[Action] = []
    for topic, name in remote.items():
        count = source[topic]
        if name not in target and topic in configs:
            actions.append(
                CreateTopic(
                    topic=name,
                    partitions=count,
                    replication_factor=flow.replication_factor,
                    reason=f"{topic} has no remote topic on {flow.target.alias}",
                    config=configs[topic],
                )
            )
        elif target.get(name, count) < count:
            reason = f"{topic} has {count} partitions, {name} has {target[name]}"
            actions.append(GrowTopic(topic=name, partitions=count, reason=reason))
    return actions


def plan_internal_topics(flow: Flow, *, source: Iterable[str], target: Iterable[str]) -> list[Action]:
    """The progress topic, as Kafka Connect makes it, that of the offset syncs (reference, 1.6), the dead letter topic.

    `source` and `target` are the topics that are there.
    """
    wanted = [
        CreateTopic(
            topic=flow.offset_storage_topic,
            partitions=flow.offset_storage_partitions,
            replication_factor=flow.offset_storage_replication_factor,
            reason=f"the progress of {flow.name} is kept there (offset.storage.topic)",
            config=COMPACTED,
            factor_key="offset.storage.replication.factor",
        )
    ]
    if flow.dead_letter_topic and flow.errors_tolerance == "all":
        wanted.append(
            CreateTopic(
                topic=flow.dead_letter_topic,
                partitions=1,
                replication_factor=flow.dead_letter_replication_factor,
                reason=f"{flow.name} says there what it leaves out (errors.deadletterqueue.topic.name)",
                factor_key="errors.deadletterqueue.topic.replication.factor",
            )
        )
    if flow.emit_offset_syncs_enabled:
        syncs = offset_syncs_topic(flow)
        wanted.append(
            CreateTopic(
                topic=syncs.name,
                partitions=1,
                replication_factor=syncs.replication_factor,
                reason=f"{flow.name} notes there which offset went where (emit.offset-syncs.enabled)",
                config=COMPACTED,
                on_source=flow.offset_syncs_topic_location == "source",
                factor_key="offset-syncs.topic.replication.factor",
            )
        )
    there = {True: set(source), False: set(target)}
    return [action for action in wanted if action.topic not in there[action.on_source]]
