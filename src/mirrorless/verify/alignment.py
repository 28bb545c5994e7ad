"""Aligns two sequences of records that begin with the same record and differ somewhere. No I/O.

Where they differ, the nearest position is searched from which on both match again; what is before it is missing,
extra, duplicated, changed or out of order. Like `diff`, it cannot know what happened, and assumes the smallest change.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.verify.findings import DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CONFIRMED_BY: Final = 3
_AHEAD: Final = (100, 10_000)
_RECENT: Final = 10_000
_SAME_HASHES: Final = 8


class Print(NamedTuple):
    """A record's fingerprint: its offset, hashes of its fields, and its timestamp in ms."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: bytes | None
    timestamp: int

    @property
    def content(self) -> tuple[object, ...]:
        """All but the offset."""
        return self[1:]


class Piece(NamedTuple):
    """A difference: a number of records from these offsets on; `fields` as in `Difference`."""

    kind: DifferenceKind
    upstream: int | None
    downstream: int | None
    records: int
    fields: tuple[str, ...] = ()


@dataclass(slots=True)
class Ahead:
    """The next records; `get` reads only as many as are requested."""

    records: Iterator[Print]
    waiting: deque[Print]
    taken: int = 0

    @classmethod
    def of(cls, records: Iterator[Print]) -> Ahead:
        """Buffer `records`."""
        return cls(records, deque())

    def first(self) -> Print | None:
        """The next record, None at the end."""
        if not self.waiting:
            self.get(1)
        return self.waiting[0] if self.waiting else None

    def get(self, count: int) -> list[Print]:
        """The next `count` records, or as many as there are; they stay in the buffer."""
        while len(self.waiting) < count and (one := next(self.records, None)) is not None:
            self.waiting.append(one)
        return [self.waiting[at] for at in range(min(count, len(self.waiting)))]

    def take(self, count: int) -> None:
        """Skip `count` records."""
        for _ in range(count):
            self.waiting.popleft()
        self.taken += count


class Alignment:
    """Two sides that are aligned step by step."""

    def __init__(self, source: Iterator[Print], target: Iterator[Print]) -> None:
        self.source, self.target = Ahead.of(source), Ahead.of(target)
        self._recent: deque[tuple[object, ...]] = deque(maxlen=_RECENT)
        self._seen: Counter[tuple[object, ...]] = Counter()

    def same(self) -> bool:
        """Advance over one record if both sides have the same next record."""
        ours, theirs = self.source.first(), self.target.first()
        if ours is None or theirs is None or ours.content != theirs.content:
            return False
        self._remember(theirs)
        self.source.take(1)
        self.target.take(1)
        return True

    def differ(self) -> list[Piece] | None:
        """Return the differences before the next position where both match, and go there; None if there is none.

        Both sides must have a next record.
        """
        for ahead in _AHEAD:
            ours, theirs = self.source.get(ahead), self.target.get(ahead)
            met = _meeting(ours, theirs, ahead, at_last=ahead == _AHEAD[-1])
            if met is not None:
                return self._between(ours[: met[0]], theirs[: met[1]])
        return None

    def surplus(self, theirs: Sequence[Print], *, upstream: int | None = None) -> list[Piece]:
        """Records that the target has and the source, before `upstream`, has not: duplicated if they were there."""
        pieces: list[Piece] = []
        for one in theirs:
            kind = DifferenceKind.DOUBLED if self._seen[one.content] else DifferenceKind.EXTRA
            if pieces and pieces[-1].kind is kind:
                pieces[-1] = pieces[-1]._replace(records=pieces[-1].records + 1)
            else:
                pieces.append(Piece(kind, upstream, one.offset, 1))
        return pieces

    def _between(self, ours: list[Print], theirs: list[Print]) -> list[Piece]:
        """Classify the records before the position where both match, and go there."""
        self.source.take(len(ours))
        self.target.take(len(theirs))
        if Counter(one.content for one in ours) == Counter(one.content for one in theirs):
            for one in theirs:
                self._remember(one)
            return [Piece(DifferenceKind.OUT_OF_ORDER, ours[0].offset, theirs[0].offset, len(ours))]
        pieces: list[Piece] = []
        steps = SequenceMatcher(None, [one.content for one in ours], [one.content for one in theirs], autojunk=False)
        for step, at, end, other, other_end in steps.get_opcodes():
            if step != "equal":
                pieces += self._step(ours[at:], theirs[other:], end - at, other_end - other)
            for one in theirs[other:other_end]:
                self._remember(one)
        return pieces

    def _step(self, ours: list[Print], theirs: list[Print], count: int, other_count: int) -> list[Piece]:
        """Compare so many records of each side with each other; the records after them are buffered too."""
        both = min(count, other_count)
        pieces = [
            Piece(DifferenceKind.CHANGED, one.offset, other.offset, 1, _fields(one, other))
            for one, other in zip(ours[:both], theirs[:both], strict=True)
        ]
        behind = theirs[both].offset if both < len(theirs) else self._offset(self.target)
        if count > both:
            pieces.append(Piece(DifferenceKind.MISSING, ours[both].offset, behind, count - both))
        elif other_count > both:
            upstream = ours[both].offset if both < len(ours) else self._offset(self.source)
            pieces += self.surplus(theirs[both:other_count], upstream=upstream)
        return pieces

    @staticmethod
    def _offset(side: Ahead) -> int | None:
        following = side.first()
        return None if following is None else following.offset

    def _remember(self, one: Print) -> None:
        if len(self._recent) == _RECENT:
            oldest = self._recent[0]
            self._seen[oldest] -= 1
            if not self._seen[oldest]:
                del self._seen[oldest]
        self._recent.append(one.content)
        self._seen[one.content] += 1


def _meeting(ours: list[Print], theirs: list[Print], ahead: int, *, at_last: bool) -> tuple[int, int] | None:
    """How many records of each side are before the nearest position where both match again.

    With `at_last` no more records will be read: if the target ends first, there is no such position then.
    """
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, one in enumerate(theirs):
        if len(places[one.content]) < _SAME_HASHES:
            places[one.content].append(at)
    best: tuple[int, int] | None = None
    for at, one in enumerate(ours):
        if best is not None and at >= sum(best):
            break
        for other in places.get(one.content, ()):
            if (best is None or at + other < sum(best)) and _together(ours, theirs, at, other):
                best = at, other
    if best is None and len(ours) < ahead and len(theirs) < ahead:
        return len(ours), len(theirs)  # both end here
    if best is None and at_last and len(theirs) < ahead:
        return min(len(ours), len(theirs)), len(theirs)
    return best


def _together(ours: list[Print], theirs: list[Print], at: int, other: int) -> bool:
    """Whether the next few records are the same; fewer suffice at the end of a side."""
    for step in range(1, _CONFIRMED_BY):
        if at + step >= len(ours) or other + step >= len(theirs):
            return True
        if ours[at + step].content != theirs[other + step].content:
            return False
    return True


def _fields(one: Print, other: Print) -> tuple[str, ...]:
    return tuple(
        name for name in ("key", "value", "headers", "timestamp") if getattr(one, name) != getattr(other, name)
    )
