"""Announces the epochs of a copy, and finds the source offset where one begins after a gap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.partition.errors import another_topic, fetch_error
from mirrorless.copy.resume.compare_and_append import CompareAndAppend, RequestBatcher
from mirrorless.copy.resume.source_walk import PATIENCE_AT_END, count
from mirrorless.errors import GapKind
from mirrorless.progress.producer_ids import announcer_id
from mirrorless.progress.records import Announcement, SourcePartition
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow, leader_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import RemoteLogState
    from mirrorless.errors import Gap
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.progress.epoch_kind import EpochKind
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Offset

_HIGHEST_EPOCH = (1 << 15) - 1
"""Producer epochs have 16 bits with a sign."""


def next_epoch(copy: PartitionCopy, state: RemoteLogState) -> int:
    """Return the epoch after all that are known or on the target; raises `PartitionError` if there is none left."""
    epoch = max(copy.newest_epoch, -1 if state.epoch is None else state.epoch) + 1
    if epoch > _HIGHEST_EPOCH:
        raise fetch_error(copy, "all 32,768 epochs of this copy are used up; replicate the topic from scratch")
    return epoch


class Epochs:
    """Announces the epochs of one flow in its progress topic `progress_topic`; `source_id` is the source's cluster id.

    `start_at` is `EARLIEST`, `LATEST` or a timestamp in ms: where a partition without progress begins.
    """

    def __init__(
        self,
        *,
        net: EventLoop,
        source: ClusterClient,
        target: ClusterClient,
        source_alias: str,
        source_id: str,
        progress_topic: str,
        start_at: int = cluster_client.EARLIEST,
    ) -> None:
        self._source = source
        self._target = target
        self._alias = source_alias
        self._source_id = source_id
        self._start_at = start_at
        self._offsets: RequestBatcher[tuple[int, int], TopicPartition, Offset] = RequestBatcher(net, self._ask_offsets)
        self._records = CompareAndAppend(net=net, target=target, topic=progress_topic)

    async def begin(self, copy: PartitionCopy, announcement: Announcement) -> Announcement:
        """Announce an epoch of a copy, with the source's end as of now, and return the announcement that is stored."""
        if announcement.epoch not in copy.announced:
            if announcement.source_end is None:
                announcement = replace(announcement, source_end=await self.source_end(copy))
            if (remote_id := self._target.topic_id(copy.row.remote_topic)) is not None:
                announcement = replace(announcement, remote_id=str(remote_id))
        holds = await self.announce(copy.place, announcement)
        copy.learn_epoch(holds)
        return holds

    async def announce_next(
        self,
        copy: PartitionCopy,
        state: RemoteLogState,
        *,
        start: int,
        kind: EpochKind,
        reason: str,
        downstream: int | None = None,
    ) -> Announcement:
        """Announce an epoch that begins at source offset `start`; the next resume begins it.

        It begins at offset `downstream` of the target, else at the end of its log. Then it is void where the target has
        moved on meanwhile: there was nothing to skip. Raises `PartitionError` where there are no epochs left.
        """
        after = None
        if downstream is None and state.epoch is not None and state.last_sequence is not None:
            after = state.epoch, (state.last_sequence + 1) % SEQUENCES
        epoch = next_epoch(copy, state)
        theirs = copy.stored if copy.stored is not None and copy.stored.epoch is None else None
        appended = copy.acked is not None and copy.acked.sequence
        topic_id, before = self.topic_id(copy), copy.announced.get(copy.newest_epoch)
        announcement = Announcement(
            epoch=epoch,
            start=start,
            downstream=state.log_end if downstream is None else downstream,
            kind=kind,
            reason=reason,
            topic_id=topic_id,
            after=after,
            source_end=before.source_end if before is not None and before.topic_id == topic_id else None,
            behind=None if theirs is None or appended else theirs.last_offset + 1,
        )
        return await self.begin(copy, announcement)

    def topic_id(self, copy: PartitionCopy) -> str | None:
        """Return the source topic's own id as announcements have it."""
        found = self._source.topic_id(copy.row.topic)
        return None if found is None else str(found)

    def another_topic(self, copy: PartitionCopy, epoch: int) -> Gap | None:
        """Return the gap of a source topic with another id than that which an epoch was announced for."""
        return another_topic(copy, epoch, self.topic_id(copy))

    def refuse_another_topic(self, copy: PartitionCopy, epoch: int) -> None:
        """Raise the gap of a source topic with another id than that which an epoch was announced for."""
        if (gap := self.another_topic(copy, epoch)) is not None:
            raise gap

    async def source_end(self, copy: PartitionCopy) -> int:
        """Return the source's end as of now: the last stable offset, or that of the lease's plan if it is later."""
        return max(await self._offset(copy.place, cluster_client.LATEST), copy.row.source_end)

    async def start_and_end(self, copy: PartitionCopy, *, at: int | None = None) -> tuple[int, int]:
        """Return `first_offset` and `source_end`, which are asked for side by side.

        The first offset is the row's `start`, if it has one and the log still has it.
        """
        if copy.row.start is not None:
            at = cluster_client.EARLIEST
        start, end = await self._source.side_by_side(self.first_offset(copy.place, at=at), self.source_end(copy))
        return (start if copy.row.start is None else min(max(start, copy.row.start), end)), end

    async def first_offset(self, place: TopicPartition, *, at: int | None = None) -> int:
        """Return where a partition without progress begins: at the flow's start position, or at `at`."""
        # The last stable offset, or `latest` would leave out the records of a transaction that is open now.
        for position in (self._start_at if at is None else at, cluster_client.LATEST):
            found = await self._offset(place, position)
            if found >= 0:
                return found
        raise NotNow(f"{place[0]}-{place[1]} has no end at the moment")

    async def first_left(self, copy: PartitionCopy, gap: Gap) -> int:
        """Return the source offset of the first record after a gap, or of the first that the target lost."""
        ends = (self._offset(copy.place, at) for at in (cluster_client.EARLIEST, cluster_client.LATEST))
        earliest: int
        latest: int
        earliest, latest = await self._source.side_by_side(*ends)
        match gap.kind:
            case GapKind.TRUNCATED:
                return min(max(earliest, latest if gap.offset is None else gap.offset), latest)
            case GapKind.TARGET_LOST:
                return await self._first_lost(copy, gap, earliest, latest)
            case GapKind.TARGET_HOLE:
                return max(earliest, _before_the_hole(copy))
            case _:
                return earliest

    async def _first_lost(self, copy: PartitionCopy, gap: Gap, earliest: int, latest: int) -> int:
        """Go back from the progress by as many records as the target lost; the source may have fewer of them left."""
        progress = copy.known_progress
        if progress is None or gap.records is None:
            raise fetch_error(copy, "nothing says how many records the target lost; see mirrorless offsets reset")
        end = progress.last_offset + 1
        if latest < end and copy.retry.attempts < PATIENCE_AT_END:
            raise NotNow(f"the source ends at {latest}, before the copy's {end}: a new leader's log may lag")
        start, missing = min(end, latest), gap.records
        while missing > 0 and start > earliest:
            before = max(earliest, start - missing)
            missing -= await count(self._source, copy, start=before, end=start)
            start = before
        return max(start, earliest)

    async def _offset(self, place: TopicPartition, at: int) -> int:
        found = await self._offsets.one((leader_of(self._source, place), at), place)
        if found.error_code:
            raise error_for(found.error_code)
        return found.offset

    async def _ask_offsets(
        self, group: tuple[int, int], places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        node, at = group
        return await self._source.offsets(node, places, at=at, isolation=cluster_client.READ_COMMITTED)

    async def announce(self, place: TopicPartition, announcement: Announcement) -> Announcement:
        """Announce an epoch and return the announcement that is stored, which may be another writer's.

        The record is itself a compare-and-append: the second writer that announces an epoch is acknowledged with the
        offset of the first announcement, which is then read. So racing writers agree on one start.
        """
        key = SourcePartition(self._alias, *place).announcement_key(announcement.epoch)
        producer = announcer_id(self._source_id, *place, announcement.epoch)
        stored = await self._records.append(key, announcement.to_bytes(), producer=producer)
        if not isinstance(stored, Announcement):
            raise NotNow(f"the announcement of epoch {announcement.epoch} could not be read back")
        return stored


def _before_the_hole(copy: PartitionCopy) -> int:
    """Return the source offset after the last record that the target is known to hold with all before it."""
    if copy.known_progress is not None:
        return copy.known_progress.last_offset + 1
    return copy.announced[copy.newest_epoch].start
