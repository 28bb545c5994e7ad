"""Decides which checkpoints are written, and reads the checkpoints topic."""

from __future__ import annotations

import struct
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.replay import Replay
from mirrorless.formats import Checkpoint, Malformed, read_checkpoint_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.policy import ReplicationPolicy
    from mirrorless.settings import Flow

_FLUSH_S: Final = 30.0
ByGroup = dict[str, dict["TopicPartition", Checkpoint]]
"""Checkpoints by group, and by remote topic and partition."""


def remote_topic(topic: str, *, source: str, target: str, policy: ReplicationPolicy) -> str:
    """Name of a source topic on the target; a topic that was replicated from there has its original name there."""
    if policy.topic_source(topic) == target:
        return policy.original_topic(topic)
    return policy.format_remote_topic(source, topic)


def is_news(checkpoint: Checkpoint, last: Checkpoint | None, *, exact: bool = False, end: int | None = None) -> bool:
    """Whether a checkpoint is to be written after `last`.

    A group that was reset to an earlier offset may take its downstream offset back with it; otherwise that only grows.
    Unless the remote topic was recreated, or lost records: `last` is then beyond its `end`, or an `exact` answer,
    and a consumer that continued from it would miss the records between.
    """
    if last is None or checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream:
        return True
    return checkpoint.downstream < last.downstream and (exact or (end is not None and last.downstream > end))


class CheckpointTopic:
    """The checkpoints topic of a flow; `admin` is the target's client. The last record of every key counts.

    `known` are the checkpoints of the groups that `wanted` selects; `malformed` counts records that were skipped.
    """

    def __init__(self, topic: InternalTopic, admin: Admin, *, wanted: Callable[[str], bool]) -> None:
        self._replay = Replay(topic=topic.name, cluster=topic.cluster, admin=admin)
        self._wanted = wanted
        self.known: ByGroup = {}
        self.malformed = 0

    @property
    def name(self) -> str:
        """The topic's name."""
        return self._replay.topic

    @property
    def missing(self) -> bool:
        """Whether the topic did not exist when it was last read."""
        return self._replay.missing

    @property
    def refused(self) -> str | None:
        """Why the topic was not visible when it was last read, None if it was."""
        return self._replay.refused

    @property
    def complete(self) -> bool:
        """Whether the topic was read to its end the last time."""
        return self._replay.complete

    def read(self, *, stopping: Callable[[], bool] = lambda: False) -> ByGroup:
        """Read to the topic's end; once `stopping` returns true the rest is left to the next read.

        Raises `ClusterUnavailable`.
        """
        for entry in self._replay.read(self._forget_all, stopping=stopping):
            if entry.value is None:
                self._forget(entry.key)
                continue
            checkpoint = Checkpoint.parse(entry.key, entry.value)
            if isinstance(checkpoint, Malformed):
                self.malformed += 1
            elif self._wanted(checkpoint.group):
                self.note(checkpoint)
        return self.known

    def note(self, checkpoint: Checkpoint) -> None:
        """Use a checkpoint as the last one of its key."""
        self.known.setdefault(checkpoint.group, {})[checkpoint.topic, checkpoint.partition] = checkpoint

    def last(self, group: str, place: TopicPartition) -> Checkpoint | None:
        """The last checkpoint of a group for a remote topic and partition."""
        return self.known.get(group, {}).get(place)

    def is_ours(self, group: str, place: TopicPartition, offset: int) -> bool:
        """Whether a group's offset on the target is the one that this program committed last, as far as is known.

        The last checkpoint may have been committed after it was written.
        """
        last = self.last(group, place)
        return last is not None and offset in (last.committed, last.downstream)

    def note_committed(self, group: str, place: TopicPartition, offset: int) -> None:
        """Remember that this program committed the offset: the next checkpoint of its key carries it."""
        if (last := self.last(group, place)) is not None:
            self.note(replace(last, committed=offset))

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget_all(self) -> None:
        self.known = {}

    def _forget(self, key: bytes | None) -> None:
        try:
            group, topic, partition = read_checkpoint_key(key)
        except (struct.error, ValueError):
            self.malformed += 1
        else:
            self.known.get(group, {}).pop((topic, partition), None)


def write_checkpoints(flow: Flow, checkpoints: Iterable[Checkpoint]) -> None:
    """Write checkpoints of a flow; raises `ClusterError`."""
    topic = checkpoints_topic(flow)
    producer = TopicProducer(flow.target, creator="the next run", gives_up_after_s=_FLUSH_S)
    now_ms = int(time.time() * 1000)
    for one in checkpoints:
        producer.send(topic.name, key=one.key(), value=one.value(), partition=0, timestamp_ms=now_ms, waits=True)
    producer.confirm(topic.name, _FLUSH_S + 1)


def offsets_to_commit(
    checkpoints: Mapping[TopicPartition, Checkpoint], committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Checkpoint]:
    """Choose what a group without members gets on the target: missing offsets, and those ahead of its own."""
    return {
        place: checkpoint
        for place, checkpoint in checkpoints.items()
        if checkpoint.downstream > committed.get(place, -1)
    }
