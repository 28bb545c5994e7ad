"""Rights to write to replicated topics: operations add them when they let writers in, and no sync does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.acls import AclResource
from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.metadata.kind import Kind
from mirrorless.metadata.other_acls import acls_of_both, missing_acl

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.acls import Acl
    from mirrorless.metadata.actions import ClusterDifference
    from mirrorless.metadata.kind import BothEnds, Found

_NAME = "write-acls"
_WRITING: Final = frozenset({"WRITE", "ALL"})


def differences(source: frozenset[Acl], target: frozenset[Acl], *, topics: Collection[str]) -> list[ClusterDifference]:
    """Return the ACLs that let someone write to `topics`, which the target lacks, as an operation will add them."""
    writing = [acl for acl in source if acl.permission == "ALLOW" and acl.operation in _WRITING]
    wanted = {
        replace(acl, topic=topic, pattern="LITERAL")
        for acl in writing
        for topic in topics
        if (acl.topic in (topic, "*") if acl.pattern == "LITERAL" else topic.startswith(acl.topic))
    }
    reason = "a switchover or failover adds it when it lets writers in"
    return [missing_acl(_NAME, "topics", acl, reason=reason, moves=False) for acl in sorted(wanted - target)]


def _compare(ends: BothEnds) -> Found:
    both = acls_of_both(ends, AclResource.TOPIC)
    return both if isinstance(both, NotThere) else differences(*both, topics=ends.remote)


KIND = Kind(
    name=_NAME,
    about="`WRITE` and `ALL` on replicated topics, also by prefix and on every topic",
    left=(
        "by a sync: only the flow writes to a remote topic; [operations](switchover.md) add them with those of groups "
        "and transactional ids, and leave them there"
    ),
    compare=_compare,
    reads="DESCRIBE",
    with_iam=False,
)
