"""Finds where each partition's copy continues: asks the target, decides, and resumes the copy there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.copy.partition.errors import append_error, unannounced
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.resume.decision import (
    BeginTurn,
    Continue,
    Fill,
    Forgotten,
    Lost,
    NotIdentical,
    RemoteLogState,
    Start,
    Unexplained,
    Wait,
)
from mirrorless.copy.resume.target_logs import states_of
from mirrorless.errors import Gap, GapKind
from mirrorless.progress.epoch_kind import LEFT_OUT_TEXT, EpochKind, kind_of_gap, text_of_gap
from mirrorless.progress.records import LeaveOut
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.resume.decision import Decision
    from mirrorless.copy.resume.epochs import Epochs
    from mirrorless.progress.records import Known
    from mirrorless.protocol.cluster_client import ClusterClient


class AskAgain(NamedTuple):
    """The target has to be asked again before the copy can continue, and why.

    So it is after an epoch was announced: it is void where the target has moved on from what was known.
    """

    reason: str


class NextEpoch(NamedTuple):
    """An epoch that begins at source offset `start` has to be announced before the copy can continue."""

    start: int
    kind: EpochKind
    reason: str


class ResumePosition(NamedTuple):
    """Where a copy continues: the source offset whose record gets `sequence` in `epoch`.

    `last_downstream` is the target's offset before it, `leader_epoch` that of the source's record before it, None if
    that is not known. `is_written`: there is nothing new for the progress topic.
    """

    offset: int
    epoch: int
    sequence: int
    last_downstream: int
    leader_epoch: int | None = None
    is_written: bool = False


class AfterGap(NamedTuple):
    """The first source offset after `gap`; `returned`: the target has again what it lacked, and nothing is skipped."""

    start: int
    gap: Gap
    returned: bool = False


class OffsetRule(ABC):
    """What differs between remote partitions with dense offsets and those with the source's."""

    @abstractmethod
    def decide(self, copy: PartitionCopy, state: RemoteLogState) -> Decision:
        """Decide by what is stored and by what the target holds."""

    async def hold(self, copy: PartitionCopy, state: RemoteLogState) -> AskAgain | None:
        """Become the only process that resumes the copy, where that takes more than compare-and-append."""
        del copy, state
        return None

    @abstractmethod
    async def position(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision
    ) -> ResumePosition | NextEpoch | AskAgain:
        """Return where to continue, with the target's leader `node`, which holds `state`.

        Raises `PartitionError` where the copy cannot continue, `TROUBLE` where it cannot yet.
        """

    @abstractmethod
    async def after_gap(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision, gap: Gap
    ) -> AfterGap | NextEpoch | AskAgain:
        """Return where the source has records after a gap, as it is by now."""

    @abstractmethod
    async def holds_all_before(self, copy: PartitionCopy, position: ResumePosition, left_out: LeaveOut) -> bool:
        """Whether the target holds everything before the records that are to be left out, and none of them."""

    @abstractmethod
    def downstream(self, start: int) -> int | None:
        """Return the target's offset of an epoch that begins at source offset `start`; None is the end of its log."""


