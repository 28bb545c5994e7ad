"""Compares the records at a source position with those at its translation on the target. No I/O.

A consumer reads the next committed record at or after its position. So a translation is right if the next records of
both sides are the same, whatever the offsets are. What the copy skipped on purpose is skipped here too: records before
the start of an epoch that begins where the translation points to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mirrorless.progress.epoch_kind import EpochKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Announcement
    from mirrorless.verify.alignment import Print

MARGIN: Final = 5
"""Records before and after a translation in which the right position is searched, if it is wrong."""

_SKIPPING: Final = frozenset({EpochKind.FIRST_COPY, EpochKind.RESET, EpochKind.LEFT_OUT, EpochKind.GAP})
_FIELDS: Final = ("key", "value", "headers", "timestamp")


class Outcome(StrEnum):
    """What a comparison found."""

    SAME = "same"
    AT_END = "both at the end"
    NOT_COPIED = "not copied yet"
    READ_AGAIN = "reads again"
    SKIPPED_BY_POLICY = "same after records that the copy skipped"
    EXPIRED = "deleted by retention"
    COMPACTED = "compacted"
    BEYOND = "beyond the source's end"
    TOO_EARLY = "too early"
    TOO_LATE = "too late"
    DIFFERENT = "different"
    MISSING = "missing"
    UNREAD = "not read"


WRONG: Final = frozenset({Outcome.TOO_EARLY, Outcome.TOO_LATE, Outcome.DIFFERENT, Outcome.MISSING})
NOT_COMPARABLE: Final = frozenset({Outcome.EXPIRED, Outcome.COMPACTED, Outcome.BEYOND})


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """A pair of offsets to compare: `records` from there on. `who` are the groups that have it, and what it is.

    `read_again` is the maximum number of records that the translation may be early by, 0 if it is exact. `expired`
    says that the translation is the first offset that the target's retention left. `not_copied` says that it is the
    end that the target had, since the record was not copied yet: by now others may be there.
    """

    place: TopicPartition
    remote_place: TopicPartition
    source_offset: int
    target_offset: int
    records: int = MARGIN
    read_again: int = 0
    expired: bool = False
    not_copied: bool = False
    who: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Where it is, on both sides."""
        (topic, partition), (remote, _) = self.place, self.remote_place
        return f"{topic}-{partition} at {self.source_offset} -> {remote}-{partition} at {self.target_offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Committed records of one partition, in order; `start` and `end` are the first offset and the high watermark.

    `trouble` says why they could not be read.
    """

    start: int
    end: int
    records: Sequence[Print] = ()
    trouble: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFacts:
    """What is known about a partition's copy: its epochs, and up to which source offset everything was copied.

    `compacted` says that the cleaner may have removed records on one side only.
    """

    announced: Mapping[int, Announcement]
    copied_to: int = 0
    compacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The result for one position; `records` were compared, `skipped` left out by the copy on purpose."""

    position: Position
    outcome: Outcome
    text: str
    records: int = 0
    skipped: int = 0


def compare(position: Position, source: LogSlice, target: LogSlice, copy: CopyFacts) -> Compared:
    """Compare one position. The target was read first: the source has everything that the target had.

    The source's records begin at the position, and continue at `read_from` if that is later; the target's begin up to
    `MARGIN` offsets before the translation.
    """
    if (outside := _outside(position, source, target)) is not None:
        return outside
    found = _compare(position, source, target, copy)
    if position.not_copied and found.outcome in WRONG:
        text = f"the next record, {position.source_offset} on the source, was not copied when it was translated"
        return replace(found, outcome=Outcome.NOT_COPIED, text=text)
    return found


def _compare(position: Position, source: LogSlice, target: LogSlice, copy: CopyFacts) -> Compared:
    there = position.target_offset
    ahead = [one for one in target.records if one.offset >= there]
    ours, skipped = _copied(source.records, ahead, there, copy.announced)
    if not ours or not ahead:
        return _at_an_end(position, ours, ahead, copy, skipped)
    pairs = list(zip(ours, ahead, strict=False))
    different = next((number for number, (one, other) in enumerate(pairs) if one.content != other.content), None)
    if different is not None:
        outcome, text = _difference(position, ours, target, copy, different)
    elif len(ahead) < len(ours) and ours[len(ahead)].offset < copy.copied_to and ahead[-1].offset + 1 >= target.end:
        text = f"the target ends at {target.end}, without the copied source record {ours[len(ahead)].offset}"
        outcome = Outcome.MISSING
    elif skipped:
        outcome = Outcome.SKIPPED_BY_POLICY
        text = f"the copy skipped records before the source's {ours[0].offset} on purpose"
    else:
        outcome, text = Outcome.SAME, "the next records are the same"
    return Compared(position=position, outcome=outcome, text=text, records=len(pairs), skipped=skipped)


