"""The fences of operations as others see them.

They are left out of what is synced, since they concern writers of the source, not the remote topics. And they are
looked for on topics that no operation fences: an operator would find writers blocked without a reason.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.acls import Acl, NoAcls, topic_acls
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.topics import partition_counts
from mirrorless.filters import replicated_topics
from mirrorless.modes import Modes
from mirrorless.operation_log.records import merged
from mirrorless.operation_log.topic import OperationTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
    from mirrorless.operation_log.records import Operations
    from mirrorless.settings import Flow

FENCED_BYTES: Final = "78"
"""`max.message.bytes` of the fence `config`: the size of a transaction marker, with less no transaction ends."""
MAX_BYTES: Final = "max.message.bytes"
_EVERYBODY: Final = "User:*"


@dataclass(frozen=True, slots=True)
class StandingFences:
    """The fences on the source of a flow now: their ACLs. Configs of the fence are known by their value."""

    acls: frozenset[Acl] = field(default_factory=frozenset)

    @staticmethod
    def without(source: Mapping[str, Configs]) -> dict[str, Configs]:
        """Return the configs of source topics without the fence's, which no topic that has writers can have."""
        return {
            topic: {name: one for name, one in configs.items() if name != MAX_BYTES or one.value != FENCED_BYTES}
            for topic, configs in source.items()
        }

    def __or__(self, other: StandingFences) -> StandingFences:
        """Return those of both."""
        return StandingFences(acls=self.acls | other.acls)


NO_FENCES: Final = StandingFences()


def deny_write(topic: str) -> Acl:
    """Return the ACL of the fence `acl` on a topic."""
    return Acl(topic=topic, pattern="LITERAL", principal=_EVERYBODY, host="*", operation="WRITE", permission="DENY")


def standing_fences(flow: Flow, target: Admin) -> StandingFences:
    """Read the operations of a flow's target, which has those that left its source; raises `ClusterUnavailable`."""
    with closing(OperationTopic(flow, flow.target, target)) as log:
        standing = log.read().fences_on(flow.source.alias)
    planned = [one.standing_fence["planned"] for one in standing]
    return StandingFences(frozenset(deny_write(topic) for one in planned for topic in one.get("denied", ())))


def unexplained_fences(flow: Flow, ends: Mapping[str, Admin]) -> list[str]:
    """Return a line for each fence on topics of a flow that no operation explains, with the command that removes it.

    `ends` are clients by alias, of both clusters or of the one that answers. Writes nothing. Either log has the
    operations; where none may be read, no fence can be judged, and there is no line. Raises `ClusterUnavailable`.
    """
    found: dict[str, Operations] = {}
    clusters = [cluster for cluster in (flow.source, flow.target) if cluster.alias in ends]
    for cluster in clusters:
        with closing(OperationTopic(flow, cluster, ends[cluster.alias])) as log:
            some = log.read()
            if log.refused is None:
                found[cluster.alias] = some
    if not found:
        return []
    operations, selects, modes = merged(found), replicated_topics(flow), Modes(flow)
    # Those of other files, which may have other aliases for a cluster, explain fences too.
    others = {one.request.source for one in operations.by_id.values()} - {flow.source.alias, flow.target.alias}
    lines: list[str] = []
    for cluster in clusters:
        explained = {topic for alias in (cluster.alias, *others) for topic in operations.fenced_on(alias)}
        admin = ends[cluster.alias]
        names = partition_counts(admin.metadata())
        here = {name: name if cluster is flow.source else modes.name_here(name) for name in names}
        topics = {name for name, topic in here.items() if topic is not None and selects(topic)} - explained
        configs, _ = topic_configs(admin, topics)
        acls = topic_acls(cluster)
        for topic in sorted(topics):
            value = configs[topic].get(MAX_BYTES) if topic in configs else None
            if value is not None and value.value == FENCED_BYTES:
                lines.append(
                    f"{topic} on {cluster.alias} has {MAX_BYTES}={FENCED_BYTES}, which blocks writers, and no "
                    "operation explains it: remove it with `kafka-configs.sh --alter --entity-type topics "
                    f"--entity-name {topic} --delete-config {MAX_BYTES}`, or set the value of before"
                )
            if not isinstance(acls, NoAcls) and deny_write(topic) in acls:
                lines.append(
                    f"{topic} on {cluster.alias} has the ACL DENY WRITE for {_EVERYBODY}, which blocks writers, and no "
                    "operation explains it: remove it with `kafka-acls.sh --remove --deny-principal "
                    f"'{_EVERYBODY}' --operation Write --topic {topic}`"
                )
    return lines