class PositionResolver:
    """Resumes partitions of one flow, each by its rule: `identical` for those with the source's offsets.

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
        dense: OffsetRule,
        identical: OffsetRule,
        reread: Callable[[], Mapping[TopicPartition, Known]],
        left_out: Callable[[PartitionCopy, LeaveOut], bool],
    ) -> None:
        self._source = source
        self._target = target
        self._epochs = epochs
        self._dense = dense
        self._identical = identical
        self._reread = reread
        self._left_out = left_out

    def _rule(self, copy: PartitionCopy) -> OffsetRule:
        return self._dense if copy.exact is None else self._identical

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
            await self._learn_ids(suspicious)
        found: dict[PartitionCopy, tuple[RemoteLogState, Decision] | BaseException] = {}
        for copy, state in (await states_of(self._target, node, copies)).items():
            found[copy] = (state, self._rule(copy).decide(copy, state)) if isinstance(state, RemoteLogState) else state
        return found

    async def _learn_ids(self, suspicious: Sequence[PartitionCopy]) -> None:
        """Learn the ids of source topics that seem to have been recreated.

        An id that this process had learned before another one announced an epoch of a newer topic differs too.
        """
        if topics := {copy.row.topic for copy in suspicious if _is_of_another_topic(copy.suspected)}:
            await self._source.learn(topics)

    async def settle(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision
    ) -> AskAgain | None:
        """Resume one copy where `decision` says, by the target's leader `node`, which was asked; None if that is done.

        Raises `PartitionError` where it cannot continue, `TROUBLE` where it cannot yet.
        """
        rule, gap = self._rule(copy), copy.skip if isinstance(copy.skip, Gap) else None
        _refuse_halted(copy)
        if gap is None:
            self._refuse(copy, decision)
        if isinstance(decision, Wait):
            return AskAgain(decision.reason)
        if (again := await rule.hold(copy, state)) is not None:
            return again
        if gap is not None:
            if (again := await self._skip_gap(copy, node, state, decision, gap)) is not None:
                return again
            self._refuse(copy, decision)
        copy.bind_topics(self._source.topic_id(copy.row.topic), self._target.topic_id(copy.row.remote_topic))
        where = await rule.position(copy, node, state, decision)
        if isinstance(where, NextEpoch):
            return await self._announce(copy, state, where)
        if isinstance(where, AskAgain):
            return where
        if isinstance(copy.skip, LeaveOut) and (again := await self._leave_out(copy, state, copy.skip, where)):
            return again
        if copy.state is PartitionState.HALTED:  # another process has claimed it while the position was looked for
            return AskAgain(f"halted meanwhile: {copy.error}")
        copy.resume_at(node=node, **where._asdict())
        return None

    def _refuse(self, copy: PartitionCopy, decision: Decision) -> None:
        """Raise the error of a copy that cannot continue."""
        match decision:
            case NotIdentical(reason=reason):
                raise append_error(copy, reason)
            case Lost(reason=reason, kind=kind, records=records):
                raise copy.gap(reason, kind, records=records)
            case Unexplained(epoch=epoch):
                raise unannounced(copy, epoch)
            case Start(epoch=epoch) if epoch not in copy.announced and copy.known_progress is None:
                self._epochs.refuse_another_topic(copy, copy.newest_epoch)
            case Start(epoch=epoch) | Continue(epoch=epoch) | Fill(epoch=epoch):
                self._epochs.refuse_another_topic(copy, epoch)
            case BeginTurn() | Forgotten():
                self._epochs.refuse_another_topic(copy, copy.newest_epoch)

    async def _leave_out(
        self, copy: PartitionCopy, state: RemoteLogState, left_out: LeaveOut, position: ResumePosition
    ) -> AskAgain | None:
        """Begin an epoch after records that cannot be copied, once the target holds everything before them."""
        if not await self._rule(copy).holds_all_before(copy, position, left_out):
            copy.end_skip(keep_suspicion=True)
            return None  # the target moved on, or lacks something yet; then they are found again
        if not self._left_out(copy, left_out):
            raise NotNow(f"{left_out.reason}; the records to leave out could not be written down yet")
        reason = f"{LEFT_OUT_TEXT}{left_out.text}"
        again = await self._announce(copy, state, NextEpoch(left_out.next_offset, EpochKind.LEFT_OUT, reason))
        copy.stats.passed_left_out()
        return again

    async def _skip_gap(
        self, copy: PartitionCopy, node: int, state: RemoteLogState, decision: Decision, gap: Gap
    ) -> AskAgain | None:
        """Begin an epoch after a gap, as it is by now; None if the position is unknown, which is no gap to skip."""
        if copy.newest_epoch != copy.skip_from:
            copy.end_skip()
            return AskAgain(f"epoch {copy.newest_epoch} begins after the gap: {gap.reason}")
        if isinstance(decision, Unexplained | NotIdentical):
            return None
        if isinstance(decision, Lost) and decision.kind is GapKind.UNEXPLAINED:
            return None
        after = await self._rule(copy).after_gap(copy, node, state, decision, gap)
        if isinstance(after, AskAgain):
            return after
        if isinstance(after, NextEpoch):
            return await self._announce(copy, state, after)
        reason = f"{text_of_gap(after.gap.kind)}: {after.gap.reason}"
        reason += "; it has them again, and" if after.returned else ";"
        reason += f" the copy continues at {after.start}"
        again = await self._announce(copy, state, NextEpoch(after.start, kind_of_gap(after.gap.kind), reason))
        if not after.returned:
            copy.stats.passed_gap()
        return again

    async def _announce(self, copy: PartitionCopy, state: RemoteLogState, epoch: NextEpoch) -> AskAgain:
        announced = await self._epochs.announce_next(
            copy,
            state,
            start=epoch.start,
            kind=epoch.kind,
            reason=epoch.reason,
            downstream=self._rule(copy).downstream(epoch.start),
        )
        copy.end_skip()
        topic, partition = copy.place
        copy.stats.note_event(f"{topic}-{partition}: epoch {announced.epoch}: {announced.reason}")
        return AskAgain(f"epoch {announced.epoch} begins at {announced.start}")


def _is_of_another_topic(gap: Gap | None) -> bool:
    return gap is not None and gap.kind is GapKind.CREATED_AGAIN


def _refuse_halted(copy: PartitionCopy) -> None:
    """Raise the gap at which this epoch halted before, even if it could not be seen again."""
    if copy.skip is None and (halt := copy.halted_at) is not None and halt.kind is not None:
        gap = copy.gap(halt.reason, halt.kind, offset=halt.offset, records=halt.records)
        copy.suspect(gap)
        raise gap
