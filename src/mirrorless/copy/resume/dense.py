"""Remote partitions with dense offsets: each record takes the next offset of the remote log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import SEQUENCES, FormatError, scan
from mirrorless.batches.rebuild import records_of
from mirrorless.batches.stamp import body_of
from mirrorless.copy.partition.errors import append_error, cut_at, ends_before
from mirrorless.copy.resume.decision import Continue, Lost, Start, decide
from mirrorless.copy.resume.resolver import AfterGap, AskAgain, NextEpoch, OffsetRule, ResumePosition
from mirrorless.copy.resume.source_walk import count, find, find_only, walk
from mirrorless.errors import Gap, GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import Decision, RemoteLogState
    from mirrorless.copy.resume.epochs import Epochs
    from mirrorless.copy.resume.source_walk import SourceWalk
    from mirrorless.progress.records import LeaveOut
    from mirrorless.protocol.cluster_client import ClusterClient


class TargetRecord(NamedTuple):
    """A record: its timestamp, in ms since the epoch, and what follows its deltas."""

    timestamp_ms: int
    rest: bytes


class DenseOffsets(OffsetRule):
    """Finds a position by the progress and by how many records the target holds after it."""

    def __init__(self, *, source: ClusterClient, target: ClusterClient, epochs: Epochs) -> None:
        self._source = source
        self._target = target
        self._epochs = epochs

    def decide(self, copy: PartitionCopy, state: RemoteLogState) -> Decision:
        """Decide by the progress, the epochs and the producer's state on the target."""
        return self._recreated(copy) or decide(progress=copy.known_progress, announced=copy.announced, target=state)

    def _recreated(self, copy: PartitionCopy) -> Lost | None:
        """Return the gap of a remote topic that is shared with other producers, and not the one that was copied to.

        Elsewhere its length shows it; here others may have filled it.
        """
        newest, progress = copy.announced.get(copy.newest_epoch), copy.known_progress
        if newest is None or not self._is_for_another_topic(copy, newest):
            return None
        if progress is None or progress.last_offset < newest.start:
            return None
        now = self._target.topic_id(copy.row.remote_topic)
        return Lost(
            reason=f"the remote topic was deleted and recreated: its id is {now}, the one that was copied to had the "
            f"id {newest.remote_id}",
            kind=GapKind.TARGET_LOST,
            records=progress.last_offset + 1,  # at most, so that the copy begins again at the first one that is left
        )

    def _is_for_another_topic(self, copy: PartitionCopy, announced: Announcement) -> bool:
        """Whether an epoch was announced for a remote topic, shared with other producers, that was recreated since."""
        now = self._target.topic_id(copy.row.remote_topic)
        return copy.shares_target and now is not None and announced.remote_id not in (None, str(now))

    async def position(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision
    ) -> ResumePosition | NextEpoch:
        """Return the source position after what the target holds, or that of an epoch that begins."""
        if isinstance(decision, Start):
            return await self._start(copy, state, decision)
        assert isinstance(decision, Continue)
        position = await self._continue(copy, node, decision)
        announced = copy.announced.get(decision.epoch)
        begins = state.epoch != decision.epoch and decision.sequence == decision.walk_records == 0
        if not begins or announced is None or not isinstance(position, ResumePosition):
            return position
        is_late = announced.after is None and state.holds_records_from(announced.downstream)
        if is_late or self._is_for_another_topic(copy, announced):
            # A reset while a copy ran: offsets are translated by where this epoch really begins on the target. And by
            # the id of the topic that an epoch was announced for, a later resume notices that it was recreated.
            return NextEpoch(position.offset, announced.kind, announced.reason)
        return position

    async def _start(self, copy: PartitionCopy, state: RemoteLogState, decision: Start) -> ResumePosition | NextEpoch:
        """Begin an epoch where it was announced, even if the source's log starts later by now."""
        known = copy.announced.get(decision.epoch)
        if known is not None and self._is_for_another_topic(copy, known):
            return NextEpoch(known.start, known.kind, known.reason)
        start = decision.start if known is None else known.start
        source_end: int | None = None
        if start is None:
            start_at = cluster_client.EARLIEST if copy.row.is_new else None
            first, source_end = await self._epochs.start_and_end(copy, at=start_at)
        else:
            first = start
            if start > copy.source_end:
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
        self._epochs.refuse_another_topic(copy, holds.epoch)
        return ResumePosition(
            holds.start, holds.epoch, sequence=0, last_downstream=holds.downstream - 1, is_written=True
        )

    async def _continue(self, copy: PartitionCopy, node: int, decision: Continue) -> ResumePosition | NextEpoch:
        progress = copy.known_progress
        offset, leader_epoch = decision.walk_from, None
        # A new epoch has none: it may begin where the source's log was truncated.
        if progress is not None and progress.epoch == decision.epoch and progress.last_offset + 1 == offset:
            leader_epoch = progress.leader_epoch
        if decision.walk_records:
            try:
                walked = await walk(self._source, copy, offset, decision.walk_records, leader_epoch=leader_epoch)
            except Gap as gap:
                if gap.kind is not GapKind.RETENTION:
                    raise
                if (after := await self._after_last(copy, node, decision)) is None:
                    raise
                return _position(after, decision)
            if walked.missing:
                raise await self._truncated(copy, node, decision, walked)
            if (elsewhere := await self._compare(copy, node, decision, walked)) is not None:
                return elsewhere
            offset, leader_epoch = walked.offset, None if walked.leader_epoch < 0 else walked.leader_epoch
        if offset > copy.source_end:
            await self._check_source_end(copy, offset, leader_epoch)
        return _position(offset, decision, leader_epoch)

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

    async def _truncated(self, copy: PartitionCopy, node: int, decision: Continue, walked: SourceWalk) -> Gap:
        """Return the gap of a source that has fewer records than the target holds: at its end, if they are the same.

        Else it has others in their place, written after it had lost its tail: then the gap is at the progress. Where
        they begin is unknown, and some records before them are copied again.
        """
        kept = replace(
            decision,
            last_downstream=decision.last_downstream - walked.missing,
            sequence=(decision.sequence - walked.missing) % SEQUENCES,
        )
        reason = f"the target holds {walked.missing} records from here on, but the source ends at {walked.offset}"
        if walked.record is not None:
            record = await record_before(self._target, node, copy, kept)
            if record is None or record.rest != walked.record:
                reason += ", and may have others in place of some before them"
                return copy.gap(reason, GapKind.TRUNCATED, offset=decision.walk_from)
        return copy.gap(f"{reason}: it lost them", GapKind.TRUNCATED, offset=walked.offset)

    async def _compare(
        self, copy: PartitionCopy, node: int, decision: Continue, walked: SourceWalk
    ) -> ResumePosition | NextEpoch | None:
        """Compare the target's last record with the one that the walk ended at; None if the copy can continue there.

        They differ where log compaction removed records that the walk should have counted. Then the copy continues
        after the target's last record, if the source still has it: in its epoch, in which another process may be
        appending. Else the next epoch begins at the progress, which repeats some records.
        """
        record = await record_before(self._target, node, copy, decision)
        if record is None or record.rest == walked.record:
            return None
        start = decision.walk_from
        if not walked.cleaned:
            reason = "the target's last record is not the one that the source has in its place: its log was rewritten"
            raise copy.gap(reason, GapKind.TRUNCATED, offset=start)
        after = await find(self._source, copy, record.rest, start=start, end=walked.offset)
        if after is not None:
            copy.stats.note_event(
                f"{copy.row.topic}-{copy.row.partition}: the source was cleaned in between; the copy continues after "
                f"the target's last record, at {after}"
            )
            return _position(after, decision)
        repeated = await count(self._source, copy, start=start, end=walked.offset)
        reason = f"the source was cleaned in between; {repeated} records are copied again"
        return NextEpoch(start, EpochKind.SOURCE_CLEANED, reason)

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
        return await find_only(self._source, copy, record, start=start, end=end, most=decision.walk_records)

    async def holds_all_before(self, copy: PartitionCopy, position: ResumePosition, left_out: LeaveOut) -> bool:
        """Whether no record is between the position and the records that are to be left out."""
        start, end = position.offset, left_out.offset
        return end == start or (end > start and not await count(self._source, copy, start=start, end=end))

    async def after_gap(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision, gap: Gap
    ) -> AfterGap | NextEpoch | AskAgain:
        """Return the first record that is left, or the position if the target has again what it lacked."""
        del state
        first_left, progress, another_topic = self._epochs.first_left, copy.known_progress, self._epochs.another_topic
        if isinstance(decision, Lost):
            own = progress.epoch if progress is not None and progress.epoch is not None else copy.newest_epoch
            now = another_topic(copy, own) or copy.gap(decision.reason, decision.kind, records=decision.records)
            start = await first_left(copy, now)
            if gap.kind is GapKind.TRUNCATED:
                start = min(start, await first_left(copy, gap))
            return AfterGap(start, now)
        assert isinstance(decision, Continue | Start)
        if isinstance(decision, Continue) and gap.kind is GapKind.TARGET_LOST:
            self._epochs.refuse_another_topic(copy, decision.epoch)
            position = await self._continue(copy, node, decision)
            return AfterGap(position.offset, gap, returned=True) if isinstance(position, ResumePosition) else position
        if gap.kind is GapKind.RETENTION and await self._has_what_is_left(copy, node, decision):
            copy.end_skip()
            return AskAgain(f"another run has copied what the source has left: {gap.reason}")
        announced = copy.announced.get(decision.epoch)
        known = announced is not None or progress is not None
        another = another_topic(copy, decision.epoch if known else copy.newest_epoch)
        if another is None and announced is not None and gap.kind is GapKind.TARGET_LOST:
            return AfterGap(announced.start, gap, returned=True)
        if another is None and gap.kind is GapKind.CREATED_AGAIN:
            copy.end_skip()
            return AskAgain("the source topic has the id that was copied: this process had learned an older one")
        return AfterGap(await first_left(copy, another or gap), another or gap)

    async def _has_what_is_left(self, copy: PartitionCopy, node: int, decision: Decision) -> bool:
        """Whether the target's last record is one that the source still has: another run appended it after the gap."""
        if not isinstance(decision, Continue) or not decision.walk_records:
            return False
        return await self._after_last(copy, node, decision) is not None

    def downstream(self, start: int) -> None:
        """Return None: an epoch begins at the end of the remote log."""


