"""Finds clusters that a configuration lists under two aliases, by the ids that they report."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.doctor.findings import Finding, Status
from mirrorless.errors import MirrorlessError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.settings import Cluster, Settings

_CHECK: Final = "aliases"
_PATIENCE_S: Final = 10.0


def reported_id(cluster: Cluster) -> str | None:
    """Return the id that a cluster reports; None if it cannot be asked."""
    try:
        return str(Admin(cluster).metadata(timeout_s=_PATIENCE_S).cluster_id)
    except MirrorlessError:
        return None


def one_cluster_twice(settings: Settings, ask: Callable[[Cluster], str | None] = reported_id) -> list[Finding]:
    """Return a finding for each pair of aliases without a flow between them that report the same cluster id.

    Where there is a flow, its own check of cluster ids reports it. Asks only if there are such pairs.
    """
    joined = {frozenset((flow.source.alias, flow.target.alias)) for flow in settings.flows}
    pairs = [
        (one, other)
        for one, other in combinations(settings.clusters, 2)
        if frozenset((one.alias, other.alias)) not in joined and one.cluster_id is None and other.cluster_id is None
    ]
    asked = {cluster.alias: cluster for pair in pairs for cluster in pair}
    ids = {alias: ask(cluster) for alias, cluster in asked.items()}
    return [
        Finding(
            check=_CHECK,
            status=Status.WARNING,
            text=f"{one.alias} and {other.alias} are the same cluster ({ids[one.alias]}), or one has a copied id",
            fix=f"use one alias for the cluster, or set {other.alias}.mirrorless.cluster.id if they differ",
        )
        for one, other in pairs
        if ids[one.alias] is not None and ids[one.alias] == ids[other.alias]
    ]
