"""Groups that exist on several sources of one remote topic: flows to one target that keep topic names.

Each flow translates the group's offset on its own source, and knows nothing of the others' records. Only the earliest
of the translations is before every record that the group has not read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.modes import Modes
from mirrorless.offsets.checkpoints import CheckpointTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import Checkpoint
    from mirrorless.offsets.checkpoints import ByGroup
    from mirrorless.settings import Flow


class OtherSources:
    """The checkpoints that the other flows into the same remote topics have written; `admin` is the target's client."""

    def __init__(self, flow: Flow, admin: Admin, *, wanted: Callable[[str], bool]) -> None:
        self._topics = [
            CheckpointTopic(checkpoints_topic(one), admin, wanted=wanted)
            for one in Modes(flow).same_remote_topics
            if one.writes_checkpoints
        ]

    def read(self) -> None:
        """Read the checkpoints topics to their ends; raises `ClusterUnavailable`."""
        for topic in self._topics:
            topic.read()

    def earliest(self, group: str, place: TopicPartition, downstream: int) -> int:
        """Return the earliest of this offset on the target and the other flows' last checkpoints of the group."""
        if not self._topics:
            return downstream
        others = (topic.last(group, place) for topic in self._topics)
        return min([downstream, *(one.downstream for one in others if one is not None)])

    def held_back(self, known: ByGroup) -> ByGroup:
        """Return the checkpoints, none of them beyond those of the other flows now; raises `ClusterUnavailable`."""
        self.read()
        return {group: self._of_group(group, last) for group, last in known.items()} if self._topics else known

    def _of_group(self, group: str, last: dict[TopicPartition, Checkpoint]) -> dict[TopicPartition, Checkpoint]:
        return {
            place: replace(one, downstream=self.earliest(group, place, one.downstream)) for place, one in last.items()
        }

    def close(self) -> None:
        """Close the connections."""
        for topic in self._topics:
            topic.close()
