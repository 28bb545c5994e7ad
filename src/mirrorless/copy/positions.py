"""Finds where each partition's copy goes on: asks the target, decides, announces (design, section 5)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafka import errors as kafka_errors
from kafka.partitioner.default import murmur2
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from mirrorless.batches.header import BatchHeader, FormatError, scan
from mirrorless.copy import wire as wires
from mirrorless.copy.leaders import NotNow, leader_of
from mirrorless.copy.producer_identity import announcer_id
from mirrorless.copy.progress import Announcement, SourcePartition, parse
from mirrorless.copy.resume import Begin, Decision, GoOn, Lost, TargetState, Unexplained, Wait, decide
from mirrorless.copy.walking import walk
from mirrorless.errors import Gap, MirrorlessError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.copy.partition import PartitionCopy
    from mirrorless.copy.progress_topic import Known
    from mirrorless.copy.wire import Place, Wire

_ANNOUNCE_TIMEOUT_MS = 30_000


class Positions:
    """Resumes partitions of one flow; `journal_topic` is the progress topic, `source_id` the source's cluster id.

    `reread` reads the progress topic to its end. It blocks the event loop, and is asked only where what the driver knew
    does not explain what the target holds. `start_at` is `EARLIEST`, `LATEST` or a timestamp in ms: where a partition
    without progress begins.
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
        start_at: int = wires.EARLIEST,
    ) -> None:
        self._source = source
        self._target = target
        self._alias = source_alias
        self._source_id = source_id
        self._journal_topic = journal_topic
        self._reread = reread
        self._start_at = start_at

    async def decisions(
        self, node: int, copies: Sequence[PartitionCopy]
    ) -> dict[PartitionCopy, tuple[TargetState, Decision] | BaseException]:
        """Ask the target's leader `node` about `copies`, a few requests for all, and decide for each how it goes on.

        A copy that cannot be decided on has its error instead; raises `TROUBLE` and kafka-python's errors where the
        leader does not answer at all.
        """
        places = [copy.remote_place for copy in copies]
        # In this order: what is remembered first has had time to be replicated when the log's end is asked for.
        known = await self._target.producers(node, {copy.remote_place: copy.producer_id for copy in copies})
        starts = await self._target.offsets(node, places, at=wires.EARLIEST)
        ends = await self._target.offsets(node, places, at=wires.LATEST)
        found: dict[PartitionCopy, tuple[TargetState, Decision] | BaseException] = {}
        for copy in copies:
            place = copy.remote_place
            try:
                state = await self._state(node, copy, known[place], starts[place], ends[place])
            except (kafka_errors.KafkaError, MirrorlessError) as error:
                found[copy] = error
            else:
                found[copy] = state, _decide(copy, state)
        unexplained = {
            copy: one[1].epoch
            for copy, one in found.items()
            if isinstance(one, tuple) and isinstance(one[1], Unexplained)
        }
        if unexplained:
            now_known = self._reread()
            for copy, epoch in unexplained.items():
                copy.learn(now_known.get(copy.place))
                if epoch in copy.announced:
                    # The writer went on meanwhile, so that the target has to be asked again too.
                    found[copy] = NotNow(f"another writer began epoch {epoch}")
                else:
                    reason = f"the target holds records of epoch {epoch}, which the progress topic does not announce"
                    found[copy] = Gap(reason, topic=copy.row.topic, partition=copy.row.partition)
        return found

    async def _state(
        self,
        node: int,
        copy: PartitionCopy,
        known: wires.ProducerState | int | None,
        start: wires.Offset,
        end: wires.Offset,
    ) -> TargetState:
        for code in (start.error_code, end.error_code, known if isinstance(known, int) else 0):
            if code:
                raise wires.error_for(code)
        if isinstance(known, wires.ProducerState):
            return TargetState(
                log_start=start.offset,
                log_end=end.offset,
                epoch=known.epoch,
                last_sequence=known.last_sequence,
                remembered=True,
            )
        if start.offset >= end.offset:
            return TargetState(log_start=start.offset, log_end=end.offset)
        # The broker has forgotten the producer, or cannot be asked: the last batch of the log says it.
        last = await self._last_batch(node, copy, end.offset)
        if last is None or last.producer_id != copy.producer_id:
            return TargetState(log_start=start.offset, log_end=end.offset, foreign_tail=True)
        return TargetState(
            log_start=start.offset, log_end=end.offset, epoch=last.producer_epoch, last_sequence=last.last_sequence
        )

    async def _last_batch(self, node: int, copy: PartitionCopy, log_end: int) -> BatchHeader | None:
        last = None
        try:
            for header, _at in scan(await self._read_at(node, copy.remote_place, log_end - 1)):
                last = header
        except FormatError:
            return None  # an older message format: not ours
        return last

    async def _read_at(self, node: int, place: Place, offset: int) -> bytes | memoryview:
        """What the target holds from the batch with `offset` on."""
        (fetched,) = await self._target.fetch(
            node, [(place, offset)], isolation=wires.READ_UNCOMMITTED, partition_max_bytes=1 << 16
        )
        if fetched.error_code:
            raise wires.error_for(fetched.error_code)
        return fetched.records

    async def settle(self, copy: PartitionCopy, node: int, state: TargetState, decision: Decision) -> None:
        """Put one copy where it goes on, by way of the target's leader `node`, which was asked.

        Raises `PartitionError` where that cannot be, `TROUBLE` where it cannot be yet.
        """
        match decision:
            case Wait(reason=reason):
                raise NotNow(reason)
            case Lost(reason=reason):
                raise Gap(reason, topic=copy.row.topic, partition=copy.row.partition)
            case Unexplained(epoch=epoch):
                raise NotNow(f"epoch {epoch} is not known yet")
            case Begin():
                await self._begin(copy, node, state, decision)
            case GoOn():
                offset = decision.walk_from
                if decision.walk_records:
                    offset = await walk(self._source, copy, decision.walk_from, decision.walk_records)
                copy.resume_at(
                    offset,
                    epoch=decision.epoch,
                    sequence=decision.sequence,
                    last_downstream=decision.last_downstream,
                    node=node,
                    remembered=state.remembered,
                )

    async def _begin(self, copy: PartitionCopy, node: int, state: TargetState, decision: Begin) -> None:
        start = await self._first_offset(copy.place) if decision.start is None else decision.start
        announcement = await self._announce(
            copy.place,
            Announcement(epoch=decision.epoch, start=start, downstream=state.log_end, reason=decision.reason),
        )
        copy.announced[decision.epoch] = announcement
        copy.resume_at(
            announcement.start,
            epoch=decision.epoch,
            sequence=0,
            last_downstream=announcement.downstream - 1,
            node=node,
            remembered=False,
        )
        copy.written = copy.acked  # nothing was copied yet that the progress topic should hear of

    async def _first_offset(self, place: Place) -> int:
        """Where a partition without progress begins."""
        for at in (self._start_at, wires.LATEST):
            node = leader_of(self._source, place)
            # Committed, or the records of a transaction that is open now would be left out by `latest`.
            found = (await self._source.offsets(node, [place], at=at, isolation=wires.READ_COMMITTED))[place]
            if found.error_code:
                raise wires.error_for(found.error_code)
            if found.offset >= 0:
                return found.offset
        raise NotNow(f"{place[0]}-{place[1]} has no end at the moment")

    async def _announce(self, place: Place, announcement: Announcement) -> Announcement:
        """Announce an epoch and return the announcement that holds.

        The record is itself a compare-and-append: whoever announces the same epoch second is acknowledged with the
        offset of the first announcement, which is then read. So racing writers agree on one start.
        """
        topic, partition = place
        key = SourcePartition(self._alias, topic, partition).announcement_key(announcement.epoch)
        count = self._target.partition_count(self._journal_topic)
        if count == 0:
            raise NotNow(f"there is no topic {self._journal_topic} yet")
        journal = (self._journal_topic, (murmur2(key) & 0x7FFFFFFF) % count)
        producer = announcer_id(self._source_id, topic, partition, announcement.epoch)
        builder = DefaultRecordBatchBuilder(2, 0, 0, producer, 0, 0, 1 << 20)
        builder.append(0, timestamp=int(time.time() * 1000), key=key, value=announcement.to_bytes(), headers=[])
        node = leader_of(self._target, journal)
        (written,) = await self._target.append(
            node, [(journal, bytes(builder.build()))], timeout_ms=_ANNOUNCE_TIMEOUT_MS
        )
        if written.error_code:
            raise wires.error_for(written.error_code)
        records = await self._read_at(node, journal, written.base_offset)
        for header, at in scan(records):
            if header.producer_id == producer:
                for record in DefaultRecordBatch(bytes(records[at : at + header.size_bytes])):
                    said = parse(record.key, record.value)
                    if said is not None and isinstance(said[1], Announcement):
                        return said[1]
        raise NotNow(f"the announcement of epoch {announcement.epoch} could not be read back")


def _decide(copy: PartitionCopy, state: TargetState) -> Decision:
    return decide(progress=copy.known_progress, announced=copy.announced, target=state)
