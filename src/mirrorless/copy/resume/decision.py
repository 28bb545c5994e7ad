"""Decides where a partition's copy continues, from its progress and from what the target has. No I/O.

The progress may be older than the target; it is never newer unless the target lost something. Only what the target has
replicated counts: a leader's producer state covers its own log to the end, of which it may still lose some.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.header import SEQUENCES
from mirrorless.errors import GapKind
from mirrorless.progress.epoch_kind import AFTER_MIRRORMAKER2_TEXT, EpochKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.progress.records import Announcement, Progress


class OwnRecords(NamedTuple):
    """Records that a copy appended after a known pair, whose next target offset is `after`: how many, and the last one.

    `last_downstream` is the offset of that record, `after - 1` if there is none; before `end` there are no others. See
    `shared_target`.
    """

    after: int
    records: int
    last_downstream: int
    end: int

    @property
    def last_known(self) -> int:
        """The last offset that the copy's next record follows."""
        return self.last_downstream if self.records else self.end - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLogState:
    """What the target's leader knows of one remote partition and our producer id.

    `log_end` is the high watermark. `epoch` and `last_sequence` are the broker's producer state or, where it has none,
    those in the header of the last batch if that is ours; None if neither. `remembered`: they are the broker's, which
    accepts only the next sequence; an unknown producer may begin anywhere. `foreign_tail`: the last batch is another
    producer's. `unreplicated` is how many offsets the leader's own log has after the high watermark, None where that is
    unknown; it was asked for after the producer state. Whose they are is unknown where the producer is forgotten, by
    the age of its records, which for old records may be at once (`ProducerStateManager.isProducerExpired`).
    `own`: where other producers append too, so that the log's length does not count the copy's records.
    """

    log_end: int
    epoch: int | None = None
    last_sequence: int | None = None
    remembered: bool = False
    foreign_tail: bool = False
    unreplicated: int | None = None
    own: OwnRecords | None = None

    @property
    def counted_end(self) -> int:
        """Where the log would end if only this copy had appended since the known pair."""
        return self.log_end if self.own is None else self.own.after + self.own.records

    def holds_records_from(self, downstream: int) -> bool:
        """Whether the copy's records, or what may be its records, are there from a target offset on."""
        if self.own is None:
            return self.log_end > downstream
        return self.own.records > 0 and self.own.last_downstream >= downstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """Continue epoch `epoch`: from source offset `walk_from` skip `walk_records` records, then append.

    `sequence` is that of the first record to append; `last_downstream` the target's offset of the one before it.
    """

    epoch: int
    walk_from: int
    walk_records: int
    sequence: int
    last_downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Announce epoch `epoch`, then append from source offset `start`; None is the flow's start position."""

    epoch: int
    start: int | None
    kind: EpochKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Ask again: the target has not replicated what it holds; it will, or its next leader will not have it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Records are missing: a gap, which the error policy handles.

    `records` is how many acknowledged records the target lost, or refused before it took later ones; None if unknown.
    """

    reason: str
    kind: GapKind
    records: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexplained:
    """The target holds records of an unknown epoch: another writer began it, or its announcement is lost.

    Read the progress topic again. Only this decision depends on fresh progress: all others are right for progress that
    is older than the target's state.
    """

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """With identical offsets: epoch `epoch` begins at `start`, and the target's log ends at `log_end`, before that."""

    epoch: int
    start: int
    log_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """With identical offsets: announce an epoch at the target's log end, which has forgotten the producer's sequence.

    From offset `since` on, both sides have to have as many records up to there.
    """

    since: int


@dataclass(frozen=True, slots=True)
class BeginTurn:
    """With identical offsets: the announced epoch is a turn: announce one that begins at the target's log end."""


@dataclass(frozen=True, slots=True)
class NotIdentical:
    """The remote partition does not hold a copy with identical offsets, and cannot."""

    reason: str


Decision = Continue | Start | Wait | Lost | Unexplained | Fill | Forgotten | BeginTurn | NotIdentical


