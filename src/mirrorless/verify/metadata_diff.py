"""Compares topic lists, partition counts, configs and ACLs: what `mirrorless plan` would change, as differences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.clusters.topics import partition_counts, undescribed
from mirrorless.metadata.actions import (
    Action,
    AddAcl,
    AlterConfigs,
    ClusterDifference,
    CreateTopic,
    GrowTopic,
    RemoveAcl,
)
from mirrorless.metadata.kind_results import plan_kinds
from mirrorless.metadata.plan import replicated
from mirrorless.metadata.plan_text import not_moved
from mirrorless.metadata.planning import Admins, MetadataPlanner, Part, switched_on
from mirrorless.metadata.service_records import examine_records
from mirrorless.policy import policy_for
from mirrorless.verify.findings import Difference, DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mirrorless.metadata.kind_results import KindResult
    from mirrorless.settings import Flow

_SWITCHES = {Part.CONFIGS: "sync.topic.configs.enabled", Part.ACLS: "sync.topic.acls.enabled"}


@dataclass(slots=True)
class Metadata:
    """The topics to compare with their remote topics, and the differences of their metadata; `kinds` by name."""

    remote: dict[str, str]
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    kinds: dict[str, KindResult] = field(default_factory=dict)


def compare_metadata(flow: Flow, admins: Admins, *, wanted: Callable[[str], bool]) -> Metadata:
    """Compare the metadata of topics that the flow replicates and that are `wanted`.

    Raises `ClusterError` if an end does not answer, `SameClusterError` if there is only one cluster.
    """
    source = admins.source.metadata()
    counts = partition_counts(source)
    target = admins.target.metadata()
    remote_counts, hidden = partition_counts(target), undescribed(target)
    examine_records(flow, admins.source, counts)
    every = replicated(flow, [*counts, *undescribed(source)])
    origin = {name: topic for topic, name in every.items() if wanted(topic)}
    remote = {topic: name for name, topic in origin.items() if topic in counts}
    found = Metadata(remote)
    parts = switched_on(flow)
    found.notes += [
        f"{part.value} are not compared: {_SWITCHES[part]} is false"
        for part, on in parts.items()
        if not on and part in _SWITCHES
    ]
    planner = MetadataPlanner(flow, admins)
    parts[Part.KINDS] = False  # all kinds are compared below
    plan = planner.plan([part for part, on in parts.items() if on], internal_topics=False)
    # A remote topic that cannot be described may exist: an error, not a difference.
    for action in (one for one in plan.actions if one.topic not in hidden):
        found.differences += _differences(action, origin, counts, remote_counts, every_acl=len(origin) == len(every))
    asked = {*origin, *origin.values()}
    found.troubles += [f"{one.topic}: {one.reason}" for one in plan.problems if one.topic in {*asked, "*"}]
    found.notes += plan.notes
    if len(origin) == len(every):
        _compare_kinds(found, planner)
    found.notes += _left_over(flow, set(every.values()), remote_counts, wanted)
    return found


def _compare_kinds(found: Metadata, planner: MetadataPlanner) -> None:
    """Add what differs beside topics: as differences what the flow is to set, the rest as notes."""
    results = planner.kinds(every=True)
    found.kinds |= {one.kind.name: one for one in results}
    plan = plan_kinds(results)
    found.differences += [
        Difference(
            kind=DifferenceKind.KIND,
            topic=one.on,
            remote_topic=one.on,
            what=f"{one.kind}: {one.what}",
            source_has=one.source_has,
            target_has=one.target_has,
        )
        for one in plan.actions
        if isinstance(one, ClusterDifference)
    ]
    found.notes += [f"not moved: {line}" for line in not_moved(plan)]
    found.notes += plan.notes
    found.troubles += [one.reason for one in plan.problems]


def _left_over(flow: Flow, chosen: set[str], there: Iterable[str], wanted: Callable[[str], bool]) -> Iterator[str]:
    """Remote topics whose source topic is not replicated or was deleted: they are kept, which is no difference."""
    policy = policy_for(flow)
    for name in sorted(set(there) - chosen):
        ours = policy.topic_source(name) == flow.source.alias and not policy.is_internal_topic(name)
        if ours and wanted(policy.original_topic(name)):
            yield f"{name} exists on {flow.target.alias}, but its source topic is not replicated or was deleted"


def _differences(
    action: Action,
    origin: Mapping[str, str],
    counts: Mapping[str, int],
    remote_counts: Mapping[str, int],
    *,
    every_acl: bool,
) -> Iterator[Difference]:
    topic = origin.get(action.topic, action.topic)
    match action:
        case CreateTopic() | GrowTopic() if action.topic in origin and topic in counts:
            there = remote_counts.get(action.topic)
            partitions = counts[topic]
            yield Difference(
                kind=DifferenceKind.TOPIC if there is None else DifferenceKind.PARTITIONS,
                topic=topic,
                remote_topic=action.topic,
                source_has=f"{partitions} partition{'' if partitions == 1 else 's'}",
                target_has="none" if there is None else str(there),
            )
        case AlterConfigs() if action.topic in origin:
            for one in action.differences:
                yield Difference(
                    kind=DifferenceKind.CONFIG,
                    topic=topic,
                    remote_topic=action.topic,
                    what=one.name,
                    source_has=f"{one.upstream} (default)" if one.delete else one.upstream,
                    target_has=one.downstream,
                )
        case AddAcl() | RemoveAcl() if action.topic in origin or every_acl:
            added = isinstance(action, AddAcl)
            yield Difference(
                kind=DifferenceKind.ACL,
                topic=topic,
                remote_topic=action.topic,
                what=str(action.acl),
                source_has="requires it" if added else "no longer has it",
                target_has="lacks it" if added else "has it",
            )
        case _:
            return  # internal topics, topics that were not requested, and the flow's own notes
