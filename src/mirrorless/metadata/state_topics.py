"""The topics that store a flow's state, and what is lost with the records of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mirrorless.clusters.compaction import compacting, policies
from mirrorless.clusters.internal_topics import checkpoints_topic, offset_syncs_topic
from mirrorless.clusters.side_by_side import each
from mirrorless.clusters.target_state import configs_topic
from mirrorless.metadata.acl_record import record_topic
from mirrorless.metadata.actions import Problem
from mirrorless.metadata.missing_topics import notes_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster, Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopic:
    """A topic on `cluster` that must be compacted; `loss` is what happens after retention deleted its records.

    `fatal` says that the copy does not begin until this is fixed.
    """

    cluster: Cluster
    name: str
    loss: str
    fatal: bool = False

    def complaint(self, policy: str) -> str:
        """Return the message about a topic with another `cleanup.policy`."""
        command = compacting(self.cluster, self.name)
        return f"cleanup.policy={policy}: retention deletes its records, and then {self.loss}; fix it with {command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTopics:
    """The result for a flow's topics: `problems` are of those without which nothing can be copied."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()


def progress_topic(flow: Flow) -> StateTopic:
    """Return the progress topic."""
    loss = "no partition can resume"
    return StateTopic(cluster=flow.target, name=flow.offset_storage_topic, loss=loss, fatal=True)


def kept_topics(flow: Flow) -> Iterator[StateTopic]:
    """Yield all topics that store a flow's state, whether they exist or not."""
    yield progress_topic(flow)
    if flow.emit_offset_syncs_enabled:
        syncs = offset_syncs_topic(flow)
        loss = "group offsets are translated less exactly, or not at all"
        yield StateTopic(cluster=syncs.cluster, name=syncs.name, loss=loss)
    if flow.writes_checkpoints:
        loss = "groups without new commits have no translated offset"
        yield StateTopic(cluster=flow.target, name=checkpoints_topic(flow).name, loss=loss)
    if flow.acls_prune:
        yield StateTopic(
            cluster=flow.target, name=record_topic(flow), loss="ACLs that the flow added are never removed"
        )
    if flow.sync_topic_deletes:
        loss = "remote topics of deleted topics are not deleted"
        yield StateTopic(cluster=flow.target, name=notes_topic(flow), loss=loss)
    loss = "a paused flow runs again"
    yield StateTopic(cluster=flow.target, name=configs_topic(flow).name, loss=loss)


def look_at(
    flow: Flow, *, source: Admin, target: Admin, at_source: Collection[str], at_target: Collection[str]
) -> StateTopics:
    """Check those of a flow's topics that exist; raises `ClusterUnavailable`."""
    problems: list[Problem] = []
    warnings: list[str] = []
    hidden: list[str] = []
    sides = ((flow.target, target, at_target), (flow.source, source, at_source))
    all_kept = [
        {one.name: one for one in kept_topics(flow) if one.cluster.alias == cluster.alias and one.name in there}
        for cluster, _, there in sides
    ]
    asked = [partial(policies, admin, kept) for (_, admin, _), kept in zip(sides, all_kept, strict=True)]
    for (cluster, _, _), kept, found in zip(sides, all_kept, each(asked), strict=True):
        hidden += found.hidden
        for name, policy in found.wrong.items():
            if kept[name].fatal:
                problems.append(Problem(topic=name, reason=kept[name].complaint(policy)))
            else:
                warnings.append(f"{name} on {cluster.alias} has {kept[name].complaint(policy)}")
    if hidden:
        names = ", ".join(sorted(hidden))
        warnings.append(f"grant DESCRIBE_CONFIGS on {names} to check that these topics are compacted")
    return StateTopics(problems=tuple(problems), warnings=tuple(warnings))
