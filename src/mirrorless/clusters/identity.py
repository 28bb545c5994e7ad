"""Which cluster an address really leads to, asked before anything is written (design, section 7)."""

from __future__ import annotations

from dataclasses import dataclass

from mirrorless.errors import SameClusterError


@dataclass(frozen=True, slots=True)
class Ends:
    """Cluster ids of a flow's two ends."""

    source_id: str
    target_id: str


def refuse_same(flow: str, source_id: str, target_id: str) -> None:
    """Raise `SameClusterError` if both ids are the same."""
    if source_id == target_id:
        raise SameClusterError(flow=flow, cluster_id=source_id)