def _position(offset: int, decision: Continue, leader_epoch: int | None = None) -> ResumePosition:
    return ResumePosition(
        offset,
        decision.epoch,
        sequence=decision.sequence,
        last_downstream=decision.last_downstream,
        leader_epoch=leader_epoch,
    )


async def record_before(
    target: ClusterClient, node: int, copy: PartitionCopy, decision: Continue
) -> TargetRecord | None:
    """Return the target's record before the next one to append; None if it is not there.

    Raises `AppendRefused` where its batch cannot be read.
    """
    try:
        records = await target.read_at(node, copy.remote_place, decision.last_downstream)
    except kafka_errors.OffsetOutOfRangeError:
        return None  # deleted by retention
    try:
        for header, at in scan(records):
            number = (decision.sequence - 1 - header.base_sequence) % SEQUENCES
            ours = header.producer_id == copy.producer_id and header.producer_epoch == decision.epoch
            if ours and number < header.record_count:
                found = records_of(header, body_of(records, at, header))
                return TargetRecord(found.timestamps_ms[number], found.rests[number])
    except FormatError as error:
        where = f"{copy.row.remote_topic}-{copy.row.partition} at offset {decision.last_downstream}"
        raise append_error(copy, f"the batch in {where} of the target cannot be read: {error}") from None
    return None
