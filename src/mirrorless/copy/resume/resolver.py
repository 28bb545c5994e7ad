"""Finds where each partition's copy continues: asks the target, decides, and walks the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.copy.partition.errors import another_topic, cut_at, ends_before, unannounced
from mirrorless.copy.progress.epoch_kind import LEFT_OUT_TEXT, EpochKind, kind_of_gap, text_of_gap
from mirrorless.copy.progress.records import Announcement, LeaveOut
from mirrorless.copy.resume.decision import Continue, Decision, Lost, RemoteLogState, Start, Unexplained, Wait, decide
from mirrorless.copy.resume.source_walk import SourceWalk, count, find, walk
from mirrorless.copy.resume.target_logs import states_of
from mirrorless.copy.resume.target_record import record_before
from mirrorless.errors import Gap, GapKind
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.progress.records import Known
    from mirrorless.copy.resume.epochs import Epochs
    from mirrorless.protocol.cluster_client import ClusterClient


class AskAgain(NamedTuple):
    """The target has to be asked again before the copy can continue, and why.

    So it is after an epoch was announced: it is void where the target has moved on from what was known.
    """

    reason: str


async def learn_ids(source: ClusterClient, suspicious: Sequence[PartitionCopy]) -> None:
    """Learn the ids of source topics that seem to have been recreated.

    An id that this process had learned before another one announced an epoch of a newer topic differs too.
    """
    if topics := {copy.row.topic for copy in suspicious if _is_of_another_topic(copy.suspected)}:
        await source.learn(topics)


def _is_of_another_topic(gap: Gap | None) -> bool:
    return gap is not None and gap.kind is GapKind.CREATED_AGAIN


class _Position(NamedTuple):
    """A source offset, and the leader epoch of the record before it, None if that is not known."""

    offset: int
    leader_epoch: int | None


class PositionResolver:
    """Resumes partitions of one flow.

    `reread` reads the progress topic to its end. It blocks the event loop, and is used only where what the lease's plan
    knew does not explain what is found. `left_out` writes down records before they are left out, and returns whether it
    could.
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        target: ClusterClient,
        epochs: Epochs,
        reread: Callable[[], Mapping[TopicPartition, Known]],
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
        """Ask the target's leader `node` about `copies`, with a few requests for all, and decide how each continues.

        A copy that cannot be decided on has its error instead. Raises `TROUBLE` and kafka-python's errors where the
        leader does not answer at all.
        """
        if suspicious := [copy for copy in copies if copy.suspected is not None]:
            # Before the target is asked: then it has at least what the progress says.
            now_known = self._reread()
            for copy in suspicious:
                copy.learn(now_known.get(copy.place))
            await learn_ids(self._source, suspicious)
        found: dict[PartitionCopy, tuple[RemoteLogState, Decision] | BaseException] = {}
        for copy, state in (await states_of(self._target, node, copies)).items():
            if isinstance(state, RemoteLogState):
                decision = self._recreated(copy) or decide(
                    progress=copy.known_progress, announced=copy.announced, target=state
                )
                found[copy] = state, decision
            else:
                found[copy] = state
        return found

    def _recreated(self, copy: PartitionCopy) -> Lost | None:
        """Return the gap of a remote topic that is shared with other producers, and not the one that was copied to.

        Elsewhere its length shows it; here others may have filled it.
        """
        newest, progress = copy.announced.get(copy.newest_epoch), copy.known_progress
        now = self._target.topic_id(copy.row.remote_topic)
        if not copy.shares_target or newest is None or newest.remote_id is None or now is None:
            return None
        if newest.remote_id == str(now) or progress is None or progress.last_offset < newest.start:
            return None
        return Lost(
            reason=f"the remote topic was deleted and recreated: its id is {now}, the one that was copied to had the "
            f"id {newest.remote_id}",
            kind=GapKind.TARGET_LOST,
            records=progress.last_offset + 1,  # at most, so that the copy begins again at the first one that is left
        )

    async def settle(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision
    ) -> AskAgain | None:
        """Resume one copy where `decision` says, by the target's leader `node`, which was asked; None if that is done.

        Raises `PartitionError` where it cannot continue, `TROUBLE` where it cannot yet.
        """
        self._refuse_halted(copy)
        if isinstance(copy.skip, Gap) and (again := await self._skip_gap(copy, node, state, decision, copy.skip)):
            return again
        copy.bind_topics(self._source.topic_id(copy.row.topic), self._target.topic_id(copy.row.remote_topic))
        match decision:
            case Wait(reason=reason):
                return AskAgain(reason)
            case Lost(reason=reason, kind=kind, records=records):
                raise copy.gap(reason, kind, records=records)
            case Unexplained(epoch=epoch):
                raise unannounced(copy, epoch)
            case Start():
                await self._start(copy, node, state, decision)
                return None
            case Continue():
                return await self._continue(copy, node, state, decision)

    def _refuse_halted(self, copy: PartitionCopy) -> None:
        """Raise the gap at which this epoch halted before, even if it could not be seen again."""
        if copy.skip is None and (halt := copy.halted_at) is not None:
            gap = copy.gap(halt.reason, halt.kind, offset=halt.offset, records=halt.records)
            copy.suspect(gap)
            raise gap

    async def _start(self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Start) -> None:
        """Begin an epoch where it was announced, even if the source's log starts later by now."""
        start = decision.start
        if copy.known_progress is None:
            self._refuse_another_topic(copy, copy.newest_epoch)
        if (known := copy.announced.get(decision.epoch)) is not None:
            self._refuse_another_topic(copy, decision.epoch)
            start = known.start
        source_end: int | None = None
        if start is None:
            start_at = cluster_client.EARLIEST if copy.row.is_new else None
            first, source_end = await self._epochs.start_and_end(copy, at=start_at)
        else:
            first = start
        if start is not None and start > copy.source_end:
            await self._check_source_end(copy, start, None)
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
                source_end=source_end,
            ),
        )
        self._refuse_another_topic(copy, holds.epoch)
        copy.resume_at(
            holds.start,
            epoch=holds.epoch,
            sequence=0,
            last_downstream=holds.downstream - 1,
            node=node,
            is_written=True,  # nothing was copied yet
        )

    async def _continue(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue
    ) -> AskAgain | None:
        position = await self._position(copy, node, state, decision)
        if isinstance(position, AskAgain):
            return position
        announced = copy.announced.get(decision.epoch)
        begins = state.epoch != decision.epoch and decision.sequence == decision.walk_records == 0
        if (
            begins
            and announced is not None
            and announced.after is None
            and state.holds_records_from(announced.downstream)
        ):
            # A reset while a copy ran: offsets are translated by where this epoch really begins on the target.
            return await self._next_epoch(
                copy, state, start=position.offset, kind=announced.kind, reason=announced.reason
            )
        if isinstance(copy.skip, LeaveOut) and (again := await self._leave_out(copy, state, copy.skip, position)):
            return again
        copy.resume_at(
            position.offset,
            epoch=decision.epoch,
            sequence=decision.sequence,
            last_downstream=decision.last_downstream,
            node=node,
            leader_epoch=position.leader_epoch,
        )
        return None

    async def _position(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue
    ) -> _Position | AskAgain:
        """Return the source position after what the target holds."""
        self._refuse_another_topic(copy, decision.epoch)
        progress = copy.known_progress
        offset, leader_epoch = decision.walk_from, None
        # A new epoch has none: it may begin where the source's log was truncated.
        if progress is not None and progress.epoch == decision.epoch and progress.last_offset + 1 == offset:
            leader_epoch = progress.leader_epoch
        if decision.walk_records:
            try:
                walked = await walk(self._source, copy, offset, decision.walk_records, leader_epoch=leader_epoch)
            except Gap as gap:
                if (
                    gap.kind is GapKind.RETENTION
                    and (after := await self._after_last(copy, node, decision)) is not None
                ):
                    return _Position(after, None)
                raise
            if (again := await self._compare(copy, node, state, decision, walked)) is not None:
                return again
            offset, leader_epoch = walked.offset, None if walked.leader_epoch < 0 else walked.leader_epoch
        if offset > copy.source_end:
            await self._check_source_end(copy, offset, leader_epoch)
        return _Position(offset, leader_epoch)

    async def _check_source_end(self, copy: PartitionCopy, offset: int, leader_epoch: int | None) -> None:
        """Raise `Gap` where the source ends before `offset`: with nothing to fetch, it would not be noticed."""
        node = leader_of(self._source, copy.place)
        wanted = copy.place, offset, -1 if leader_epoch is None else leader_epoch
        fetched = await self._source.fetch_one(node, wanted, partition_max_bytes=1)
        if fetched.diverges_at is not None:
            raise cut_at(copy, min(fetched.diverges_at, offset))
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            end = (await self._source.offsets(node, [copy.place], at=cluster_client.LATEST))[copy.place]
            if not end.error_code and end.offset < offset:
                raise ends_before(copy, end.offset, offset)
        if fetched.error_code:
            raise error_for(fetched.error_code)

    def _refuse_another_topic(self, copy: PartitionCopy, epoch: int) -> None:
        if (gap := self._another_topic(copy, epoch)) is not None:
            raise gap

    def _another_topic(self, copy: PartitionCopy, epoch: int) -> Gap | None:
        """Return the gap of a source topic with another id than that which an epoch was announced for."""
        return another_topic(copy, epoch, self._epochs.topic_id(copy))

    async def _compare(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue, walked: SourceWalk
    ) -> AskAgain | None:
        """Compare the target's last record with the one that the walk ended at; None if the copy can continue there.

        They differ where log compaction removed records that the walk should have counted. Then the next epoch begins
        after the target's last record, if the source still has it, else at the progress, which repeats some records.
        """
        record = await record_before(self._target, node, copy, decision)
        if record is None or record == walked.record:
            return None
        start = decision.walk_from
        if not walked.cleaned:
            reason = "the target's last record is not the one that the source has in its place: its log was rewritten"
            raise copy.gap(reason, GapKind.TRUNCATED, offset=start)
        after = await find(self._source, copy, record, start=start, end=walked.offset)
        reason = "the source was cleaned in between; the copy continues after the target's last record"
        if after is None:
            after = start
            repeated = await count(self._source, copy, start=start, end=walked.offset)
            reason = f"the source was cleaned in between; {repeated} records are copied again"
        return await self._next_epoch(copy, state, start=after, kind=EpochKind.SOURCE_CLEANED, reason=reason)

    async def _after_last(self, copy: PartitionCopy, node: int, decision: Continue) -> int | None:
        """Return the source offset after the target's last record, where retention deleted copied records before it.

        So the records need not be counted. None if the source does not have that record any more, of which nothing is
        left that was copied then, or has several that are alike.
        """
        record = await record_before(self._target, node, copy, decision)
        if record is None:
            return None
        start = await self._epochs.first_offset(copy.place, at=cluster_client.EARLIEST)
        end = await self._epochs.first_offset(copy.place, at=cluster_client.LATEST)
        most = decision.walk_records
        after = await find(self._source, copy, record, start=start, end=end, most=most)
        if after is None or await find(self._source, copy, record, start=after, end=end, most=most) is not None:
            return None
        return after

    async def _leave_out(
        self, copy: PartitionCopy, state: RemoteLogState, left_out: LeaveOut, position: _Position
    ) -> AskAgain | None:
        """Begin an epoch after records that cannot be copied, once the target holds everything before them."""
        start, end = position.offset, left_out.offset
        if end < start or (end > start and await count(self._source, copy, start=start, end=end)):
            copy.end_skip(keep_suspicion=True)
            return None  # the target moved on, or lacks something yet; then they are found again
        if not self._left_out(copy, left_out):
            raise NotNow(f"{left_out.reason}; the records to leave out could not be written down yet")
        reason = f"{LEFT_OUT_TEXT}{left_out.text}"
        again = await self._next_epoch(copy, state, start=left_out.next_offset, kind=EpochKind.LEFT_OUT, reason=reason)
        copy.stats.passed_left_out()
        return again

    async def _skip_gap(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision, gap: Gap
    ) -> AskAgain | None:
        """Begin an epoch after a gap, as it is by now; None if the position is unknown, which is no gap to skip."""
        if copy.newest_epoch != copy.skip_from:
            copy.end_skip()
            return AskAgain(f"epoch {copy.newest_epoch} begins after the gap: {gap.reason}")
        first_left, progress = self._epochs.first_left, copy.known_progress
        returned_at: int | None = None
        match decision:
            case Wait(reason=reason):
                return AskAgain(reason)
            case Lost(kind=GapKind.UNEXPLAINED) | Unexplained():
                return None
            case Lost(reason=reason, kind=kind, records=records):
                own = progress.epoch if progress is not None and progress.epoch is not None else copy.newest_epoch
                now = self._another_topic(copy, own) or copy.gap(reason, kind, records=records)
                start = await first_left(copy, now)
                if gap.kind is GapKind.TRUNCATED:
                    start = min(start, await first_left(copy, gap))
                gap = now
            case Continue() if gap.kind is GapKind.TARGET_LOST:
                position = await self._position(copy, node, state, decision)
                if isinstance(position, AskAgain):
                    return position
                returned_at = position.offset
            case Continue(epoch=epoch) | Start(epoch=epoch):
                announced = copy.announced.get(epoch)
                another = self._another_topic(copy, epoch if announced or progress is not None else copy.newest_epoch)
                if another is None and announced is not None and gap.kind is GapKind.TARGET_LOST:
                    returned_at = announced.start
                elif another is None and gap.kind is GapKind.CREATED_AGAIN:
                    copy.end_skip()
                    return AskAgain(
                        "the source topic has the id that was copied: this process had learned an older one"
                    )
                else:
                    gap = another or gap
                    start = await first_left(copy, gap)
        epoch_kind, text = kind_of_gap(gap.kind), f"{text_of_gap(gap.kind)}: {gap.reason}"
        if returned_at is not None:
            reason = f"{text}; it has them again, and the copy continues at {returned_at}"
            return await self._next_epoch(copy, state, start=returned_at, kind=epoch_kind, reason=reason)
        reason = f"{text}; the copy continues at {start}"
        again = await self._next_epoch(copy, state, start=start, kind=epoch_kind, reason=reason)
        copy.stats.passed_gap()
        return again

    async def _next_epoch(
        self, copy: PartitionCopy, state: RemoteLogState, *, start: int, kind: EpochKind, reason: str
    ) -> AskAgain:
        """Announce the epoch that begins at `start`."""
        announced = await self._epochs.announce_next(copy, state, start=start, kind=kind, reason=reason)
        copy.end_skip()
        topic, partition = copy.place
        copy.stats.note_event(f"{topic}-{partition}: epoch {announced.epoch}: {announced.reason}")
        return AskAgain(f"epoch {announced.epoch} begins at {announced.start}")
