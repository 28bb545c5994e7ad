"""Distinguishes groups that consumed in a remote topic from those that only the flow's own checkpoints moved there.

If both flows of a pair commit group offsets, the flow A->B creates each group of A on B as well. To the flow B->A that
is a group like any other, whose offset in `A.t` it would translate back to `t`: useless at best, and wrong for an
offset that was reset on A, or a group that was deleted there. MirrorMaker 2 does not fail groups back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.offsets.checkpoints import CheckpointTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import Checkpoint
    from mirrorless.settings import Flow


class FailbackFilter(CheckpointTopic):
    """The checkpoints of the flow `forward`, and how far they moved each group; `admin` is its target's client.

    This is derived from all records that the compacted topic still has: for a group that was reset on the source the
    last one is not sufficient.
    """

    def __init__(self, forward: Flow, admin: Admin, *, wanted: Callable[[str], bool]) -> None:
        super().__init__(checkpoints_topic(forward), admin, wanted=wanted)
        self._furthest: dict[tuple[str, TopicPartition], int] = {}

    def note(self, checkpoint: Checkpoint) -> None:
        """Use a checkpoint as the last one of its key.

        One that went back although its group did not is of a recreated remote topic; to one that was committed itself,
        an operation moved the group.
        """
        place = checkpoint.topic, checkpoint.partition
        last = self.last(checkpoint.group, place)
        super().note(checkpoint)
        key = checkpoint.group, place
        reset = last is not None and checkpoint.upstream >= last.upstream and checkpoint.downstream < last.downstream
        begins = reset or checkpoint.committed == checkpoint.downstream
        known = -1 if begins else self._furthest.get(key, -1)
        self._furthest[key] = max(known, checkpoint.downstream, checkpoint.committed or -1)

    def of(self, group: str, place: TopicPartition, offset: int) -> Checkpoint | None:
        """The last checkpoint of a group, if the group's offset in a remote topic is the flow's own."""
        return self.last(group, place) if self.is_ours(group, place, offset) else None

    def knows_committed(self, group: str, place: TopicPartition) -> bool:
        """Whether it is known which offset the flow committed last for a group: any other one is the group's own."""
        last = self.last(group, place)
        return last is not None and last.committed is not None

    def went_on(self, group: str, place: TopicPartition, offset: int) -> bool:
        """Whether a group's offset in a remote topic is one that no checkpoint has."""
        return offset > self._furthest.get((group, place), -1)

    def _forget_all(self) -> None:
        super()._forget_all()
        self._furthest = {}
