"""Decides how a copy with identical offsets continues, whose position is the end of the target's log. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.resume.decision import (
    BeginTurn,
    Continue,
    Fill,
    Forgotten,
    Lost,
    NotIdentical,
    Start,
    Unexplained,
    Wait,
)
from mirrorless.errors import GapKind
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import offsets_differ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.copy.resume.decision import Decision, RemoteLogState
    from mirrorless.progress.records import Announcement, Progress

FROM_SCRATCH = (
    "identical offsets need an empty remote topic: delete it, then run `mirrorless offsets reset` to copy the source "
    "topic from scratch, or set mirrorless.offsets=dense"
)


def decide_exactly(
    *, progress: Progress | None, announced: Mapping[int, Announcement], target: RemoteLogState
) -> Decision:
    """Decide by what was announced and by the target's log; the progress only shows what the target had to hold."""
    if target.unreplicated is None:
        return NotIdentical("identical offsets need the end of the leader's own log, which the target does not report")
    if target.unreplicated:
        return Wait(
            reason=f"{target.unreplicated} offsets on the leader of the remote partition are not replicated yet"
        )
    if progress is not None and progress.epoch is None:
        return NotIdentical(f"MirrorMaker 2 copied this partition; {FROM_SCRATCH}")
    if not announced:
        return _without_announcement(progress, target)
    newest = announced[max(announced)]
    if (reason := _dense(newest, progress, target)) is not None:
        return NotIdentical(f"{reason}; {FROM_SCRATCH}")
    if target.epoch is not None and target.epoch > newest.epoch:
        return Unexplained(epoch=target.epoch)
    own = progress if progress is not None and progress.epoch == newest.epoch else None
    if newest.kind is EpochKind.TURN:
        return BeginTurn()
    held = 0 if own is None or own.last_downstream is None else own.last_downstream + 1
    if held > target.log_end:
        return Lost(
            reason=f"the remote partition ends at {target.log_end}, before the acknowledged offset {held - 1}: the "
            "target lost records, or the remote topic was deleted and recreated",
            kind=GapKind.TARGET_LOST,
            records=held - target.log_end,
        )
    if target.epoch == newest.epoch and target.last_sequence is not None:
        sequence = (target.last_sequence + 1) % SEQUENCES
        return _append(newest.epoch, sequence, target.log_end)
    if target.log_end < newest.start:
        return Fill(epoch=newest.epoch, start=newest.start, log_end=target.log_end)
    if own is not None and own.sequence is not None and held == target.log_end:
        return _append(newest.epoch, own.sequence, held)
    begun = own is not None and own.sequence
    if target.log_end == newest.start and not begun:
        return _append(newest.epoch, 0, target.log_end)
    return Forgotten(since=newest.start if own is None else own.last_offset + 1)


def _append(epoch: int, sequence: int, log_end: int) -> Continue:
    """Continue at the target's log end, where the source's record has the same offset."""
    return Continue(epoch=epoch, walk_from=log_end, walk_records=0, sequence=sequence, last_downstream=log_end - 1)


def _without_announcement(progress: Progress | None, target: RemoteLogState) -> Decision:
    if progress is not None and progress.epoch is not None:
        return Unexplained(epoch=progress.epoch)
    if target.epoch is not None and target.last_sequence is not None:
        return Unexplained(epoch=target.epoch)
    if target.log_end:
        return NotIdentical(f"the remote partition already has {target.log_end} offsets; {FROM_SCRATCH}")
    return Start(epoch=0, start=None, kind=EpochKind.FIRST_COPY, reason="first copy")


def _dense(newest: Announcement, progress: Progress | None, target: RemoteLogState) -> str | None:
    """Why the remote partition holds a copy with other offsets, None if nothing shows that it does."""
    if (reason := offsets_differ(newest, progress)) is not None:
        return reason
    begun = progress is not None and progress.epoch == newest.epoch and progress.sequence
    has_records = target.epoch == newest.epoch and target.last_sequence is not None
    if not begun and has_records and target.log_end <= newest.start:
        return f"the remote partition has records before offset {newest.start}"
    return None
