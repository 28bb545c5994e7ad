"""Announces where partitions begin of flows that start at the latest offset, when topic discovery finds them.

Otherwise records that are written between discovery and the first lease, up to half a minute later, would be left out.
Rules: at the first look, and for topics that only a changed filter selects, the latest offset; for partitions and
topics that appeared since the last look, the beginning, however long ago that was.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.topics import high_watermarks, partition_counts
from mirrorless.copy.flow.connections import FlowConnections
from mirrorless.copy.flow.start_group import group_starts
from mirrorless.copy.resume.epochs import Epochs
from mirrorless.errors import ClusterError, MirrorlessError
from mirrorless.filters import why_left_out
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.metadata.loop_check import refuse_loops
from mirrorless.metadata.plan import replicated
from mirrorless.metadata.service_records import examine_records
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement
from mirrorless.progress.source_notes import discovered, is_new
from mirrorless.progress.topic import ProgressTopic
from mirrorless.progress.writer import ProgressWriter
from mirrorless.protocol import cluster_client
from mirrorless.selection import LeftOut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow

FIRST_COPY: Final = "first copy"
_FLUSH_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class FixedStarts:
    """The result: how many partitions were announced, and why others failed, which are tried again the next time."""

    announced: int
    failures: Mapping[TopicPartition, str]

    @property
    def problem(self) -> str | None:
        """One line about the failures, None if there are none."""
        if not self.failures:
            return None
        (topic, partition), reason = next(iter(self.failures.items()))
        return (
            f"the start of {len(self.failures)} partitions could not be fixed, among them {topic}-{partition}: "
            f"{reason}; topic discovery tries again"
        )


class StartPositions:
    """Announces the start positions of one flow, again and again: what was read of the progress topic is kept."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._source, self._target = Admin(flow.source), Admin(flow.target)
        self._progress = ProgressTopic(flow, self._target)

    def fix(self) -> FixedStarts | None:
        """Announce where each partition without any record in the progress topic begins, and write which topics exist.

        None where there is no progress topic yet. Partitions that the target has records of are left to the copy, which
        asks the target. Raises `ClusterError`, `SameClusterError` if there is one cluster, and `LoopError`.
        """
        flow = self._flow
        source, target = self._source.metadata(), self._target.metadata()
        ends_of(flow, source=self._source, target=self._target, at_source=source, at_target=target)
        counts, remote_counts = partition_counts(source), partition_counts(target)
        refuse_loops(flow, counts.keys() | remote_counts.keys())
        if flow.offset_storage_topic not in remote_counts:
            return None
        examine_records(flow, self._source, counts)
        return _Fixing(flow, counts, self._target, remote_counts, self._progress).run()

    def close(self) -> None:
        """Close the connections."""
        self._progress.close()


