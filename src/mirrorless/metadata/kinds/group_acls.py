"""ACLs of groups that the flow selects, so that a group may read on the target as soon as it is moved there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.acls import AclResource
from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.clusters.groups import list_groups
from mirrorless.filters import group_filter_for
from mirrorless.metadata.kind import Kind
from mirrorless.metadata.other_acls import acls_of_both, adding, missing_acl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.acls import Acl
    from mirrorless.metadata.actions import ClusterDifference
    from mirrorless.metadata.kind import BothEnds, Found
    from mirrorless.settings import Flow

_NAME = "group-acls"


def differences(
    flow: Flow, source: frozenset[Acl], target: frozenset[Acl], *, groups: Iterable[str]
) -> list[ClusterDifference]:
    """Return the ACLs that the target lacks; `groups` are those of the source, for which a prefix is looked up.

    An ACL on every group (`*`) is not moved: on the target it may open groups of others.
    """
    alias, selects = flow.source.alias, group_filter_for(flow).selects
    chosen = [group for group in groups if selects(group)]
    found: list[ClusterDifference] = []
    for acl in sorted(source - target):
        if acl.topic == "*" and acl.pattern == "LITERAL":
            reason = f"* is every group of {alias}; add it on {flow.target.alias} for the intended groups"
            found.append(missing_acl(_NAME, "groups", acl, reason=reason, moves=False))
        elif selects(acl.topic) if acl.pattern == "LITERAL" else any(one.startswith(acl.topic) for one in chosen):
            found.append(missing_acl(_NAME, "groups", acl, reason=f"{alias} has it"))
    return found


def _compare(ends: BothEnds) -> Found:
    both = acls_of_both(ends, AclResource.GROUP)
    if isinstance(both, NotThere):
        return both
    groups = list_groups(ends.source)[0] if any(acl.pattern != "LITERAL" for acl in both[0]) else ()
    return differences(ends.flow, *both, groups=groups)


KIND = Kind(
    name=_NAME,
    about="ACLs of groups that `groups` selects, by name and by prefix",
    left="ACLs on every group (`*`), and those that were removed from the source",
    compare=_compare,
    apply=adding(AclResource.GROUP),
    reads="DESCRIBE",
    writes="ALTER",
    with_iam=False,
)
