"""Whatever was appended, however it was compacted: every offset translates exactly, or as not ahead, there and back."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.copy.offset_syncs.schedule import AppendedBatch, SyncSchedule
from mirrorless.offsets.inverse_translation import look_up
from mirrorless.offsets.offset_map import OffsetMap, Run
from mirrorless.offsets.translation import How, Translated, Unknown, WalkNeeded
from tests.support.known import Known

if TYPE_CHECKING:
    from mirrorless.formats import OffsetSync


@dataclass(frozen=True)
class Step:
    """An append of the copier: a gap in front, records, holes among them, and what happens around it."""

    gap: int
    count: int
    holes: int
    pause_ms: int
    new_lease: bool
    left_out: bool


STEPS = st.lists(
    st.builds(
        Step,
        gap=st.sampled_from([0, 0, 0, 1, 2]),
        count=st.integers(1, 40),
        holes=st.sampled_from([0, 0, 0, 2]),
        pause_ms=st.sampled_from([0, 10, 700, 2000]),
        new_lease=st.sampled_from([False, False, True]),
        left_out=st.sampled_from([False] * 5 + [True]),
    ),
    min_size=1,
    max_size=25,
)


class Simulated:
    """A source's committed records, the copier's syncs and what the progress topic says, after some steps."""

    def __init__(self, steps: list[Step]) -> None:
        self.records: list[int] = []
        self.copied: list[int] = []
        self.syncs: list[OffsetSync] = []
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        schedule = _schedule()
        upstream = time_ms = 0
        for step in steps:
            time_ms += step.pause_ms
            self.syncs += schedule.due(time_ms=time_ms)
            if step.new_lease or step.left_out:
                self.syncs += schedule.rest(time_ms=time_ms)
                schedule = _schedule()
            if step.left_out:
                self.records.append(upstream)
                upstream += 1
                self.epochs.append((upstream, len(self.copied)))
            upstream += step.gap
            holes = step.holes if step.count > 1 else 0
            last = upstream + step.count + holes - 1
            batch = [*range(upstream, upstream + step.count - 1), last]
            append = AppendedBatch(
                first_upstream=upstream,
                last_upstream=last,
                first_downstream=len(self.copied),
                record_count=step.count,
                dense=not holes,
            )
            self.records += batch
            self.copied += batch
            self.syncs += schedule.appended(append, time_ms=time_ms)
            upstream = last + 1
        self.end = upstream

    def count(self, walk: WalkNeeded) -> int:
        return bisect_left(self.records, walk.until) - bisect_left(self.records, walk.from_upstream)

    def truth(self, offset: int) -> int:
        return bisect_left(self.copied, offset)


def _schedule() -> SyncSchedule:
    return SyncSchedule(topic="t", partition=0, lag_max=20, index_records=100)


def compacted(syncs: list[OffsetSync], clean: int) -> list[OffsetSync]:
    """The topic after its cleaner ran over the first `clean` records."""
    last = {one.key(): number for number, one in enumerate(syncs[:clean])}
    return [one for number, one in enumerate(syncs[:clean]) if last[one.key()] == number] + syncs[clean:]


@given(STEPS, st.integers(0, 200), st.booleans(), st.integers(0, 5))
def test_every_offset_translates_exactly(steps: list[Step], clean: int, with_points: bool, unwritten: int) -> None:
    world = Simulated(steps)
    syncs = compacted(world.syncs, clean)
    known = Known(
        syncs[: len(syncs) - unwritten],
        epochs=tuple(world.epochs) if with_points else (),
        target_end=len(world.copied),
    )
    for offset in range(world.end + 3):
        found, truth = known.at(offset), world.truth(offset)
        if isinstance(found, WalkNeeded):
            assert found.not_counted().downstream <= truth
            if with_points:  # without them a record that was left out would be counted
                assert found.counted(world.count(found)).downstream == truth
        elif isinstance(found, Translated):
            assert found.downstream == truth if found.exact else found.downstream <= truth
        else:
            assert not with_points


@given(STEPS, st.integers(0, 200), st.sets(st.integers(0, 400)))
def test_never_ahead_where_the_source_was_compacted_meanwhile(steps: list[Step], clean: int, gone: set[int]) -> None:
    world = Simulated(steps)
    known = Known(compacted(world.syncs, clean), epochs=tuple(world.epochs), target_end=len(world.copied))
    world.records = [offset for offset in world.records if offset not in gone]
    for offset in range(world.end + 3):
        found = known.at(offset)
        if isinstance(found, WalkNeeded):
            found = found.counted(world.count(found))
        assert isinstance(found, Translated)
        assert found.downstream <= world.truth(offset)


@given(STEPS, st.integers(0, 200), st.booleans())
def test_the_way_back_is_as_exact(steps: list[Step], clean: int, compacted_source: bool) -> None:
    world = Simulated(steps)
    known = Known(compacted(world.syncs, clean), epochs=tuple(world.epochs), target_end=len(world.copied))
    for offset in range(len(world.copied) + 1):
        found = look_up(offset, known.line, compacted=compacted_source)
        if isinstance(found, tuple):
            begin, downstream = found
            ahead = [*(one for one in world.records if one >= begin), world.end]
            found = Translated(ahead[offset - downstream], How.WALK)
        if isinstance(found, Unknown):
            assert offset == known.line.runs[0].first_downstream == 0 < known.line.runs[0].first_upstream
            continue
        back = world.truth(found.downstream)
        assert back == offset if found.exact else back <= offset


def test_where_runs_meet_on_the_target_a_group_returns_to_the_first_that_it_did_not_read() -> None:
    # A record was left out at 50, and a reset passed over 1000 to 1999.
    line = OffsetMap.of([Run(0, 0, 50), Run(51, 50, 949), Run(2000, 999, 10)], [])
    at = [(offset, look_up(offset, line, compacted=False)) for offset in (49, 50, 51, 999, 1000)]
    assert at == [
        (offset, Translated(home, How.RUN))
        for offset, home in ((49, 49), (50, 50), (51, 52), (999, 1000), (1000, 2001))
    ]


def test_at_the_beginning_of_a_copy_that_began_late_nothing_says_what_a_group_has_read() -> None:
    line = OffsetMap.of([], [Run(1000, 0, 0), Run(1100, 100, 0)])
    assert isinstance(look_up(0, line, compacted=False), Unknown)
    assert look_up(7, line, compacted=False) == Translated(1007, How.RUN)
    # Behind what MirrorMaker 2 had copied, who stands there has read that.
    assert look_up(520, OffsetMap.of([], [Run(500, 520, 0), Run(600, 620, 0)]), compacted=False) == Translated(
        500, How.RUN
    )