class _Fixing:
    def __init__(
        self,
        flow: Flow,
        counts: Mapping[str, int],
        target: Admin,
        remote_counts: Mapping[str, int],
        progress: ProgressTopic,
    ) -> None:
        ask = why_left_out(flow)
        self._flow = flow
        self._remote = replicated(flow, counts)
        # Also what is not selected: a filter that is changed later makes nothing new.
        self._counts = {topic: n for topic, n in counts.items() if (ask(topic) or (None,))[0] is not LeftOut.INTERNAL}
        self._target, self._remote_counts = target, remote_counts
        self._progress = progress

    def run(self) -> FixedStarts:
        """Read, announce, write: in this order, so that what was not announced is new the next time too."""
        known = self._progress.read()
        seen = dict(self._progress.notes.partitions)
        waiting = [
            (topic, partition)
            for topic in self._remote
            for partition in range(self._counts[topic])
            if _is_open(known.get((topic, partition)))
        ]
        filled = self._with_records(waiting)
        waiting = [place for place in waiting if place not in filled]
        failures = self._announced(waiting, seen) if waiting else {}
        self._note(seen, left={place[0] for place in (*failures, *filled) if is_new(place, seen)})
        return FixedStarts(len(waiting) - len(failures), failures)

    def _with_records(self, places: Sequence[TopicPartition]) -> set[TopicPartition]:
        """Return the places whose remote partition ever had records, or whose end cannot be read.

        They were copied: if their progress is lost, a start announced now would be taken for the copy's.
        """
        there = {
            (self._remote[topic], partition): (topic, partition)
            for topic, partition in places
            if partition < self._remote_counts.get(self._remote[topic], 0)
        }
        ends, _ = high_watermarks(self._target, there) if there else ({}, {})
        return {place for remote, place in there.items() if ends.get(remote) != 0}

    def _announced(self, waiting: Sequence[TopicPartition], seen: Mapping[str, int]) -> dict[TopicPartition, str]:
        with closing(FlowConnections(self._flow)) as ends:
            try:
                return ends.run(lambda: self._announce(ends, waiting, seen))
            except kafka_errors.KafkaError as error:
                aliases = f"{self._flow.source.alias} or {self._flow.target.alias}"
                raise ClusterError(str(error), cluster=aliases) from error

    def _note(self, seen: Mapping[str, int], *, left: set[str]) -> None:
        """Write which topics exist, except those `left` to the next time."""
        alias = self._flow.source.alias
        changed = {
            topic: count for topic, count in self._counts.items() if seen.get(topic) != count and topic not in left
        }
        # A broker that has just started may know of no topics for some seconds.
        gone = seen.keys() - self._counts.keys() if self._counts else set()
        if not changed and not gone:
            return
        progress_writer = ProgressWriter(topic=self._flow.offset_storage_topic, cluster=self._flow.target)
        for topic, count in [*changed.items(), *((topic, None) for topic in gone)]:
            progress_writer.write(*discovered(alias, topic, count))
        if not progress_writer.flush(_FLUSH_S) or progress_writer.failures:
            reason = progress_writer.error or f"{self._flow.offset_storage_topic} does not take the discovered topics"
            raise ClusterError(reason, cluster=self._flow.target.alias)

    async def _announce(
        self, ends: FlowConnections, waiting: Sequence[TopicPartition], seen: Mapping[str, int]
    ) -> dict[TopicPartition, str]:
        """Announce the start of these places; returns which failed, and why."""
        flow = self._flow
        await ends.connect(flow, topics={topic for topic, _ in waiting}, remote_topics=())
        epochs = Epochs(
            net=ends.net,
            source=ends.source,
            target=ends.target,
            source_alias=flow.progress_alias,
            source_id=ends.source.cluster_id,
            progress_topic=flow.offset_storage_topic,
            start_at=cluster_client.LATEST,
        )

        starts = group_starts(flow, waiting)

        async def one(place: TopicPartition) -> None:
            found = ends.source.topic_id(place[0])
            at_group = starts.get(place)
            begins_first = is_new(place, seen) or at_group is not None
            places = [None, cluster_client.EARLIEST] if begins_first else [None]
            found_at = await ends.source.side_by_side(*(epochs.first_offset(place, at=at) for at in places))
            end, start = found_at[0], found_at[-1]
            start = start if at_group is None else min(max(start, at_group), end)
            wanted = Announcement(
                epoch=0,
                start=start,
                downstream=0,
                kind=EpochKind.FIRST_COPY,
                reason=FIRST_COPY,
                topic_id=None if found is None else str(found),
                source_end=end,
            )
            await epochs.announce(place, wanted)

        failures: dict[TopicPartition, str] = {}
        under_way = {place: ends.net.call_soon_with_future(one(place)) for place in waiting}
        for place, announcing in under_way.items():
            try:
                await announcing
            except (kafka_errors.KafkaError, MirrorlessError) as error:
                failures[place] = str(error)
        return failures


def _is_open(known: Known | None) -> bool:
    """Whether it is not known yet where a partition begins."""
    return known is None or (known.progress is None and not known.announced)
