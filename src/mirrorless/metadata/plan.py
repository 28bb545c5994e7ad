"""Plans which topics to create and which to give more partitions, so that the target matches the source. No I/O."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING

from mirrorless.clusters.internal_topics import COMPACTED, internal_topic, offset_syncs_topic
from mirrorless.clusters.replication_factors import reduced_factors, usable_factor
from mirrorless.errors import ConfigurationError
from mirrorless.filters import why_left_out
from mirrorless.metadata.actions import Action, CreateTopic, GrowTopic, LeftOutTopic
from mirrorless.policy import policy_for
from mirrorless.selection import carries_source
from mirrorless.settings.patterns import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.settings import Flow


def replicated(flow: Flow, source: Iterable[str]) -> dict[str, str]:
    """Return the source's topics that the flow replicates, each with its remote topic.

    Raises ConfigurationError if the policy gives two topics the same remote topic, which would mix their records.
    """
    return divide(flow, source)[0]


def divide(flow: Flow, source: Iterable[str]) -> tuple[dict[str, str], tuple[LeftOutTopic, ...]]:
    """Divide the source's topics: those the flow replicates, each with its remote topic, and those it does not."""
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
                "use another policy, or exclude one of them",
                key="replication.policy.class",
                value=flow.replication_policy_class,
            )
        chosen[topic] = remote
    return chosen, tuple(others)


def came_back(flow: Flow, remote: Mapping[str, str]) -> list[str]:
    """Return a line on topics that are replicated though their names contain the alias of the flow's source.

    These may be their original names, as `prod.orders` on a cluster called `prod`: MirrorMaker 2 replicates them too.
    """
    policy = policy_for(flow)
    found = [topic for topic in remote if carries_source(topic, flow=flow, policy=policy)]
    if not found:
        return []
    first = found[0]
    return [
        f"{len(found)} topics of {flow.source.alias} carry its own alias, among them {first}, which is replicated as "
        f"{remote[first]}; if they are copies made by a flow of another file, exclude them with topics.exclude; "
        "otherwise their records are replicated in a loop",
    ]


def named_in_vain(flow: Flow, source: Iterable[str]) -> list[str]:
    """Return a line for each plain name in `topics` that no topic of the source has, with the nearest one."""
    there = sorted(source)
    wanted = {name for pattern in flow.topics if (name := plain_name(pattern)) is not None}
    lines = []
    for name in sorted(wanted.difference(there)):
        close = difflib.get_close_matches(name, there, n=1)
        line = f"{name} of topics does not exist on {flow.source.alias}, or is not visible"
        lines.append(f"{line}; did you mean {close[0]}?" if close else line)
    return lines


def missing(remote: Mapping[str, str], target: Iterable[str]) -> list[str]:
    """Return the replicated topics of the source that have no remote topic on the target yet."""
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

    `configs` are the configs of new topics, by source topic; a topic without an entry is not created. Partitions are
    added, never removed; topics that are gone from the source keep their remote topic.
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
                    factor_is_default=flow.is_default("replication_factor"),
                )
            )
        elif target.get(name, count) < count:
            reason = f"{topic} has {count} partitions, {name} has {target[name]}"
            actions.append(GrowTopic(topic=name, partitions=count, reason=reason))
    return actions


def plan_internal_topics(flow: Flow, *, source: Iterable[str], target: Iterable[str]) -> list[Action]:
    """Plan the progress topic, as Kafka Connect creates it, the offset syncs topic and the dead letter topic.

    `source` and `target` are the existing topics.
    """
    progress = internal_topic(
        flow, flow.target, flow.offset_storage_topic, factor_key="offset.storage.replication.factor"
    )
    reason = f"stores the progress of {flow.name} (offset.storage.topic)"
    wanted = [_creation(progress, reason, partitions=flow.offset_storage_partitions)]
    if flow.dead_letter_topic and flow.errors_tolerance == "all":
        key = "errors.deadletterqueue.topic.replication.factor"
        left_out = internal_topic(flow, flow.target, flow.dead_letter_topic, factor_key=key)
        reason = f"lists the records that {flow.name} skips (errors.deadletterqueue.topic.name)"
        wanted.append(replace(_creation(left_out, reason), config={}))
    if flow.emit_offset_syncs_enabled:
        reason = f"stores the offset syncs of {flow.name} (emit.offset-syncs.enabled)"
        on_source = flow.offset_syncs_topic_location == "source"
        wanted.append(replace(_creation(offset_syncs_topic(flow), reason), on_source=on_source))
    there = {True: set(source), False: set(target)}
    return [action for action in wanted if action.topic not in there[action.on_source]]


def _creation(topic: InternalTopic, reason: str, *, partitions: int = 1) -> CreateTopic:
    return CreateTopic(
        topic=topic.name,
        partitions=partitions,
        replication_factor=topic.replication_factor,
        reason=reason,
        config=COMPACTED,
        factor_key=topic.factor_key,
        factor_is_default=topic.factor_is_default,
    )


def within_brokers(
    flow: Flow, actions: Iterable[Action], *, source: int, target: int
) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """Reduce default replication factors of new topics to the number of brokers of their cluster; warn of each cluster.

    `source` and `target` are the broker counts.
    """
    brokers = {True: source, False: target}
    reduced: dict[bool, dict[str, int]] = {True: {}, False: {}}
    found: list[Action] = []
    for action in actions:
        if isinstance(action, CreateTopic):
            wanted, there = action.replication_factor, brokers[action.on_source]
            factor = usable_factor(wanted, is_default=action.factor_is_default, brokers=there)
            if factor != wanted:
                reduced[action.on_source][action.factor_key] = wanted
            found.append(replace(action, replication_factor=factor))
        else:
            found.append(action)
    aliases = {True: flow.source.alias, False: flow.target.alias}
    return tuple(found), tuple(
        reduced_factors(aliases[on_source], brokers[on_source], factors.items())
        for on_source, factors in reduced.items()
        if factors
    )
