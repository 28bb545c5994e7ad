"""What kinds of ACLs have in common: both clusters are read, and what the target lacks is added."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from mirrorless.clusters.acls import Acl, AclResource, NoAcls, acls_of, create_acls
from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.metadata.actions import ClusterDifference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.metadata.kind import BothEnds


def acls_of_both(ends: BothEnds, resource: AclResource) -> tuple[frozenset[Acl], frozenset[Acl]] | NotThere:
    """Read the ACLs of a type of resource on source and target; raises `ClusterUnavailable`."""
    source, target = side_by_side(
        lambda: acls_of(ends.flow.source, resource), lambda: acls_of(ends.flow.target, resource)
    )
    for one in (source, target):
        if isinstance(one, NoAcls):
            return NotThere(one.reason, lacks_right=one.lacks_right)
    assert not isinstance(source, NoAcls)
    assert not isinstance(target, NoAcls)
    return source, target


def missing_acl(kind: str, noun: str, acl: Acl, *, reason: str, moves: bool = True) -> ClusterDifference:
    """Return the difference of an ACL that the target lacks; `noun` is the type of its resource."""
    return ClusterDifference(
        kind=kind,
        on=acl.topic,
        what=str(acl),
        source_has="has it",
        target_has="lacks it",
        text=f"add ACL of {noun}: {acl}",
        reason=reason,
        change=asdict(acl) if moves else None,
    )


def adding(resource: AclResource) -> Callable[[BothEnds, Sequence[ClusterDifference]], list[str | None]]:
    """Return how a kind adds ACLs of a type of resource to the target."""

    def apply(ends: BothEnds, some: Sequence[ClusterDifference]) -> list[str | None]:
        acls = [Acl(**(one.change or {})) for one in some]
        refusals = create_acls(ends.target, acls, resource)
        return [None if (refusal := refusals[acl]) is None else refusal.text for acl in acls]

    return apply
