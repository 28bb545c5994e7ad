"""ACLs of the cluster itself, of principals with an ACL on a replicated topic: IDEMPOTENT_WRITE and DESCRIBE.

Older producers need the first (before Kafka 2.8 every idempotent one). All other operations on a cluster are an
administrator's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mirrorless.clusters.acls import AclResource
from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.metadata.kind import Kind
from mirrorless.metadata.other_acls import acls_of_both, adding, missing_acl

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.acls import Acl
    from mirrorless.metadata.actions import ClusterDifference
    from mirrorless.metadata.kind import BothEnds, Found
    from mirrorless.settings import Flow

_NAME = "cluster-acls"
_OF_APPLICATIONS: Final = frozenset({"IDEMPOTENT_WRITE", "DESCRIBE"})


def differences(
    flow: Flow,
    source: frozenset[Acl],
    target: frozenset[Acl],
    *,
    of_topics: frozenset[Acl],
    topics: Collection[str],
) -> list[ClusterDifference]:
    """Return the ACLs that the target lacks; `of_topics` are the source's ACLs on topics, `topics` the replicated."""
    principals = {acl.principal for acl in of_topics if any(_is_on(acl, topic) for topic in topics)}
    reason = f"{flow.source.alias} has it"
    kept = "an administrator's right on the whole cluster is not moved"
    return [
        missing_acl(_NAME, "the cluster", acl, reason=reason if moves else kept, moves=moves)
        for acl in sorted(source - target)
        if acl.principal in principals
        for moves in [acl.operation in _OF_APPLICATIONS]
    ]


def _is_on(acl: Acl, topic: str) -> bool:
    if acl.pattern == "LITERAL":
        return acl.topic in (topic, "*")
    return topic.startswith(acl.topic)


def _compare(ends: BothEnds) -> Found:
    both = acls_of_both(ends, AclResource.CLUSTER)
    if isinstance(both, NotThere):
        return both
    of_topics = acls_of_both(ends, AclResource.TOPIC)
    if isinstance(of_topics, NotThere):
        return of_topics
    return differences(ends.flow, *both, of_topics=of_topics[0], topics=ends.remote)


KIND = Kind(
    name=_NAME,
    about="`IDEMPOTENT_WRITE` and `DESCRIBE` on the cluster, of principals with an ACL on a replicated topic",
    left="other operations on the cluster, which are an administrator's, and ACLs that were removed from the source",
    compare=_compare,
    apply=adding(AclResource.CLUSTER),
    reads="DESCRIBE",
    writes="ALTER",
    with_iam=False,
)
