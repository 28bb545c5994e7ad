"""Users with SCRAM credentials: names and mechanisms. Passwords cannot be read, so this is a list of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.clusters.scram_users import scram_users
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import Kind

if TYPE_CHECKING:
    from mirrorless.metadata.kind import BothEnds, Found


def differences(
    source: frozenset[tuple[str, str]], target: frozenset[tuple[str, str]], *, alias: str
) -> list[ClusterDifference]:
    """Return each user and mechanism that the target lacks; `alias` is the target's."""
    return [
        ClusterDifference(
            kind="users",
            on=f"user {user}",
            what=mechanism,
            source_has="has it",
            target_has="lacks it",
            text=f"create user {user} with {mechanism} on {alias}",
            reason="its password cannot be read: a task for an administrator",
        )
        for user, mechanism in sorted(source - target)
    ]


def _compare(ends: BothEnds) -> Found:
    source, target = side_by_side(lambda: scram_users(ends.flow.source), lambda: scram_users(ends.flow.target))
    if isinstance(source, NotThere):
        return source
    if isinstance(target, NotThere):
        return target
    return differences(source, target, alias=ends.flow.target.alias)


KIND = Kind(
    name="users",
    about="users with SCRAM credentials: names and mechanisms",
    left="passwords cannot be read: a list of tasks",
    compare=_compare,
    reads="DESCRIBE",
    with_iam=False,
)
