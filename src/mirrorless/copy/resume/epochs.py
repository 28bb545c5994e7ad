"""Begins incarnations of a copy: announces epochs, and finds where one begins behind a gap (design, 5 and 7)."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import HEADER_BYTES, SEQUENCES, scan
from mirrorless.batches.rebuild import merge
from mirrorless.batches.records import Records, varint
from mirrorless.batches.stamp import stamp
from mirrorless.copy.partition.min_insync_replicas import NOT_ENOUGH, too_few_replicas
from mirrorless.copy.progress.records import Announcement, SourcePartition, parse
from mirrorless.copy.resume.producer_id import announcer_id
from mirrorless.copy.resume.request_batching import RequestBatcher
from mirrorless.copy.resume.source_walk import PATIENCE_AT_END, count
from mirrorless.errors import GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.structs import DefaultRecordBatch, murmur2
from mirrorless.protocol import cluster_client as wires
from mirrorless.protocol.broker_errors import error_for, refusal
from mirrorless.protocol.leaders import NotNow, leader_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.progress.epoch_kind import EpochKind
    from mirrorless.copy.resume.decision import RemoteLogState
    from mirrorless.errors import Gap
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import Offset

_ANNOUNCE_TIMEOUT_MS = 30_000
_READ_BACK_BYTES = 1 << 16
_HIGHEST_EPOCH = (1 << 15) - 1
"""Producer epochs have 16 bits with a sign."""


class _Said(NamedTuple):
    """An announcement on its way: the partition of the progress topic that takes it, by which producer, as a batch."""

    progress_place: Place
    producer: int
    batch: Stamped


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
        start_at: int = wires.EARLIEST,
    ) -> None:
        self._net = net
        self._source = source
        self._target = target
        self._alias = source_alias
        self._source_id = source_id
        self._progress_topic = progress_topic
        self._start_at = start_at
        self._offsets: RequestBatcher[tuple[int, int], Place, Offset] = RequestBatcher(net, self._ask_offsets)
        self._announcing: RequestBatcher[int, _Said, Announcement] = RequestBatcher(net, self._announce_all)

    async def begin(self, copy: PartitionCopy, announcement: Announcement) -> Announcement:
        """Announce an epoch of a copy, with the source's end as of now, and return the announcement that holds."""
        if announcement.source_end is None and announcement.epoch not in copy.announced:
            stable_end = await self._offset(copy.place, wires.LATEST)
            announcement = replace(announcement, source_end=max(stable_end, copy.row.source_end))
        holds = await self.announce(copy.place, announcement)
        copy.announced[holds.epoch] = holds
        return holds

    async def turn(
        self, copy: PartitionCopy, state: RemoteLogState, *, start: int, kind: EpochKind, reason: str
    ) -> Announcement:
        """Announce the epoch that passes over something, to begin at upstream `start`; the next resume begins it.

        It is void where the target has moved on meanwhile: then nothing was in the way. Raises `PartitionError` where
        there are no epochs left.
        """
        after = None
        if state.epoch is not None and state.last_sequence is not None:
            after = state.epoch, (state.last_sequence + 1) % SEQUENCES
        epoch = max(copy.newest_epoch, -1 if state.epoch is None else state.epoch) + 1
        if epoch > _HIGHEST_EPOCH:
            raise copy.error_at_fetch("all 32,768 epochs of this copy are used up; replicate the topic anew")
        theirs = copy.stored if copy.stored is not None and copy.stored.epoch is None else None
        appended = copy.acked is not None and copy.acked.sequence
        topic_id, before = self.topic_id(copy), copy.announced.get(copy.newest_epoch)
        announcement = Announcement(
            epoch=epoch,
            start=start,
            downstream=state.log_end,
            kind=kind,
            reason=reason,
            topic_id=topic_id,
            after=after,
            source_end=before.source_end if before is not None and before.topic_id == topic_id else None,
            behind=None if theirs is None or appended else theirs.last_offset + 1,
        )
        return await self.begin(copy, announcement)

    def topic_id(self, copy: PartitionCopy) -> str | None:
        """The source topic's own id as it is written down."""
        found = self._source.topic_id(copy.row.topic)
        return None if found is None else str(found)

    async def first_offset(self, place: Place, *, at: int | None = None) -> int:
        """Where a partition without progress begins: at the flow's start position, or at another one."""
        # Committed, or the records of a transaction that is open now would be left out by `latest`.
        for position in (self._start_at if at is None else at, wires.LATEST):
            found = await self._offset(place, position)
            if found >= 0:
                return found
        raise NotNow(f"{place[0]}-{place[1]} has no end at the moment")

    async def first_left(self, copy: PartitionCopy, gap: Gap) -> int:
        """Upstream offset of the first record that is left behind a gap, or that the target lost and can have again."""
        earliest = await self._offset(copy.place, wires.EARLIEST)
        latest = await self._offset(copy.place, wires.LATEST)
        match gap.kind:
            case GapKind.TRUNCATED:
                return min(max(earliest, latest if gap.offset is None else gap.offset), latest)
            case GapKind.TARGET_LOST:
                return await self._behind_the_kept(copy, gap, earliest, latest)
            case GapKind.TARGET_HOLE:
                return max(earliest, _before_the_hole(copy))
            case _:
                return earliest

    async def _behind_the_kept(self, copy: PartitionCopy, gap: Gap, earliest: int, latest: int) -> int:
        """Go back from the progress by as many records as the target lost; the source may have lost some of them."""
        progress = copy.known_progress
        if progress is None or gap.records is None:
            raise copy.error_at_fetch("nothing says how many records the target lost; see mirrorless offsets reset")
        end = progress.last_offset + 1
        if latest < end and copy.attempts < PATIENCE_AT_END:
            raise NotNow(f"the source ends at {latest}, before the copy's {end}: a new leader may not know of all yet")
        start, missing = min(end, latest), gap.records
        while missing > 0 and start > earliest:
            before = max(earliest, start - missing)
            missing -= await count(self._source, copy, start=before, end=start)
            start = before
        return max(start, earliest)

    async def _offset(self, place: Place, at: int) -> int:
        found = await self._offsets.one((leader_of(self._source, place), at), place)
        if found.error_code:
            raise error_for(found.error_code)
        return found.offset

    async def _ask_offsets(self, group: tuple[int, int], places: Sequence[Place]) -> dict[Place, Offset]:
        node, at = group
        return await self._source.offsets(node, places, at=at, isolation=wires.READ_COMMITTED)

    async def announce(self, place: Place, announcement: Announcement) -> Announcement:
        """Announce an epoch and return the announcement that holds.

        The record is itself a compare-and-append: whoever announces the same epoch second is acknowledged with the
        offset of the first announcement, which is then read. So racing writers agree on one start.
        """
        topic, partition = place
        key = SourcePartition(self._alias, topic, partition).announcement_key(announcement.epoch)
        partitions = self._target.partition_count(self._progress_topic)
        if partitions == 0:
            raise NotNow(f"there is no topic {self._progress_topic} yet")
        progress_place = (self._progress_topic, (murmur2(key) & 0x7FFFFFFF) % partitions)
        producer = announcer_id(self._source_id, topic, partition, announcement.epoch)
        said = _Said(progress_place, producer, _batch(producer, key, announcement.to_bytes()))
        return await self._announcing.one(leader_of(self._target, progress_place), said)

    async def _announce_all(self, node: int, wanted: Sequence[_Said]) -> dict[_Said, Announcement | Exception]:
        """Announce with as few requests as it takes: of each partition, a request holds one batch."""
        by_partition: dict[Place, list[_Said]] = defaultdict(list)
        for said in wanted:
            by_partition[said.progress_place].append(said)
        rounds = [[said for said in column if said is not None] for column in zip_longest(*by_partition.values())]
        under_way = [self._net.call_soon_with_future(self._announce_round(node, some)) for some in rounds]
        found: dict[_Said, Announcement | Exception] = {}
        for answers in under_way:
            found |= await answers
        return found

    async def _announce_round(self, node: int, wanted: Sequence[_Said]) -> dict[_Said, Announcement | Exception]:
        batches = [(said.progress_place, said.batch) for said in wanted]
        written = {one.place: one for one in await self._target.append(node, batches, timeout_ms=_ANNOUNCE_TIMEOUT_MS)}
        found: dict[_Said, Announcement | Exception] = {}
        taken: dict[Place, int] = {}
        for said in wanted:
            one = written.get(said.progress_place)
            if one is None:
                continue  # `RequestBatcher` tells it
            if one.error_code:
                found[said] = (
                    too_few_replicas(self._target, one.place, one.error_code)
                    if one.error_code in NOT_ENOUGH
                    else refusal(one.error_code, right="WRITE", topic=self._progress_topic)
                )
            else:
                taken[said.progress_place] = one.base_offset
        read = await self._target.read_each_at(node, taken, partition_max_bytes=_READ_BACK_BYTES)
        for said in wanted:
            if said.progress_place in taken:
                records = read[said.progress_place]
                missing = NotNow(
                    f"an announcement in {said.progress_place[0]}-{said.progress_place[1]} could not be read back"
                )
                said_there = (
                    records if isinstance(records, kafka_errors.KafkaError) else _announced_by(said.producer, records)
                )
                found[said] = said_there or missing
        return found


def _before_the_hole(copy: PartitionCopy) -> int:
    """Upstream offset behind the last record that is known to be on the target with all before it."""
    if copy.known_progress is not None:
        return copy.known_progress.last_offset + 1
    return copy.announced[copy.newest_epoch].start


def _batch(producer: int, key: bytes, value: bytes) -> Stamped:
    """A batch of one record; the library's builder computes checksums in Python, a tenth of a millisecond each."""
    rest = varint(len(key)) + key + varint(len(value)) + value + varint(0)
    records = Records([0], [int(time.time() * 1000)], [rest])
    (built,) = merge([(0, records)], max_bytes=HEADER_BYTES)
    return stamp(built.header, built.body, producer_id=producer, producer_epoch=0, base_sequence=0)


def _announced_by(producer: int, records: bytes | memoryview) -> Announcement | None:
    for header, at in scan(records):
        if header.producer_id == producer:
            for record in DefaultRecordBatch(bytes(records[at : at + header.size_bytes])):
                said = parse(record.key, record.value)
                if said is not None and isinstance(said[1], Announcement):
                    return said[1]
    return None
