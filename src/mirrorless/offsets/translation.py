"""Translates a group's offset on the source to the offset on the target where it continues. Pure; walks are requested.

Exact means: the first record on the target that the group has not read. An inexact answer is before that, never
after. The cases:

| where the group's offset is | answer | `How` |
|---|---|---|
| inside a run, or just after it | as far into the run downstream | `run` |
| in a gap between two runs that meet downstream | where they meet | `hole` |
| between two runs with records in between | counted by a walk of the source | `walk` |
| before everything that was ever copied | the first record on the target | `before` |
| on a partition of which nothing is on the target yet | 0 | `empty` |
| beyond everything copied | the target's end | `beyond` |
| on a topic with records of several origins | the first record of any origin that was not read | `merged` |
| at a sync of MirrorMaker 2, or just after it | that pair | `pair` |
| anywhere else after one, or where a walk is impossible | one past the nearest pair below | `nearest` |
| before the oldest pair, or nothing is known | none, with the reason | |

If retention has deleted the target's records beyond an answer, it is the first offset left: `start`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirrorless.formats import OffsetSync
    from mirrorless.offsets.offset_map import OffsetMap, Run


class How(StrEnum):
    """How an answer was found; all but `NEAREST` are exact. `CHECKPOINT` is that of the last checkpoint.

    `FOLLOWED` is the offset that was committed on the target since then.
    """

    RUN = "run"
    HOLE = "hole"
    WALK = "walk"
    BEFORE = "before"
    EMPTY = "empty"
    BEYOND = "beyond"
    PAIR = "pair"
    NEAREST = "nearest"
    START = "start"
    MERGED = "merged"
    CHECKPOINT = "checkpoint"
    FOLLOWED = "followed"


@dataclass(frozen=True, slots=True)
class Translated:
    """The downstream offset to continue from."""

    downstream: int
    how: How

    @property
    def exact(self) -> bool:
        """Whether it is the first record that the group has not read."""
        return self.how not in (How.NEAREST, How.CHECKPOINT, How.FOLLOWED)


@dataclass(frozen=True, slots=True)
class Unknown:
    """There is no answer, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkNeeded:
    """Count the committed records of the source in `[from_upstream, until)`; see `counted` and `not_counted`.

    `ceiling` is a downstream offset that the answer cannot exceed; `at_end` says that it is the target's end.
    """

    from_upstream: int
    until: int
    from_downstream: int
    ceiling: int
    at_end: bool
    fallback: int

    def counted(self, records: int) -> Translated:
        """The answer, once they are counted."""
        downstream = self.from_downstream + records
        if self.at_end and downstream >= self.ceiling:
            return Translated(self.ceiling, How.BEYOND)
        return Translated(min(downstream, self.ceiling), How.WALK)

    def not_counted(self) -> Translated:
        """The answer if counting is impossible: the nearest pair below, as in MirrorMaker 2."""
        return Translated(min(self.fallback, self.ceiling), How.NEAREST)


def inside_log(answer: Translated | Unknown, start: int) -> Translated | Unknown:
    """Raise an answer before `start`, the first offset that the remote partition still has, to it."""
    if isinstance(answer, Translated) and answer.downstream < start:
        return Translated(start, How.START)
    return answer


def translate(
    offset: int, *, line: OffsetMap, nearest: OffsetSync | None, target_end: int
) -> Translated | WalkNeeded | Unknown:
    """Translate upstream `offset` of one partition.

    `line` is what is certain about it, `nearest` the 64-slot store's sync at or below the offset. `target_end` is the
    remote partition's end; it must have been read before anything that `line` was made of, so that no epoch
    began unnoticed between the two.
    """
    found = _translate(offset, line, nearest, target_end)
    if isinstance(found, Translated) and found.downstream > target_end:
        return Translated(target_end, How.BEYOND)
    if isinstance(found, WalkNeeded) and found.ceiling > target_end:
        return replace(found, ceiling=target_end, at_end=True)
    return found


def _translate(
    offset: int, line: OffsetMap, nearest: OffsetSync | None, target_end: int
) -> Translated | WalkNeeded | Unknown:
    run, following = line.at(offset)
    if nearest is not None and not _fits(nearest, run, following):
        nearest = None
    if run is None:
        if nearest is not None:
            return _by_pair(offset, nearest)
        if target_end == 0:
            return Translated(0, How.EMPTY)
        if following is not None and following.first_downstream == 0:
            return Translated(0, How.BEFORE)
        return Unknown("the offset is before the oldest offset sync" if following else "there is no offset sync yet")
    if offset <= run.end_upstream:
        return Translated(run.first_downstream + offset - run.first_upstream, How.RUN)
    if following is not None and following.first_downstream == run.end_downstream:
        return Translated(run.end_downstream, How.HOLE)
    if not line.countable(run, following):
        # MirrorMaker 2 copied there; which records it skipped or repeated is not known.
        return Translated(run.end_downstream, How.NEAREST) if nearest is None else _by_pair(offset, nearest)
    if following is not None:
        if following.shift == run.shift:
            # As many records as offsets: there is no gap between the two.
            return Translated(offset - run.shift, How.RUN)
    elif run.end_downstream >= target_end:
        return Translated(target_end, How.BEYOND)
    return WalkNeeded(
        from_upstream=run.end_upstream,
        until=offset,
        from_downstream=run.end_downstream,
        ceiling=target_end if following is None else following.first_downstream,
        at_end=following is None,
        fallback=run.end_downstream if nearest is None else _by_pair(offset, nearest).downstream,
    )


def _fits(pair: OffsetSync, run: Run | None, following: Run | None) -> bool:
    """Whether a pair is between two neighbours of the map, on both sides; others are of an earlier epoch."""
    if following is not None and pair.last_downstream >= following.first_downstream:
        return False
    if run is None:
        return pair.run is None  # one of this program would be in the map
    return pair.last_upstream >= run.end_upstream and pair.last_downstream >= run.end_downstream


def _by_pair(offset: int, nearest: OffsetSync) -> Translated:
    if offset == nearest.last_upstream:
        return Translated(nearest.last_downstream, How.PAIR)
    just_behind = offset == nearest.last_upstream + 1
    return Translated(nearest.last_downstream + 1, How.PAIR if just_behind else How.NEAREST)
