"""Finds where each partition's copy goes on: asks the target, decides, walks the source (design, section 5)."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING

from kafka import errors as kafka_errors
from kafka.partitioner.default import murmur2
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from mirrorless.batches.admission import AbortedTransactions
from mirrorless.batches.header import FormatError, scan
from mirrorless.copy import wire as wires
from mirrorless.copy.producer_identity import announcer_id
from mirrorless.copy.progress import Announcement, SourcePartition, parse
from mirrorless.copy.resume import Begin, GoOn, Lost, TargetState, decide
from mirrorless.errors import CorruptBatch, Gap, MirrorlessError, UnsupportedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.copy.partition import PartitionCopy
    from mirrorless.copy.progress_topic import Known
    from mirrorless.copy.wire import Place, ProducerState, Wire

_ANNOUNCE_TIMEOUT_MS = 30_000
_OFFSET_OUT_OF_RANGE = 1


class NoLeader(MirrorlessError):
    """A partition has no leader at the moment."""

    retriable = True


TROUBLE = (*wires.RETRIABLE, kafka_errors.UnknownBrokerIdError, NoLeader)
"""What passes by itself, or when the leaders are known again."""


class Positions:
    """Resumes partitions of one flow; `journal_topic` is the progress topic, `source_id` the source's cluster id.

    `reread` reads the progress topic to its end. It blocks the event loop, and is asked only where what the driver knew
    does not explain what the target holds.
    """

    def __init__(
        self,
        *,
        source: Wire,
        target: Wire,
        source_alias: str,
        source_id: str,
        journal_topic: str,
        reread: Callable[[], Mapping[Place, Known]],
    ) -> None:
        self._source = source
        self._target = target
        self._alias = source_alias
        self._source_id = source_id
        self._journal_topic = journal_topic
        self._reread = reread

    async def target_states(self, copies: Sequence[PartitionCopy]) -> dict[Place, TargetState]:
        """Ask the target's leaders about all copies, a few requests a leader; keys are remote places."""
        states: dict[Place, TargetState] = {}
        by_node: dict[int, list[PartitionCopy]] = defaultdict(list)
        for copy in copies:
            by_node[_leader(self._target, copy.remote_place)].append(copy)
        for node, led in by_node.items():
            places = [copy.remote_place for copy in led]
            known = await self._target.producers(node, {copy.remote_place: copy.producer_id for copy in led})
            starts = await self._target.offsets(node, places, at=wires.EARLIEST)
            ends = await self._target.offsets(node, places, at=wires.LATEST)
            for copy in led:
                place = copy.remote_place
                states[place] = await self._state(node, copy, known[place], starts[place], ends[place])
        return states

    async def _state(
        self, node: int, copy: PartitionCopy, known: ProducerState | None, start: int, end: int
    ) -> TargetState:
        if known is not None:
            return TargetState(log_start=start, log_end=end, epoch=known.epoch, last_sequence=known.last_sequence)
        if start >= end:
            return TargetState(log_start=start, log_end=end)
        # The broker has forgotten the producer, or cannot be asked: the last batch of the log says it.
        (fetched,) = await self._target.fetch(
            node, [(copy.remote_place, end - 1)], isolation=wires.READ_UNCOMMITTED, partition_max_bytes=1 << 16
        )
        if fetched.error_code:
            raise wires.error_for(fetched.error_code)
        last = None
        for header, _at in scan(fetched.records):
            last = header
        if last is None or last.producer_id != copy.producer_id:
            return TargetState(log_start=start, log_end=end, foreign_tail=True)
        return TargetState(log_start=start, log_end=end, epoch=last.producer_epoch, last_sequence=last.last_sequence)

    async def settle(self, copy: PartitionCopy, target: TargetState) -> None:
        """Put one copy where it goes on; raises `PartitionError` where that cannot be found."""
        decision = decide(progress=copy.known_progress, starts=copy.starts, target=target)
        if isinstance(decision, Lost):
            # Another writer may have gone on since the lease was planned: what it wrote is in the progress topic.
            copy.learn(self._reread().get(copy.place))
            decision = decide(progress=copy.known_progress, starts=copy.starts, target=target)
        match decision:
            case Lost(reason=reason):
                raise Gap(reason, topic=copy.row.topic, partition=copy.row.partition)
            case Begin():
                await self._begin(copy, decision, target)
            case GoOn():
                offset = decision.walk_from
                if decision.walk_records:
                    offset = await self._walk(copy, decision.walk_from, decision.walk_records)
                copy.resume_at(
                    offset,
                    epoch=decision.epoch,
                    sequence=decision.sequence,
                    last_downstream=decision.last_downstream,
                )

    async def _begin(self, copy: PartitionCopy, decision: Begin, target: TargetState) -> None:
        start = decision.start
        if start is None:
            node = _leader(self._source, copy.place)
            start = (await self._source.offsets(node, [copy.place], at=wires.EARLIEST))[copy.place]
        announcement = Announcement(epoch=decision.epoch, start=start, reason=decision.reason)
        start = await self._announce(copy.place, announcement)
        copy.starts[decision.epoch] = start
        copy.resume_at(start, epoch=decision.epoch, sequence=0, last_downstream=target.log_end - 1)
        copy.written = copy.acked  # nothing was copied yet that the progress topic should hear of

    async def _announce(self, place: Place, announcement: Announcement) -> int:
        """Announce an epoch and return the start that holds.

        The record is itself a compare-and-append: whoever announces the same epoch second is acknowledged with the
        offset of the first announcement, which is then read. So racing writers agree on one start.
        """
        topic, partition = place
        key = SourcePartition(self._alias, topic, partition).announcement_key(announcement.epoch)
        count = self._target.partition_count(self._journal_topic)
        journal = (self._journal_topic, (murmur2(key) & 0x7FFFFFFF) % max(count, 1))
        producer = announcer_id(self._source_id, topic, partition, announcement.epoch)
        builder = DefaultRecordBatchBuilder(2, 0, 0, producer, 0, 0, 1 << 20)
        builder.append(0, timestamp=int(time.time() * 1000), key=key, value=announcement.to_bytes(), headers=[])
        node = _leader(self._target, journal)
        response = await self._target.append(node, [(journal, bytes(builder.build()))], timeout_ms=_ANNOUNCE_TIMEOUT_MS)
        (written,) = wires.appended(response)
        if written.error_code:
            raise wires.error_for(written.error_code)
        (fetched,) = await self._target.fetch(
            node, [(journal, written.base_offset)], isolation=wires.READ_UNCOMMITTED, partition_max_bytes=1 << 16
        )
        for header, at in scan(fetched.records):
            if header.base_offset <= written.base_offset <= header.last_offset:
                for record in DefaultRecordBatch(bytes(fetched.records[at : at + header.size_bytes])):
                    holds = parse(record.key, record.value)
                    if record.key == key and holds is not None and isinstance(holds[1], Announcement):
                        return holds[1].start
        return announcement.start

    async def _walk(self, copy: PartitionCopy, offset: int, count: int) -> int:
        """Walk `count` committed records of the source from `offset` on, by batch headers; return the offset behind."""
        left = count
        while left > 0:
            node = _leader(self._source, copy.place)
            (fetched,) = await self._source.fetch(
                node, [(copy.place, offset)], max_wait_ms=500, partition_max_bytes=8 << 20
            )
            if fetched.error_code == _OFFSET_OUT_OF_RANGE:
                raise Gap(
                    f"{left} records from offset {offset} on were copied, but the source has no record there any more: "
                    f"its log starts at {fetched.log_start}",
                    topic=copy.row.topic,
                    partition=copy.row.partition,
                    offset=offset,
                )
            if fetched.error_code:
                raise wires.error_for(fetched.error_code)
            if fetched.last_stable_offset <= offset:
                raise Gap(
                    f"the target holds {left} records more than the source, which ends at "
                    f"{fetched.last_stable_offset}: the source lost records",
                    topic=copy.row.topic,
                    partition=copy.row.partition,
                    offset=offset,
                )
            offset, left = self._count(copy, fetched, offset, left)
        return offset

    @staticmethod
    def _count(copy: PartitionCopy, fetched: wires.Fetched, offset: int, left: int) -> tuple[int, int]:
        aborted = AbortedTransactions(fetched.aborted)
        topic, partition = copy.place
        try:
            for header, at in scan(fetched.records):
                dropped = aborted.drops(header, fetched.records, at)
                if header.next_offset <= offset:
                    continue
                if not dropped:
                    if header.base_offset < offset or header.record_count > left:
                        raise UnsupportedBatch(
                            f"the copy goes on in the middle of the batch {header.base_offset} to {header.last_offset}",
                            topic=topic,
                            partition=partition,
                            offset=offset,
                        )
                    left -= header.record_count
                offset = header.next_offset
                if left == 0:
                    break
        except FormatError as error:
            kind = UnsupportedBatch if error.magic != 2 else CorruptBatch
            raise kind(str(error), topic=topic, partition=partition, offset=error.offset) from error
        return offset, left


def _leader(wire: Wire, place: Place) -> int:
    node = wire.leader(place)
    if node is None:
        raise NoLeader(f"{place[0]}-{place[1]} has no leader at the moment")
    return node
