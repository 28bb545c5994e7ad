"""Finds where each partition's copy goes on: asks the target, decides, walks the source (design, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES, FormatError, scan
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of
from mirrorless.copy.partition.state import cut_at, ends_before
from mirrorless.copy.progress.epoch_kind import LEFT_OUT_TEXT, EpochKind, kind_of_gap, text_of_gap
from mirrorless.copy.progress.records import Announcement, LeaveOut
from mirrorless.copy.resume.decision import Continue, Decision, Lost, RemoteLogState, Start, Unexplained, Wait, decide
from mirrorless.copy.resume.source_walk import SourceWalk, count, find, walk
from mirrorless.copy.resume.target_logs import states_of
from mirrorless.errors import Gap, GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import cluster_client as wires
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.progress.records import Known
    from mirrorless.copy.resume.epochs import Epochs
    from mirrorless.protocol.cluster_client import ClusterClient


class PositionResolver:
    """Resumes partitions of one flow.

    `reread` reads the progress topic to its end. It blocks the event loop, and is asked only where what the driver knew
    does not explain what is found. `left_out` hears of records before they are left out, and says whether it wrote them
    down.
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        target: ClusterClient,
        epochs: Epochs,
        reread: Callable[[], Mapping[Place, Known]],
        left_out: Callable[[PartitionCopy, LeaveOut], bool],
    ) -> None:
        self._source = source
        self._target = target
        self._epochs = epochs
        self._reread = reread
        self._left_out = left_out

    async def decisions(
        self, node: int, copies: Sequence[PartitionCopy]
    ) -> dict[PartitionCopy, tuple[RemoteLogState, Decision] | BaseException]:
        """Ask the target's leader `node` about `copies`, a few requests for all, and decide for each how it goes on.

        A copy that cannot be decided on has its error instead; raises `TROUBLE` and kafka-python's errors where the
        leader does not answer at all.
        """
        if suspicious := [copy for copy in copies if copy.suspected is not None]:
            # Before the target is asked: what it then holds is never behind what was read.
            now_known = self._reread()
            for copy in suspicious:
                copy.learn(now_known.get(copy.place))
        found: dict[PartitionCopy, tuple[RemoteLogState, Decision] | BaseException] = {}
        for copy, state in (await states_of(self._target, node, copies)).items():
            if isinstance(state, RemoteLogState):
                found[copy] = state, decide(progress=copy.known_progress, announced=copy.announced, target=state)
            else:
                found[copy] = state
        return found

    async def settle(self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision) -> None:
        """Put one copy where it goes on, by way of the target's leader `node`, which was asked.

        Raises `PartitionError` where that cannot be, `TROUBLE` where it cannot be yet.
        """
        self._refuse_halted(copy)
        if isinstance(copy.detour, Gap):
            await self._pass_over(copy, node, state, decision, copy.detour)
        copy.source_id = self._source.topic_id(copy.row.topic)
        copy.remote_id = self._target.topic_id(copy.row.remote_topic)
        match decision:
            case Wait(reason=reason):
                raise NotNow(reason)
            case Lost(reason=reason, kind=kind, records=records):
                raise copy.gap(reason, kind, records=records)
            case Unexplained(epoch=epoch):
                reason = (
                    f"the target holds records of epoch {epoch}, which the progress topic does not announce; the topic "
                    "was probably deleted, or emptied by retention (its cleanup.policy must be compact)"
                )
                raise copy.gap(reason, GapKind.UNEXPLAINED)
            case Start():
                await self._begin(copy, node, state, decision)
            case Continue():
                await self._go_on(copy, node, state, decision)

    def _refuse_halted(self, copy: PartitionCopy) -> None:
        """Raise the gap at which this incarnation halted before, even if it could not be seen again."""
        if copy.detour is None and (halt := copy.halted_at) is not None:
            copy.suspected = copy.gap(halt.reason, halt.kind, offset=halt.offset, records=halt.records)
            raise copy.suspected

    async def _begin(self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Start) -> None:
        """Begin an epoch where it was announced, though nothing was copied and the source has moved on since."""
        start = decision.start
        if copy.known_progress is None:
            self._refuse_another_topic(copy, copy.newest_epoch)
        if (known := copy.announced.get(decision.epoch)) is not None:
            self._refuse_another_topic(copy, decision.epoch)
            start = known.start
        if start is None:
            start_at = wires.EARLIEST if copy.row.is_new else None
            first = await self._epochs.first_offset(copy.place, at=start_at)
        else:
            first = start
        if start is not None and start > copy.source_end:
            await self._look_at_end(copy, start, None)
        holds = await self._epochs.begin(
            copy,
            known
            or Announcement(
                epoch=decision.epoch,
                start=first,
                downstream=state.log_end,
                kind=decision.kind,
                reason=decision.reason,
                topic_id=self._epochs.topic_id(copy),
            ),
        )
        self._refuse_another_topic(copy, holds.epoch)
        copy.resume_at(
            holds.start,
            epoch=holds.epoch,
            sequence=0,
            last_downstream=holds.downstream - 1,
            node=node,
        )
        copy.written = copy.acked  # nothing was copied yet that the progress topic should hear of

    async def _go_on(self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue) -> None:
        offset, leader_epoch = await self._reached(copy, node, state, decision)
        announced = copy.announced.get(decision.epoch)
        begins = state.epoch != decision.epoch and decision.sequence == decision.walk_records == 0
        if begins and announced is not None and announced.after is None and state.log_end > announced.downstream:
            # A reset beside a copy that went on for a while: offsets are translated by where this epoch really begins.
            raise await self._turn(copy, state, start=offset, kind=announced.kind, reason=announced.reason)
        if isinstance(copy.detour, LeaveOut):
            await self._leave_out(copy, state, copy.detour, offset)
        copy.resume_at(
            offset,
            epoch=decision.epoch,
            sequence=decision.sequence,
            last_downstream=decision.last_downstream,
            node=node,
            leader_epoch=leader_epoch,
        )

    async def _reached(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue
    ) -> tuple[int, int | None]:
        """Upstream offset behind what the target holds, and the source's leader epoch before it, if it is known."""
        self._refuse_another_topic(copy, decision.epoch)
        progress = copy.known_progress
        offset, leader_epoch = decision.walk_from, None
        # A new epoch does not know it: it may begin where the source's log was cut.
        if progress is not None and progress.epoch == decision.epoch and progress.last_offset + 1 == offset:
            leader_epoch = progress.leader_epoch
        if decision.walk_records:
            walked = await walk(self._source, copy, offset, decision.walk_records, leader_epoch=leader_epoch)
            await self._compare(copy, node, state, decision, walked)
            offset, leader_epoch = walked.offset, None if walked.leader_epoch < 0 else walked.leader_epoch
        if offset > copy.source_end:
            await self._look_at_end(copy, offset, leader_epoch)
        return offset, leader_epoch

    async def _look_at_end(self, copy: PartitionCopy, offset: int, leader_epoch: int | None) -> None:
        """Raise `Gap` where the source does not reach to `offset`: with nothing to fetch, nobody would notice."""
        node = leader_of(self._source, copy.place)
        wanted = copy.place, offset, -1 if leader_epoch is None else leader_epoch
        fetched = await self._source.fetch_one(node, wanted, partition_max_bytes=1)
        if fetched.diverges_at is not None:
            raise cut_at(copy, min(fetched.diverges_at, offset))
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            end = (await self._source.offsets(node, [copy.place], at=wires.LATEST))[copy.place]
            if not end.error_code and end.offset < offset:
                raise ends_before(copy, end.offset, offset)
        if fetched.error_code:
            raise error_for(fetched.error_code)

    def _refuse_another_topic(self, copy: PartitionCopy, epoch: int) -> None:
        if (gap := self._another(copy, epoch)) is not None:
            raise gap

    def _another(self, copy: PartitionCopy, epoch: int) -> Gap | None:
        """The gap of a source topic that is another one than the one that an epoch was announced for."""
        announced = copy.announced.get(epoch)
        was = None if announced is None else announced.topic_id
        is_now = self._epochs.topic_id(copy)
        if was is None or is_now is None or was == is_now:
            return None
        reason = f"this topic has the id {is_now}; the one that was copied had the id {was}"
        return copy.gap(reason, GapKind.CREATED_AGAIN)

    async def _compare(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue, walked: SourceWalk
    ) -> None:
        """Hold the target's last record against the one that the walk ended at; by count alone they are the same.

        They are not where the cleaner took records out of the stretch that was counted: then the copy goes on behind
        the target's last record, if the source still has it, or at the progress, which repeats what is behind it.
        """
        record = await self._record_of(node, copy, decision)
        if record is None or record == walked.record:
            return
        start = decision.walk_from
        if not walked.cleaned:
            reason = "the target's last record is not the one that the source has in its place: its log was rewritten"
            raise copy.gap(reason, GapKind.TRUNCATED, offset=start)
        behind = await find(self._source, copy, record, start=start, end=walked.offset)
        reason = "the source was cleaned in between; the copy goes on behind the target's last record"
        if behind is None:
            behind = start
            repeated = await count(self._source, copy, start=start, end=walked.offset)
            reason = f"the source was cleaned in between; {repeated} records are copied again"
        raise await self._turn(copy, state, start=behind, kind=EpochKind.SOURCE_CLEANED, reason=reason)

    async def _record_of(self, node: int, copy: PartitionCopy, decision: Continue) -> bytes | None:
        """The target's record before the one that goes next, without its deltas; None if it is not there."""
        try:
            records = await self._target.read_at(node, copy.remote_place, decision.last_downstream)
        except kafka_errors.OffsetOutOfRangeError:
            return None  # retention took it
        try:
            for header, at in scan(records):
                number = (decision.sequence - 1 - header.base_sequence) % SEQUENCES
                ours = header.producer_id == copy.producer_id and header.producer_epoch == decision.epoch
                if ours and number < header.record_count:
                    return records_of(header, body_of(records, at, header)).rests[number]
        except FormatError as error:
            where = f"{copy.row.remote_topic}-{copy.row.partition} at offset {decision.last_downstream}"
            raise copy.error_at_append(f"the target's own {where} cannot be read: {error}") from None
        return None

    async def _leave_out(self, copy: PartitionCopy, state: RemoteLogState, left_out: LeaveOut, offset: int) -> None:
        """Turn to an epoch behind what cannot go over, once all that comes before it is on the target."""
        before = left_out.offset - offset
        if before < 0 or (before > 0 and await count(self._source, copy, start=offset, end=left_out.offset)):
            copy.detour = None
            return  # the target moved on, or lacks something yet; it will be met again
        if not self._left_out(copy, left_out):
            raise NotNow(f"{left_out.reason}; where it lies could not be written down yet")
        last = left_out.next_offset - 1
        which = f"{left_out.offset}" if last == left_out.offset else f"{left_out.offset} to {last}"
        reason = f"{LEFT_OUT_TEXT}{which}, {left_out.size_bytes} bytes: {left_out.reason}"
        turned = await self._turn(copy, state, start=left_out.next_offset, kind=EpochKind.LEFT_OUT, reason=reason)
        copy.stats.left_out += 1
        raise turned

    async def _pass_over(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision, gap: Gap
    ) -> None:
        """Turn to an epoch behind a gap, as it is now: it may be remembered from long ago."""
        if copy.newest_epoch != copy.detour_from:
            copy.detour = copy.suspected = None
            raise NotNow(f"epoch {copy.newest_epoch} has passed it over: {gap.reason}")
        first_left, progress = self._epochs.first_left, copy.known_progress
        again: int | None = None
        match decision:
            case Wait(reason=reason):
                raise NotNow(reason)
            case Lost(kind=GapKind.UNEXPLAINED) | Unexplained():
                return  # nothing says where the copy is: that is told, and not passed over
            case Lost(reason=reason, kind=kind, records=records):
                own = progress.epoch if progress is not None and progress.epoch is not None else copy.newest_epoch
                now = self._another(copy, own) or copy.gap(reason, kind, records=records)
                start = await first_left(copy, now)
                if gap.kind is GapKind.TRUNCATED:
                    start = min(start, await first_left(copy, gap))
                gap = now
            case Continue() if gap.kind is GapKind.TARGET_LOST:
                again, _ = await self._reached(copy, node, state, decision)
            case Continue(epoch=epoch) | Start(epoch=epoch):
                announced = copy.announced.get(epoch)
                another = self._another(copy, epoch if announced or progress is not None else copy.newest_epoch)
                if another is None and announced is not None and gap.kind is GapKind.TARGET_LOST:
                    again = announced.start
                else:
                    gap = another or gap
                    start = await first_left(copy, gap)
        if again is not None:
            reason = f"{text_of_gap(gap.kind)}: {gap.reason}; it has them again, and the copy goes on at {again}"
            raise await self._turn(copy, state, start=again, kind=kind_of_gap(gap.kind), reason=reason)
        reason = f"{text_of_gap(gap.kind)}: {gap.reason}; the copy goes on at {start}"
        turned = await self._turn(copy, state, start=start, kind=kind_of_gap(gap.kind), reason=reason)
        copy.stats.gaps += 1
        raise turned

    async def _turn(
        self, copy: PartitionCopy, state: RemoteLogState, *, start: int, kind: EpochKind, reason: str
    ) -> NotNow:
        """Announce an epoch; the error has everything asked again, so that nobody begins it who should not."""
        announced = await self._epochs.turn(copy, state, start=start, kind=kind, reason=reason)
        copy.detour = copy.suspected = None
        topic, partition = copy.place
        copy.stats.events.append(f"{topic}-{partition}: epoch {announced.epoch}: {announced.reason}")
        return NotNow(f"epoch {announced.epoch} begins at {announced.start}")
