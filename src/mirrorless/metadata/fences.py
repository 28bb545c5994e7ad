"""Leaves the fences of operations out of what is synced: they concern writers of the source, not the remote topics."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.acls import Acl
from mirrorless.operation_log.topic import OperationTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.configs import Configs
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
