"""Reads the retention of each topic on both ends of a flow, for a note in its plan. Writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.metadata.creation_probe import CreationProbe
from mirrorless.metadata.expected_configs import Target, Unread, topic_pairs
from mirrorless.metadata.retention import compare_retention
from mirrorless.metadata.serverless import target_filter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Flow


def retention_note(
    flow: Flow,
    *,
    source: Admin,
    target: Admin,
    remote: Mapping[str, str],
    counts: Mapping[str, int],
    replicas: Mapping[str, int],
) -> str | None:
    """One line on topics whose records are deleted sooner on the target, None if no such topic is known.

    `replicas` are the topics of the target. Topics whose configs are not visible are skipped: `mirrorless doctor` names
    them. Raises `ClusterUnavailable`.
    """
    chosen = target_filter(flow, on_creation=True)
    (here, _), (there, _) = side_by_side(
        lambda: topic_configs(source, remote),
        lambda: topic_configs(target, [name for name in remote.values() if name in replicas]),
    )
    with CreationProbe(flow.target) as would_be:
        pairs = topic_pairs(
            flow,
            remote=remote,
            counts=counts,
            chosen=chosen,
            source=here,
            target=Target(replicas=replicas, configs=there),
            would_be=would_be,
            unread=Unread(),
        )
        shorter = compare_retention(flow, chosen, pairs)
    return None if shorter is None else f"{shorter.text}; {shorter.fix}"
