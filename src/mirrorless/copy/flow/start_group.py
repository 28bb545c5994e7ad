"""Where a consumer group stands on the source, for flows that begin there (`mirrorless.start.group`)."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mirrorless.clusters.groups import GroupOffsets
from mirrorless.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow


def group_starts(flow: Flow, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the group's offset in each of the places that it has one in; nothing without a group, or without places.

    Raises `ClusterError` if its offsets cannot be read, or it has none on the source at all: it may be misspelt.
    """
    if flow.start_group is None or not places:
        return {}
    with closing(GroupOffsets(flow.source)) as offsets:
        ((_, found),) = offsets.committed([flow.start_group])
    if isinstance(found, str):
        raise ClusterError(f"mirrorless.start.group={flow.start_group}: {found}", cluster=flow.source.alias)
    if not found:
        raise ClusterError(
            f"mirrorless.start.group={flow.start_group}: the group has no offsets there; correct its name, or remove "
            "the setting to begin by auto.offset.reset",
            cluster=flow.source.alias,
        )
    return {place: found[place].offset for place in places if place in found}