@dataclass(frozen=True, slots=True, kw_only=True)
class _Base:
    """A known pair of offsets: the record at source offset `offset` has `sequence`, and the target's `downstream`."""

    epoch: int
    offset: int
    sequence: int
    downstream: int


def decide(*, progress: Progress | None, announced: Mapping[int, Announcement], target: RemoteLogState) -> Decision:
    """Decide how to continue; `announced` are the epochs of the progress topic."""
    if target.unreplicated and not target.remembered:
        return Wait(
            reason=f"{target.unreplicated} records on the leader of the remote partition are not replicated yet"
        )
    if progress is not None and (progress.epoch is None or progress.sequence is None):
        return _after_mirrormaker2(progress.last_offset + 1, announced, target)
    newest = announced[max(announced)] if announced else None
    if newest is not None and _is_next(newest, progress, target):
        passed = newest.start
        if progress is not None and progress.epoch == newest.epoch:
            passed = max(passed, progress.last_offset + 1)  # markers, and what was aborted
        return Continue(
            epoch=newest.epoch,
            walk_from=passed,
            walk_records=0,
            sequence=0,
            last_downstream=target.log_end - 1,
        )
    if progress is None or progress.epoch is None or progress.sequence is None:
        return _without_progress(announced, target)
    downstream = 0 if progress.last_downstream is None else progress.last_downstream + 1
    base = _Base(
        epoch=progress.epoch, offset=progress.last_offset + 1, sequence=progress.sequence, downstream=downstream
    )
    if target.epoch is not None and target.last_sequence is not None and target.epoch > base.epoch:
        return _from_announcement(target.epoch, target.last_sequence, announced, target)
    if base.downstream > target.log_end:
        lost = _lost(base.downstream, target)
        if target.epoch == base.epoch and target.last_sequence is not None:
            # What the log lost may be others' records too, and others may have appended since.
            missing = (base.sequence - target.last_sequence - 1) % SEQUENCES
            lost = replace(lost, records=missing if missing < SEQUENCES // 2 else lost.records)
        return lost
    if target.epoch is None or target.last_sequence is None:
        return _forgotten(base, target)
    ahead = (target.last_sequence + 1 - base.sequence) % SEQUENCES
    if target.epoch < base.epoch or ahead >= SEQUENCES // 2:
        return Lost(
            reason=f"the target is at epoch {target.epoch}, sequence {target.last_sequence}, before the acknowledged "
            f"epoch {base.epoch}, sequence {(base.sequence - 1) % SEQUENCES}: it lost records",
            kind=GapKind.TARGET_LOST,
            records=SEQUENCES - ahead if target.epoch == base.epoch else base.sequence,
        )
    return _ahead(base, ahead, target)


def _lost(downstream: int, target: RemoteLogState) -> Lost:
    """Return the gap of a target that ends before `downstream`, the next offset that was expected."""
    why = "the target lost records, or the remote topic was deleted and recreated"
    if target.log_end == 0:
        why += (
            "; or it is another topic, because replication.policy.class, its separator or an alias was changed: with "
            "the earlier setting the copy resumes in the earlier topic"
        )
    return Lost(
        reason=f"the remote partition ends at {target.log_end}, before the acknowledged record {downstream - 1}: {why}",
        kind=GapKind.TARGET_LOST,
        records=downstream - target.log_end,
    )


def _is_next(newest: Announcement, progress: Progress | None, target: RemoteLogState) -> bool:
    """Whether the newest epoch was announced and nothing is appended in it yet, so that it begins now."""
    if progress is not None and progress.epoch is not None and progress.epoch > newest.epoch:
        return False
    if progress is not None and progress.epoch == newest.epoch and progress.sequence:
        return False  # it has begun
    if target.log_end < newest.downstream:
        return False  # the target lost what it had when this was announced
    if target.epoch is None or target.last_sequence is None:
        # Forgotten: only the length of the log shows that nothing was appended.
        return progress is not None and target.counted_end == newest.downstream
    if target.epoch >= newest.epoch:
        return False
    return newest.after is None or newest.after == (target.epoch, (target.last_sequence + 1) % SEQUENCES)


def _ahead(base: _Base, records: int, target: RemoteLogState) -> Decision:
    """Continue `records` after `base`, if they are replicated.

    More of them than the leader's own log has are no reason to wait: it took some without others before them.
    """
    late = base.downstream + records - target.counted_end
    if target.unreplicated is not None and late > target.unreplicated:
        missing = late - target.unreplicated
        return Lost(
            reason=f"the target's last sequence in epoch {base.epoch} counts {missing} records more than its log has "
            f"from offset {base.downstream} on: it refused records after source offset {base.offset - 1} and took "
            "later ones",
            kind=GapKind.TARGET_HOLE,
            records=missing,
        )
    if late > 0:
        return Wait(reason=f"{late} records on the leader of the remote partition are not replicated yet")
    return Continue(
        epoch=base.epoch,
        walk_from=base.offset,
        walk_records=records,
        sequence=(base.sequence + records) % SEQUENCES,
        last_downstream=base.downstream + records - 1 if target.own is None else target.own.last_known,
    )


def _forgotten(base: _Base, target: RemoteLogState) -> Decision:
    """Decide where the target forgot the producer: what its log grew by was ours, unless another producer wrote."""
    if target.foreign_tail and target.log_end > base.downstream:
        return Lost(
            reason=f"another producer wrote to the remote partition after the acknowledged record "
            f"{base.downstream - 1}, and the target has forgotten how far this copy was",
            kind=GapKind.UNEXPLAINED,
            records=None,
        )
    return _ahead(base, target.counted_end - base.downstream, target)


def _without_progress(announced: Mapping[int, Announcement], target: RemoteLogState) -> Decision:
    if target.epoch is None or target.last_sequence is None:
        # We appended nothing. An epoch that was announced is announced again; the first announcement is valid.
        epoch = max(announced, default=0)
        if epoch in announced and announced[epoch].downstream > target.log_end:
            return Start(
                epoch=epoch + 1,
                start=announced[epoch].start,
                kind=EpochKind.FIRST_COPY,
                reason="first copy, the target is shorter now",
            )
        return Start(epoch=epoch, start=None, kind=EpochKind.FIRST_COPY, reason="first copy")
    return _from_announcement(target.epoch, target.last_sequence, announced, target)


def _after_mirrormaker2(start: int, announced: Mapping[int, Announcement], target: RemoteLogState) -> Decision:
    known = -1 if target.epoch is None else target.epoch
    if target.last_sequence is not None and known not in announced:
        return Unexplained(epoch=known)
    reached = None if target.last_sequence is None else (known, (target.last_sequence + 1) % SEQUENCES)
    begun = [
        epoch
        for epoch, one in announced.items()
        if one.goes_on_from(start) and epoch > known and one.after in (None, reached)
    ]
    if not begun and target.last_sequence is not None and announced[known].goes_on_from(start):
        # Our own epoch after this position, whose first progress was not written yet.
        return _from_announcement(known, target.last_sequence, announced, target)
    if begun and announced[max(begun)].downstream > target.log_end:
        return _lost(announced[max(begun)].downstream, target)
    epoch = max(begun) if begun else max([known, *announced]) + 1
    return Start(epoch=epoch, start=start, kind=EpochKind.AFTER_MIRRORMAKER2, reason=AFTER_MIRRORMAKER2_TEXT)


def _from_announcement(
    epoch: int, last_sequence: int, announced: Mapping[int, Announcement], target: RemoteLogState
) -> Decision:
    if epoch not in announced:
        return Unexplained(epoch=epoch)
    announcement = announced[epoch]
    if announcement.downstream > target.log_end:
        return _lost(announcement.downstream, target)
    base = _Base(epoch=epoch, offset=announcement.start, sequence=0, downstream=announcement.downstream)
    # Sequences wrap; the length of the log shows how often.
    wraps = max(0, target.counted_end - base.downstream - last_sequence - 1) // SEQUENCES
    return _ahead(base, last_sequence + 1 + wraps * SEQUENCES, target)
