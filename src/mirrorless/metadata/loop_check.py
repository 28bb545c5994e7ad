"""Refuses a flow that would replicate topics in a loop, by the topics that the clusters of the loop have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterError
from mirrorless.loops import Loops

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.settings import Cluster, Flow


def refuse_loops(flow: Flow, topics: Iterable[str]) -> list[str]:
    """Raise `LoopError` if `flow` and others of its file would replicate a topic in a loop; called before any write.

    Returns the names of the flows that lead back to its source.

    `topics` are those on the flow's two ends. The topics of the loop's other clusters count too, so that all of its
    flows are refused alike; an unavailable cluster is skipped, since a flow copies only topics of its source.
    """
    loops = Loops(flow)
    if not loops.possible:
        return loops.ways_back
    elsewhere = (name for cluster in loops.elsewhere for name in _names_on(cluster))
    loops.refuse({*topics, *elsewhere, *loops.named()})
    return loops.ways_back


def _names_on(cluster: Cluster) -> Iterable[str]:
    try:
        return partition_counts(Admin(cluster).metadata())
    except ClusterError:
        return ()
