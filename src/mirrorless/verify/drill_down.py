"""Finds the records that differ in windows that differ: reads one by one, from the first window that differs on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.verify.alignment import Alignment, Piece, Print
from mirrorless.verify.findings import Difference, DifferenceKind
from mirrorless.verify.ranges import OffsetRange, Pair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.verify.window import Window

MOST_DIFFERENCES: Final = 100
"""Of one range; the existence of more is reported."""

READ_RECORDS: Final = 200_000
"""Records read one by one before the rest is compared by Spark again."""


_UNLIKE: Final = "nothing in common within 10,000 records"


class RecordReader(Protocol):
    """Reads a side; see `fingerprints`."""

    def read(self, topic: str, partition: int, *, first: int, end: int) -> Iterator[Print]:
        """Yield the records at these offsets."""
        ...


@dataclass(slots=True)
class DrillDown:
    """The differences of a range. `rest` is still to be compared by windows: a missing or extra record shifted it.

    `not_copied` are records of the source after the target's last one. `more` as in `PartitionResult`.
    """

    differences: list[Difference] = field(default_factory=list)
    rest: OffsetRange | None = None
    not_copied: int = 0
    more: bool = False

    @property
    def unexplained(self) -> bool:
        """Whether no record differs although windows do: one of the two reads was wrong."""
        return not self.differences and self.rest is None and not self.not_copied


def narrow(
    stretch: OffsetRange,
    windows: Sequence[Window],
    *,
    source: RecordReader,
    target: RecordReader,
    read_records: int = READ_RECORDS,
) -> DrillDown:
    """Find the differences of a range by its windows."""
    return _DrillDown(stretch, windows, source, target, read_records).run()


@dataclass(slots=True)
class _DrillDown:
    stretch: OffsetRange
    windows: Sequence[Window]
    source: RecordReader
    target: RecordReader
    read_records: int
    found: DrillDown = field(default_factory=DrillDown)

    def run(self) -> DrillDown:
        at = self._next_different(0)
        while at is not None:
            at = self._from_window(at)
        return self.found

    def _next_different(self, at: int) -> int | None:
        return next((number for number in range(at, len(self.windows)) if not self.windows[number].same), None)

    def _from_window(self, at: int) -> int | None:
        """Compare records from window `at` on; returns the next window that differs, None if there is none."""
        stretch, window = self.stretch, self.windows[at]
        if window.remote_records == 0 and not stretch.closed:
            self.found.not_copied = sum(one.records for one in self.windows[at:])
            return None
        first_upstream = stretch.end_upstream if window.first_upstream is None else window.first_upstream
        first_downstream = stretch.end_downstream if window.first_downstream is None else window.first_downstream
        both = Alignment(
            self.source.read(stretch.topic, stretch.partition, first=first_upstream, end=stretch.end_upstream),
            self.target.read(
                stretch.remote_topic, stretch.partition, first=first_downstream, end=stretch.end_downstream
            ),
        )
        borders = {
            (one.first_upstream, one.first_downstream): number
            for number, one in enumerate(self.windows)
            if number > at and one.same
        }
        while True:
            ours, theirs = both.source.first(), both.target.first()
            if ours is None or theirs is None:
                self._ending(at, both)
                return None
            number = borders.get((ours.offset, theirs.offset))
            if number is not None:
                return self._next_different(number)
            if both.target.taken > self.read_records:
                self.found.rest = stretch.rest(Pair(ours.offset, theirs.offset))
                return None
            if both.same():
                continue
            pieces = both.differ()
            self._tell([Piece(DifferenceKind.UNLIKE, ours.offset, theirs.offset, 0)] if pieces is None else pieces)
            if pieces is None or len(self.found.differences) >= MOST_DIFFERENCES:
                self.found.more = True
                return None

    def _ending(self, at: int, both: Alignment) -> None:
        """Handle the end of one side: what is left on the other one is counted by windows instead of read."""
        ours, theirs = both.source.first(), both.target.first()
        if theirs is not None:
            left = sum(one.remote_records for one in self.windows[at:]) - both.target.taken
            some = both.target.get(min(left, MOST_DIFFERENCES))
            pieces = both.surplus(some)
            if pieces and left > len(some):
                pieces[-1] = pieces[-1]._replace(records=pieces[-1].records + left - len(some))
            self._tell(pieces)
        elif ours is not None:
            left = sum(one.records for one in self.windows[at:]) - both.source.taken
            if self.stretch.closed:
                self._tell([Piece(DifferenceKind.MISSING, ours.offset, self.stretch.end_downstream, left)])
            else:
                self.found.not_copied = left

    def _tell(self, pieces: list[Piece]) -> None:
        self.found.differences += [
            Difference(
                kind=one.kind,
                topic=self.stretch.topic,
                remote_topic=self.stretch.remote_topic,
                partition=self.stretch.partition,
                upstream=one.upstream,
                downstream=one.downstream,
                records=one.records or None,
                fields=one.fields,
                what=_UNLIKE if one.kind is DifferenceKind.UNLIKE else "",
            )
            for one in pieces
        ]
