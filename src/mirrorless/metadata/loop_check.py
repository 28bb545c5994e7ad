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


def refuse_loops(flow: Flow, topics: Iterable[str]) -> None:
    """Raise `LoopError` if `flow` and others of its file would replicate a topic in a loop; called before any write.

    `topics` are those on the flow's two ends. The topics of the loop's other clusters count too, so that all of its
    flows are refused alike; an unavailable cluster is skipped, since a flow copies only topics of its source.
    """
    loops = Loops(flow)
    if not loops.possible:
        return
    ends = (flow.source.alias, flow.target.alias)
    others = {end.alias: end for one in flow.circle for end in (one.source, one.target) if end.alias not in ends}
    elsewhere = (name for cluster in others.values() for name in _names_on(cluster))
    loops.refuse({*topics, *elsewhere, *loops.named()})


def _names_on(cluster: Cluster) -> Iterable[str]:
    try:
        return partition_counts(Admin(cluster).metadata())
    except ClusterError:
        return ()