def _outside(position: Position, source: LogSlice, target: LogSlice) -> Compared | None:
    """Return the result for a position that one of the logs does not have, or that could not be read."""
    at, there = position.source_offset, position.target_offset
    if (trouble := target.trouble or source.trouble) is not None:
        outcome, text = Outcome.UNREAD, trouble
    elif there > target.end:
        outcome, text = Outcome.TOO_LATE, f"the translation is beyond the target's end {target.end}"
    elif at > source.end:
        outcome, text = Outcome.BEYOND, f"the position is beyond the source's end {source.end}"
    elif at < source.start:
        outcome, text = Outcome.EXPIRED, f"retention on the source deleted the records before {source.start}"
    elif position.expired or there < target.start:
        outcome, text = Outcome.EXPIRED, f"retention on the target deleted the records before {target.start}"
    else:
        return None
    return Compared(position=position, outcome=outcome, text=text)


def _difference(
    position: Position, ours: Sequence[Print], target: LogSlice, copy: CopyFacts, different: int
) -> tuple[Outcome, str]:
    """Explain the first pair of records that differ, which is number `different`."""
    there = position.target_offset
    ahead = [one for one in target.records if one.offset >= there]
    if different == 0:
        shift = _shift(ours, target.records, there)
        if shift is not None and 0 < shift <= position.read_again:
            return Outcome.READ_AGAIN, f"{_records(shift)} would be read again"
        if shift is not None and not copy.compacted:
            if shift > 0:
                return Outcome.TOO_EARLY, f"{_records(shift)} too early: would be read twice"
            return Outcome.TOO_LATE, f"{_records(-shift)} too late: would be skipped"
        if position.read_again:
            if ahead[-1].offset + 1 < target.end and position.read_again > len(ahead) - len(ours):
                return Outcome.UNREAD, f"its next record was not among the next {len(ahead)} on the target"
            if ours[0].offset >= copy.copied_to:
                return Outcome.READ_AGAIN, f"up to {_records(len(ahead))} would be read again"
    if copy.compacted:
        return Outcome.COMPACTED, "compaction may have removed records on one side only"
    one, other = ours[different], ahead[different]
    fields = [name for name, mine, its in zip(_FIELDS, one.content, other.content, strict=True) if mine != its]
    text = f"the source's record {one.offset} and the target's {other.offset} differ in {', '.join(fields)}"
    return Outcome.DIFFERENT, text


def _records(number: int) -> str:
    return f"{number} record{'' if number == 1 else 's'}"


def read_from(position: Position, announced: Mapping[int, Announcement]) -> int:
    """Return the source offset of the first record that is not skipped on purpose."""
    return max(position.source_offset, _starts(announced).get(position.target_offset, 0))


def _starts(announced: Mapping[int, Announcement]) -> dict[int, int]:
    """Return by target offset where epochs begin on the source that skip what is before them."""
    starts: dict[int, int] = {}
    for one in announced.values():
        if one.kind in _SKIPPING:
            starts[one.downstream] = max(one.start, starts.get(one.downstream, 0))
    return starts


def _at_an_end(
    position: Position, ours: Sequence[Print], ahead: Sequence[Print], copy: CopyFacts, skipped: int
) -> Compared:
    """One side, or both, have no record at or after the position."""
    if not ours and not ahead:
        outcome, text = Outcome.AT_END, "no record follows on either side"
    elif not ahead and ours[0].offset < copy.copied_to:
        outcome = Outcome.COMPACTED if copy.compacted else Outcome.TOO_LATE
        text = f"no record follows on the target, although the source's record {ours[0].offset} was copied"
    elif not ahead:
        outcome, text = Outcome.NOT_COPIED, f"the next record, {ours[0].offset} on the source, is not copied yet"
    elif len(ahead) <= position.read_again:
        outcome, text = Outcome.READ_AGAIN, f"{len(ahead)} records would be read again"
    elif copy.compacted:
        outcome, text = Outcome.COMPACTED, "compaction may have removed records on one side only"
    else:
        more = "" if len(ahead) < position.records else " or more"
        outcome = Outcome.TOO_EARLY
        text = f"no record follows on the source, {len(ahead)}{more} on the target: too early, would be read twice"
    return Compared(position=position, outcome=outcome, text=text, skipped=skipped)


def _copied(
    records: Iterable[Print], ahead: Sequence[Print], there: int, announced: Mapping[int, Announcement]
) -> tuple[list[Print], int]:
    """Leave out the source's records that the copy skipped on purpose; returns the others, and the number skipped."""
    starts = _starts(announced)
    kept: list[Print] = []
    skipped = 0
    following = there
    for one in records:
        if one.offset < starts.get(following, 0):
            skipped += 1
            continue
        number = len(kept)
        kept.append(one)
        following = ahead[number].offset + 1 if number < len(ahead) else following + 1
    return kept, skipped


def _shift(ours: Sequence[Print], there: Sequence[Print], position: int) -> int | None:
    """By how many records the target's position has to move for the same records to follow; None if none does."""
    begin = next((number for number, one in enumerate(there) if one.offset >= position), len(there))
    for first in sorted(range(len(there)), key=lambda number: abs(number - begin)):
        pairs = list(zip(ours, there[first:], strict=False))
        if first != begin and all(one.content == other.content for one, other in pairs):
            return first - begin
    return None
