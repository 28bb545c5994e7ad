"""ACLs on prefixes of replicated topics, where the sync of topic ACLs leaves them out (`mirrorless.acls.patterns`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.acls import AclResource
from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.metadata.kind import Kind
from mirrorless.metadata.other_acls import acls_of_both, missing_acl

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.acls import Acl
    from mirrorless.metadata.actions import ClusterDifference
    from mirrorless.metadata.kind import BothEnds, Found
    from mirrorless.settings import Flow

_NAME = "prefixed-acls"


def differences(
    flow: Flow, source: frozenset[Acl], target: frozenset[Acl], *, topics: Collection[str]
) -> list[ClusterDifference]:
    """Return the ACLs on prefixes of `topics` that are not synced; rights to write are another kind."""
    if flow.sync_topic_acls_enabled and "prefixed" in flow.acls_patterns:
        return []
    reason = "set mirrorless.acls.patterns=literal,prefixed to move it"
    return [
        missing_acl(_NAME, "topics", acl, reason=reason, moves=False)
        for acl in sorted(source - target)
        if acl.pattern == "PREFIXED"
        and (acl.permission, acl.operation) != ("ALLOW", "WRITE")
        and any(topic.startswith(acl.topic) for topic in topics)
    ]


def _compare(ends: BothEnds) -> Found:
    both = acls_of_both(ends, AclResource.TOPIC)
    return both if isinstance(both, NotThere) else differences(ends.flow, *both, topics=ends.remote)


KIND = Kind(
    name=_NAME,
    about="ACLs on prefixes of replicated topics",
    left="with `mirrorless.acls.patterns=literal,prefixed` the sync of topic ACLs moves them",
    compare=_compare,
    reads="DESCRIBE",
    with_iam=False,
)
