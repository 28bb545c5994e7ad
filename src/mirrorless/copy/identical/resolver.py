"""Resumes copies with identical offsets: at the end of the target's log, once it is claimed and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.copy.identical.decision import (
    FROM_SCRATCH,
    Append,
    Begin,
    BeginTurn,
    ExactDecision,
    Fill,
    Forgotten,
    NotIdentical,
    decide_exactly,
)
from mirrorless.copy.identical.reserve import RESERVED_OFFSETS
from mirrorless.copy.identical.seed import holds_only_filler, seed
from mirrorless.copy.identical.source_log import compare_count, compare_records, compare_tail, first_record
from mirrorless.copy.partition.errors import another_topic, append_error, unannounced
from mirrorless.copy.progress.epoch_kind import LEFT_OUT_TEXT, EpochKind, kind_of_gap, text_of_gap
from mirrorless.copy.progress.records import Announcement
from mirrorless.copy.resume.decision import Lost, RemoteLogState, Unexplained, Wait
from mirrorless.copy.resume.epochs import next_epoch
from mirrorless.copy.resume.resolver import AskAgain, learn_ids
from mirrorless.copy.resume.target_logs import states_of
from mirrorless.errors import Gap
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow
from mirrorless.protocol.markers import MARKERS_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.identical.claims import Claims
    from mirrorless.copy.identical.holes import HoleWriter
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.progress.records import Known, LeaveOut
    from mirrorless.copy.resume.epochs import Epochs
    from mirrorless.protocol.cluster_client import ClusterClient

SERVERLESS = "MSK Serverless accepts no transaction markers from clients, which mirrorless.offsets=identical needs"


class ExactResolver:
    """Resumes partitions of one flow; `reread` and `left_out` are as in `PositionResolver`.

    `impossible` is why the target cannot get identical offsets, None if it can.
    """

    def __init__(
        self,
        *,
        source: ClusterClient,
        target: ClusterClient,
        epochs: Epochs,
        claims: Claims,
        holes: HoleWriter,
        reread: Callable[[], Mapping[TopicPartition, Known]],
        left_out: Callable[[PartitionCopy, LeaveOut], bool],
        impossible: str | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._epochs = epochs
        self._claims = claims
        self._holes = holes
        self._reread = reread
        self._left_out = left_out
        self._impossible = impossible
        self._over = False

    def stop(self) -> None:
        """Do not fill any further: the lease is over."""
        self._over = True

    async def decisions(
        self, node: int, copies: Sequence[PartitionCopy]
    ) -> dict[PartitionCopy, tuple[RemoteLogState, ExactDecision] | BaseException]:
        """As `PositionResolver.decisions`."""
        if suspicious := [copy for copy in copies if copy.suspected is not None]:
            now_known = self._reread()
            for copy in suspicious:
                copy.learn(now_known.get(copy.place))
            await learn_ids(self._source, suspicious)
        found: dict[PartitionCopy, tuple[RemoteLogState, ExactDecision] | BaseException] = {}
        for copy, state in (await states_of(self._target, node, copies)).items():
            if isinstance(state, RemoteLogState):
                decision = decide_exactly(progress=copy.known_progress, announced=copy.announced, target=state)
                found[copy] = state, decision
            else:
                found[copy] = state
        return found

    async def settle(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: ExactDecision
    ) -> AskAgain | None:
        """Resume one copy where `decision` says; None if that is done. Raises as `PositionResolver.settle`."""
        if copy.skip is None and (halt := copy.halted_at) is not None:
            gap = copy.gap(halt.reason, halt.kind, offset=halt.offset, records=halt.records)
            copy.suspect(gap)
            raise gap
        if not isinstance(copy.skip, Gap):
            self._refuse(copy, decision)
        if isinstance(decision, Wait):
            return AskAgain(decision.reason)
        if (reason := await self._claims.hold(copy, state.log_end)) is not None:
            return AskAgain(reason)
        copy.bind_topics(self._source.topic_id(copy.row.topic), self._target.topic_id(copy.row.remote_topic))
        if isinstance(copy.skip, Gap):
            return await self._skip_gap(copy, state, decision, copy.skip)
        match decision:
            case Begin():
                return await self._begin(copy)
            case Fill(start=start, log_end=log_end):
                return await self._fill(copy, node, start=start, log_end=log_end)
            case BeginTurn():
                return await self._begin_turn(copy, state)
            case Forgotten(since=since):
                await compare_records(self._source, self._target, copy, start=since, end=state.log_end)
                reason = "the target has forgotten the producer; the copy continues at the end of its log"
                return await self._next_epoch(copy, state, start=state.log_end, kind=EpochKind.FORGOTTEN, reason=reason)
            case Append():
                return await self._append(copy, node, state, decision)
        raise AssertionError(decision)

    def _refuse(self, copy: PartitionCopy, decision: ExactDecision) -> None:
        if self._impossible is not None:
            raise append_error(copy, self._impossible)
        match decision:
            case NotIdentical(reason=reason):
                raise append_error(copy, reason)
            case Lost(reason=reason, kind=kind, records=records):
                raise copy.gap(reason, kind, records=records)
            case Unexplained(epoch=epoch):
                raise unannounced(copy, epoch)
        if (gap := another_topic(copy, copy.newest_epoch, self._epochs.topic_id(copy))) is not None:
            raise gap

    async def _begin(self, copy: PartitionCopy) -> AskAgain:
        first, source_end = await self._epochs.start_and_end(
            copy, at=cluster_client.EARLIEST if copy.row.is_new else None
        )
        start = await first_record(self._source, copy, first)
        if start - first <= MARKERS_AT_ONCE:
            start = first  # so both logs begin at one offset
        announced = await self._epochs.begin(
            copy,
            Announcement(
                epoch=0,
                start=start,
                downstream=start,
                kind=EpochKind.FIRST_COPY,
                reason="first copy",
                topic_id=self._epochs.topic_id(copy),
                source_end=max(source_end, start),
            ),
        )
        return AskAgain(f"the copy begins at offset {announced.start} of both logs")

    async def _begin_turn(self, copy: PartitionCopy, state: RemoteLogState) -> AskAgain:
        """Continue at the end of the remote log: before it both have the same, or nothing that a consumer reads.

        Producers that were late may have taken some of the offsets that are reserved on the source, and the remote log
        may lack records that the opposite flow copied from it: those come back.
        """
        end, turn = state.log_end, copy.announced[copy.newest_epoch].start
        since = max(0, min(end, turn - RESERVED_OFFSETS))
        if not await compare_records(self._source, self._target, copy, start=since, end=end):
            remote = f"{copy.row.remote_topic}-{copy.row.partition}"
            raise NotNow(
                f"{remote} ends at {end}, up to which the source's records are not known: a transaction is open, or "
                f"others have written to {remote} since applications moved"
            )
        reason = "a turn begins at the end of the remote log"
        earliest = await self._epochs.first_offset(copy.place, at=cluster_client.EARLIEST)
        if end < earliest <= turn:
            reason = f"a turn begins at {earliest}: retention has deleted what is reserved before"
            end = earliest
        return await self._next_epoch(copy, state, start=end, kind=EpochKind.FORGOTTEN, reason=reason)

    async def _fill(self, copy: PartitionCopy, node: int, *, start: int, log_end: int) -> AskAgain:
        """Have the target's log end at `start`: by filler where it has nothing else, else by markers."""
        if await holds_only_filler(self._target, node, copy, log_end):
            done = await seed(self._target, node, copy, log_end=log_end, start=start, over=lambda: self._over)
            return AskAgain(f"filled up to offset {start}" if done else f"filling up to offset {start}")
        if copy.announced[copy.newest_epoch].kind in (EpochKind.FIRST_COPY, EpochKind.RESET):
            raise append_error(copy, f"the remote partition has records before offset {start}; {FROM_SCRATCH}")
        await self._holes.write(copy, node, log_end, start)
        return AskAgain(f"markers were written up to offset {start}")

    async def _append(self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Append) -> AskAgain | None:
        offset = decision.offset
        places = [copy.remote_place]
        begins = (await self._target.offsets(node, places, at=cluster_client.EARLIEST))[copy.remote_place]
        if begins.error_code:
            raise error_for(begins.error_code)
        newest = copy.announced[copy.newest_epoch]
        if newest.kind is not EpochKind.LEFT_OUT or newest.start != offset:
            # Otherwise there are markers where the source has what is left out.
            await compare_tail(self._source, self._target, node, copy, log_start=begins.offset, log_end=offset)
        progress = copy.known_progress
        if state.epoch == decision.epoch and progress is not None and progress.epoch == decision.epoch:
            await compare_count(self._source, copy, sequence=decision.sequence, log_end=offset)
        if copy.skip is not None and not isinstance(copy.skip, Gap):
            return await self._leave_out(copy, state, copy.skip, offset)
        leader_epoch = progress.leader_epoch if progress is not None and progress.last_offset + 1 == offset else None
        copy.resume_at(
            offset,
            epoch=decision.epoch,
            sequence=decision.sequence,
            last_downstream=offset - 1,
            node=node,
            leader_epoch=leader_epoch,
        )
        return None

    async def _leave_out(self, copy: PartitionCopy, state: RemoteLogState, left_out: LeaveOut, offset: int) -> AskAgain:
        """Begin an epoch after records that cannot be copied; markers take their offsets."""
        if offset != left_out.offset:
            copy.end_skip(keep_suspicion=True)
            return AskAgain(f"the target's log ends at {offset}, not at what is left out")
        if not self._left_out(copy, left_out):
            raise NotNow(f"{left_out.reason}; the records to leave out could not be written down yet")
        reason = f"{LEFT_OUT_TEXT}{left_out.text}"
        again = await self._next_epoch(copy, state, start=left_out.next_offset, kind=EpochKind.LEFT_OUT, reason=reason)
        copy.stats.passed_left_out()
        return again

    async def _skip_gap(
        self, copy: PartitionCopy, state: RemoteLogState, decision: ExactDecision, gap: Gap
    ) -> AskAgain:
        """Begin an epoch at the source's first offset, or at the target's log end if that is later."""
        if isinstance(decision, NotIdentical | Unexplained):
            copy.end_skip()
            return AskAgain(f"the gap cannot be skipped: {gap.reason}")
        if copy.newest_epoch != copy.skip_from:
            copy.end_skip()
            return AskAgain(f"epoch {copy.newest_epoch} begins after the gap: {gap.reason}")
        earliest = await self._epochs.first_offset(copy.place, at=cluster_client.EARLIEST)
        start = max(earliest, state.log_end)
        reason = f"{text_of_gap(gap.kind)}: {gap.reason}; the copy continues at {start}"
        again = await self._next_epoch(copy, state, start=start, kind=kind_of_gap(gap.kind), reason=reason)
        copy.stats.passed_gap()
        return again

    async def _next_epoch(
        self, copy: PartitionCopy, state: RemoteLogState, *, start: int, kind: EpochKind, reason: str
    ) -> AskAgain:
        epoch = next_epoch(copy, state)
        before = copy.announced.get(copy.newest_epoch)
        announced = await self._epochs.begin(
            copy,
            Announcement(
                epoch=epoch,
                start=start,
                downstream=start,
                kind=kind,
                reason=reason,
                topic_id=self._epochs.topic_id(copy),
                source_end=None if before is None else before.source_end,
            ),
        )
        copy.end_skip()
        topic, partition = copy.place
        copy.stats.note_event(f"{topic}-{partition}: epoch {announced.epoch}: {announced.reason}")
        return AskAgain(f"epoch {announced.epoch} begins at {announced.start}")
