"""Ranges of a partition whose records must be the same, one by one, on both sides. No I/O.

The copy is dense and in order, so the n-th committed record of the source at or after a pair of offsets is the n-th
one of the target. Pairs are the certain knowledge about a partition: its offset runs, and the end of the copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.offsets.offset_map import OffsetMap

MOST_PIECES: Final = 32
"""Maximum number of pieces of a partition; each is a task."""

PIECE_RECORDS: Final = 1_000_000


class Pair(NamedTuple):
    """The first committed record at or after `upstream` is the one at or after `downstream`."""

    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """A source partition's offsets from `first_upstream` to `end_upstream`, and those of its copy; ends are exclusive.

    Both sides begin with the same record. A `closed` range ends with the same record too; in an open one the source may
    have more, which is not copied yet. `same_offsets`: a record has the same offset on both sides.
    """

    topic: str
    partition: int
    remote_topic: str
    first_upstream: int
    end_upstream: int
    first_downstream: int
    end_downstream: int
    closed: bool
    same_offsets: bool = False

    @property
    def begin(self) -> Pair:
        """Where it begins."""
        return Pair(self.first_upstream, self.first_downstream)

    def part(self, begin: Pair, end: Pair) -> OffsetRange:
        """A closed part of it."""
        return replace(
            self,
            first_upstream=begin.upstream,
            end_upstream=end.upstream,
            first_downstream=begin.downstream,
            end_downstream=end.downstream,
            closed=True,
        )

    def rest(self, begin: Pair) -> OffsetRange:
        """What follows `begin`."""
        return replace(self, first_upstream=begin.upstream, first_downstream=begin.downstream)


def upstream_of(line: OffsetMap, downstream: int) -> int | None:
    """The exact upstream offset of a downstream one, if a run has it."""
    run, _ = line.at_downstream(downstream)
    if run is None or downstream > run.end_downstream:
        return None
    return run.first_upstream + downstream - run.first_downstream


def pair_near(line: OffsetMap, downstream: int) -> Pair | None:
    """An exact pair at `downstream`, or the next known one after it."""
    if (upstream := upstream_of(line, downstream)) is not None:
        return Pair(upstream, downstream)
    _, following = line.at_downstream(downstream)
    return None if following is None else Pair(following.first_upstream, following.first_downstream)


def pair_at_upstream(line: OffsetMap, upstream: int) -> Pair | None:
    """The same, by the upstream side."""
    run, following = line.at(upstream)
    if run is not None and upstream <= run.end_upstream:
        return Pair(upstream, run.first_downstream + upstream - run.first_upstream)
    return None if following is None else Pair(following.first_upstream, following.first_downstream)


def pieces(
    stretch: OffsetRange, line: OffsetMap, *, share: float = 1.0, least_records: int = 10_000
) -> Iterator[OffsetRange]:
    """Split a closed range at exact pairs, so that tasks can share it; keep about `share` of it, spread evenly.

    A part without exact pairs in it stays in one piece, and is then kept as a whole.
    """
    length = stretch.end_downstream - stretch.first_downstream
    wanted = max(least_records if share < 1 else PIECE_RECORDS, -(-int(length * share) // MOST_PIECES), 1)
    step = max(wanted, int(wanted / share))
    begin = stretch.begin
    end = Pair(stretch.end_upstream, stretch.end_downstream)
    while begin.downstream < end.downstream or begin.upstream < end.upstream:
        stop = _cut(line, begin, end, wanted)
        yield stretch.part(begin, stop)
        if stop == end:
            return
        begin = stop if step == wanted else _cut(line, begin, end, step)
        if begin == end:
            return


def _cut(line: OffsetMap, begin: Pair, end: Pair, records: int) -> Pair:
    found = pair_near(line, begin.downstream + records)
    if found is None or not (begin < found and begin.downstream < found.downstream):
        return end
    return found if found.downstream < end.downstream and found.upstream < end.upstream else end
