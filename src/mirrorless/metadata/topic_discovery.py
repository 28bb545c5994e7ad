"""Gives every selected source topic its remote topic; may run as often as one likes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.identity import Ends, refuse_same
from mirrorless.clusters.topics import partition_counts
from mirrorless.metadata.apply import Applied, apply
from mirrorless.metadata.plan import plan_internal_topics, plan_topics

if TYPE_CHECKING:
    from mirrorless.metadata.plan import Action
    from mirrorless.settings import Flow

_VISIBLE_S = 30.0
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What one pass found and did; `ends` are the two clusters' ids."""

    ends: Ends
    applied: tuple[Applied, ...]

    @property
    def failures(self) -> list[Applied]:
        """Actions that could not be carried out."""
        return [one for one in self.applied if one.error is not None]


def discover_topics(flow: Flow) -> Discovery:
    """Create missing remote topics and partitions, and the progress topic.

    Nothing is written where both ends are one cluster (`SameClusterError`). Raises `ClusterError` if an end does not
    answer; a topic that cannot be created is among the failures and does not hold up the others.
    """
    source_admin, target_admin = Admin(flow.source), Admin(flow.target)
    source, target = source_admin.metadata(), target_admin.metadata()
    ends = Ends(str(source.cluster_id), str(target.cluster_id))
    refuse_same(flow.name, ends.source_id, ends.target_id)
    on_target = partition_counts(target)
    actions = [
        *plan_internal_topics(flow, target=on_target),
        *plan_topics(flow, source=partition_counts(source), target=on_target),
    ]
    applied = apply(target_admin, actions)
    missing = _wait_until_visible(target_admin, [one.action for one in applied if one.error is None])
    return Discovery(
        ends=ends,
        applied=tuple(
            replace(one, error=f"not visible on {flow.target.alias} after {_VISIBLE_S:.0f} s")
            if one.action.topic in missing
            else one
            for one in applied
        ),
    )


def _wait_until_visible(target: Admin, actions: list[Action]) -> set[str]:
    """Wait until brokers tell of what the controller made, or the copy would take it for missing; returns what is."""
    until = time.monotonic() + _VISIBLE_S
    missing = {action.topic: action.partitions for action in actions}
    while missing and time.monotonic() < until:
        there = partition_counts(target.metadata())
        missing = {topic: count for topic, count in missing.items() if there.get(topic, 0) < count}
        if missing:
            time.sleep(_LOOK_EVERY_S)
    return set(missing)
