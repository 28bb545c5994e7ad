"""Remote partitions with the source's offsets: the position is the end of the remote log, once it is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.copy.identical.decision import FROM_SCRATCH, decide_exactly
from mirrorless.copy.identical.seed import holds_only_filler, seed
from mirrorless.copy.identical.source_log import compare_count, compare_records, compare_tail, first_record
from mirrorless.copy.partition.errors import append_error
from mirrorless.copy.resume.decision import BeginTurn, Continue, Fill, Forgotten, NotIdentical, Start
from mirrorless.copy.resume.resolver import AfterGap, AskAgain, NextEpoch, OffsetRule, ResumePosition
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import NotNow
from mirrorless.protocol.markers import MARKERS_AT_ONCE, RESERVED_OFFSETS

if TYPE_CHECKING:
    from mirrorless.copy.identical.claims import Claims
    from mirrorless.copy.identical.holes import HoleWriter
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import Decision, RemoteLogState
    from mirrorless.copy.resume.epochs import Epochs
    from mirrorless.errors import Gap
    from mirrorless.progress.records import LeaveOut
    from mirrorless.protocol.cluster_client import ClusterClient

SERVERLESS = "MSK Serverless accepts no transaction markers from clients, which mirrorless.offsets=identical needs"


class IdenticalOffsets(OffsetRule):
    """Continues at the end of the remote log, which it extends by filler or markers where a record has a later offset.

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
        impossible: str | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._epochs = epochs
        self._claims = claims
        self._holes = holes
        self._impossible = impossible
        self._over = False

    def stop(self) -> None:
        """Do not fill any further: the lease is over."""
        self._over = True

    def decide(self, copy: PartitionCopy, state: RemoteLogState) -> Decision:
        """Decide by the epochs and by the end of the remote log."""
        if self._impossible is not None:
            return NotIdentical(self._impossible)
        return decide_exactly(progress=copy.known_progress, announced=copy.announced, target=state)

    async def hold(self, copy: PartitionCopy, state: RemoteLogState) -> AskAgain | None:
        """Claim the partition: markers are no compare-and-append."""
        reason = await self._claims.hold(copy, state.log_end)
        return None if reason is None else AskAgain(reason)

    async def position(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision
    ) -> ResumePosition | NextEpoch | AskAgain:
        """Return the end of the remote log, or what has to be done before a record can be appended there."""
        match decision:
            case Start():
                return await self._begin(copy)
            case Fill(start=start, log_end=log_end):
                return await self._fill(copy, node, start=start, log_end=log_end)
            case BeginTurn():
                return await self._begin_turn(copy, state)
            case Forgotten(since=since):
                await compare_records(self._source, self._target, copy, start=since, end=state.log_end)
                reason = "the target has forgotten the producer; the copy continues at the end of its log"
                return NextEpoch(state.log_end, EpochKind.FORGOTTEN, reason)
            case Continue():
                return await self._append(copy, node, state, decision)
        raise AssertionError(decision)

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

    async def _begin_turn(self, copy: PartitionCopy, state: RemoteLogState) -> NextEpoch:
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
        return NextEpoch(end, EpochKind.FORGOTTEN, reason)

    async def _fill(self, copy: PartitionCopy, node: int, *, start: int, log_end: int) -> AskAgain:
        """Have the target's log end at `start`: by filler where it has nothing else, else by markers."""
        if await holds_only_filler(self._target, node, copy, log_end):
            done = await seed(self._target, node, copy, log_end=log_end, start=start, over=lambda: self._over)
            return AskAgain(f"filled up to offset {start}" if done else f"filling up to offset {start}")
        if copy.announced[copy.newest_epoch].kind in (EpochKind.FIRST_COPY, EpochKind.RESET):
            raise append_error(copy, f"the remote partition has records before offset {start}; {FROM_SCRATCH}")
        await self._holes.write(copy, node, log_end, start)
        return AskAgain(f"markers were written up to offset {start}")

    async def _append(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Continue
    ) -> ResumePosition:
        offset, epoch = decision.walk_from, decision.epoch
        places = [copy.remote_place]
        begins = (await self._target.offsets(node, places, at=cluster_client.EARLIEST))[copy.remote_place]
        if begins.error_code:
            raise error_for(begins.error_code)
        newest = copy.announced[copy.newest_epoch]
        if newest.kind is not EpochKind.LEFT_OUT or newest.start != offset:
            # Otherwise there are markers where the source has what is left out.
            await compare_tail(self._source, self._target, node, copy, log_start=begins.offset, log_end=offset)
        progress = copy.known_progress
        if state.epoch == epoch and progress is not None and progress.epoch == epoch:
            await compare_count(self._source, copy, sequence=decision.sequence, log_end=offset)
        leader_epoch = progress.leader_epoch if progress is not None and progress.last_offset + 1 == offset else None
        return ResumePosition(offset, epoch, decision.sequence, decision.last_downstream, leader_epoch)

    async def holds_all_before(self, copy: PartitionCopy, position: ResumePosition, left_out: LeaveOut) -> bool:
        """Whether the remote log ends where the records begin that are to be left out."""
        del copy
        return position.offset == left_out.offset

    async def after_gap(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision, gap: Gap
    ) -> AfterGap:
        """Return the source's first offset, or the end of the remote log if that is later."""
        del node, decision
        earliest = await self._epochs.first_offset(copy.place, at=cluster_client.EARLIEST)
        return AfterGap(max(earliest, state.log_end), gap)

    def downstream(self, start: int) -> int:
        """Return the same offset."""
        return start
