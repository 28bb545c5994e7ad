"""Where a partition's copy goes on: what the progress says, held against what the target has (design, section 5).

Pure decisions. The progress may be older than the target; it is never newer unless the target lost something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.batches.header import SEQUENCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.copy.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetState:
    """What the target's leader knows of one remote partition and our producer id.

    `epoch` and `last_sequence` are the broker's producer state or, where it has none, those in the header of the last
    batch if that is ours; None if neither. `foreign_tail` says that the last batch is another producer's.
    """

    log_start: int
    log_end: int
    epoch: int | None = None
    last_sequence: int | None = None
    foreign_tail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GoOn:
    """Continue incarnation `epoch`: from upstream offset `walk_from` skip `walk_records` records, then append.

    `sequence` is that of the first record to append; `last_downstream` the target's offset of the one before it.
    """

    epoch: int
    walk_from: int
    walk_records: int
    sequence: int
    last_downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Announce incarnation `epoch`, then append from upstream offset `start`; None is the flow's start position."""

    epoch: int
    start: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Something that was there is not any more: a gap, to be handled by policy."""

    reason: str


Decision = GoOn | Begin | Lost


def decide(*, progress: Progress | None, starts: Mapping[int, int], target: TargetState) -> Decision:
    """Choose how to go on; `starts` are the announced epochs, each with the upstream offset it begins at."""
    if progress is None:
        return _without_progress(starts, target)
    if progress.epoch is None or progress.sequence is None:
        return _behind_mirrormaker(progress.last_offset + 1, starts, target)
    downstream = -1 if progress.last_downstream is None else progress.last_downstream
    if downstream >= target.log_end:
        return Lost(
            reason=f"the remote partition ends at {target.log_end}, before the acknowledged record {downstream}: "
            "the target lost records, or the remote topic was created again"
        )
    if target.epoch is None or target.last_sequence is None:
        return _forgotten(progress, progress.epoch, progress.sequence, downstream, target)
    if target.epoch > progress.epoch:
        return _from_announcement(target.epoch, target.last_sequence, starts, target)
    ahead = (target.last_sequence + 1 - progress.sequence) % SEQUENCES
    if target.epoch < progress.epoch or ahead >= SEQUENCES // 2:
        return Lost(
            reason=f"the target is at epoch {target.epoch}, sequence {target.last_sequence}, behind the acknowledged "
            f"epoch {progress.epoch}, sequence {(progress.sequence - 1) % SEQUENCES}: it lost records"
        )
    return GoOn(
        epoch=progress.epoch,
        walk_from=progress.last_offset + 1,
        walk_records=ahead,
        sequence=(progress.sequence + ahead) % SEQUENCES,
        last_downstream=target.log_end - 1 if ahead else downstream,
    )


def _forgotten(progress: Progress, epoch: int, sequence: int, downstream: int, target: TargetState) -> Decision:
    if target.foreign_tail and target.log_end > downstream + 1:
        return Lost(
            reason=f"another producer wrote to the remote partition behind the acknowledged record {downstream}, "
            "and the target has forgotten how far this copy was"
        )
    return GoOn(
        epoch=epoch,
        walk_from=progress.last_offset + 1,
        walk_records=0,
        sequence=sequence,
        last_downstream=downstream,
    )


def _without_progress(starts: Mapping[int, int], target: TargetState) -> Decision:
    if target.epoch is None or target.last_sequence is None:
        # Nothing was appended by us. An epoch announced already is announced again; the first announcement holds.
        return Begin(epoch=max(starts, default=0), start=None, reason="first copy")
    return _from_announcement(target.epoch, target.last_sequence, starts, target)


def _behind_mirrormaker(start: int, starts: Mapping[int, int], target: TargetState) -> Decision:
    known = -1 if target.epoch is None else target.epoch
    if target.last_sequence is not None and starts.get(known) == start:
        # Our own incarnation behind this very position, whose first progress was not written yet.
        return _from_announcement(known, target.last_sequence, starts, target)
    announced = [epoch for epoch, begins in starts.items() if begins == start and epoch > known]
    epoch = max(announced) if announced else max([known, *starts]) + 1
    return Begin(epoch=epoch, start=start, reason="behind MirrorMaker 2")


def _from_announcement(epoch: int, last_sequence: int, starts: Mapping[int, int], target: TargetState) -> Decision:
    if epoch not in starts:
        return Lost(
            reason=f"the target holds records of epoch {epoch}, whose announcement is not in the progress topic"
        )
    return GoOn(
        epoch=epoch,
        walk_from=starts[epoch],
        walk_records=last_sequence + 1,
        sequence=(last_sequence + 1) % SEQUENCES,
        last_downstream=target.log_end - 1,
    )
