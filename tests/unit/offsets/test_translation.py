"""Each place where a group's offset may be has a defined answer, and none is ever ahead of the group."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.copy.progress import Announcement, Progress
from mirrorless.copy.resume import Begin, TargetState, decide
from mirrorless.copy.sync_schedule import Appended, SyncSchedule
from mirrorless.errors import GapKind
from mirrorless.formats import OffsetSync
from mirrorless.offsets.runs import BEHIND_MIRRORMAKER, MOST_RUNS, Line, Run, RunStore, points, taken_over
from mirrorless.offsets.sync_store import SyncStore
from mirrorless.offsets.translation import How, Translated, Unknown, WalkNeeded, translate
from mirrorless.offsets.way_back import look_up

PLACE = ("t", 0)


def announced(*epochs: tuple[int, int]) -> dict[int, Announcement]:
    return {
        epoch: Announcement(epoch=epoch, start=start, downstream=downstream, reason="test")
        for epoch, (start, downstream) in enumerate(epochs)
    }


def sync(upstream: int, downstream: int, run: int | None = None) -> OffsetSync:
    return OffsetSync(topic="t", partition=0, last_upstream=upstream, last_downstream=downstream, run=run)


@dataclass
class Known:
    """What a checkpoint function would have read."""

    syncs: list[OffsetSync]
    epochs: tuple[tuple[int, int], ...] = ()
    progress: Progress | None = None
    target_end: int = 1_000_000
    slots: SyncStore = field(init=False)
    line: Line = field(init=False)

    def __post_init__(self) -> None:
        self.slots, runs = SyncStore(), RunStore()
        for one in self.syncs:
            self.slots.add(one)
            runs.add(one)
        self.slots.initialized()
        self.line = Line.of(
            runs.runs(PLACE), points(self.progress, announced(*self.epochs)), foreign=runs.foreign(PLACE)
        )

    def at(self, offset: int) -> Translated | WalkNeeded | Unknown:
        nearest = self.slots.nearest(PLACE, offset)
        return translate(offset, line=self.line, nearest=nearest, target_end=self.target_end)


def test_inside_a_run_at_its_ends_and_just_behind_it() -> None:
    known = Known([sync(199, 149, 100)])
    assert [known.at(offset) for offset in (100, 150, 199, 200)] == [
        Translated(downstream, How.RUN) for downstream in (50, 100, 149, 150)
    ]


def test_in_a_hole_between_two_runs_that_meet() -> None:
    known = Known([sync(99, 99, 100), sync(119, 109, 10)])
    assert [known.at(offset) for offset in (100, 101, 105, 109, 110)] == [
        Translated(100, how) for how in (How.RUN, How.HOLE, How.HOLE, How.HOLE, How.RUN)
    ]


def test_between_two_runs_without_a_hole_nothing_has_to_be_counted() -> None:
    known = Known([sync(99, 99, 100), sync(999, 999, 10)])
    assert known.at(500) == Translated(500, How.RUN)


def test_between_two_runs_with_records_and_holes_it_is_counted() -> None:
    known = Known([sync(99, 99, 100), sync(999, 899, 10)])
    walk = known.at(500)
    assert walk == WalkNeeded(
        from_upstream=100, until=500, from_downstream=100, ceiling=890, at_end=False, fallback=100
    )
    assert isinstance(walk, WalkNeeded)
    assert walk.counted(300) == Translated(400, How.WALK)
    assert walk.counted(5000) == Translated(890, How.WALK)
    assert walk.not_counted() == Translated(100, How.NEAREST)


def test_before_the_first_run() -> None:
    assert Known([sync(199, 149, 100)]).at(99) == Unknown("it lies before every offset sync that is left")
    # The copy began at upstream 100, and nothing stood on the target before it.
    assert Known([sync(199, 99, 100)]).at(7) == Translated(0, How.BEFORE)
    # Where the copy began is known from the progress topic, and the source has it still.
    known = Known([sync(199, 149, 10)], epochs=((0, 0),))
    assert known.at(60) == WalkNeeded(
        from_upstream=0, until=60, from_downstream=0, ceiling=140, at_end=False, fallback=0
    )


def test_on_a_partition_without_anything() -> None:
    assert Known([], target_end=0).at(0) == Translated(0, How.EMPTY)
    assert Known([], target_end=0).at(4711) == Translated(0, How.EMPTY)
    assert Known([], target_end=5).at(0) == Unknown("there is no offset sync yet")


def test_beyond_everything_copied() -> None:
    known = Known([sync(99, 99, 100)], target_end=100)
    assert known.at(100) == Translated(100, How.RUN)
    assert known.at(101) == Translated(100, How.BEYOND)
    assert known.at(5000) == Translated(100, How.BEYOND)


def test_the_target_may_be_further_than_the_newest_sync() -> None:
    walk = Known([sync(99, 99, 100)], target_end=120).at(5000)
    assert walk == WalkNeeded(
        from_upstream=100, until=5000, from_downstream=100, ceiling=120, at_end=True, fallback=100
    )
    assert isinstance(walk, WalkNeeded)
    assert walk.counted(15) == Translated(115, How.WALK)
    assert walk.counted(4900) == Translated(120, How.BEYOND)


def test_markers_behind_the_last_record_are_no_lag_where_the_progress_is_behind_them() -> None:
    progress = Progress(last_offset=100, sequence=100, epoch=0, last_downstream=99)
    known = Known([sync(99, 99, 100)], epochs=((0, 0),), progress=progress, target_end=100)
    assert known.at(101) == Translated(100, How.RUN)


def test_with_mirrormakers_own_pairs_the_answer_is_its_own() -> None:
    known = Known([sync(100, 40), sync(200, 130)])
    assert [known.at(offset) for offset in (99, 100, 101, 150, 200, 201, 9999)] == [
        Unknown("there is no offset sync yet"),
        Translated(40, How.PAIR),
        Translated(41, How.PAIR),
        Translated(41, How.NEAREST),
        Translated(130, How.PAIR),
        Translated(131, How.PAIR),
        Translated(131, How.NEAREST),
    ]


def test_where_mirrormaker_copied_nothing_is_counted() -> None:
    # Ours, then MirrorMaker 2's, then ours again behind it.
    known = Known([sync(99, 99, 100), sync(9000, 9050), sync(9999, 10_049, 10)], target_end=20_000)
    assert known.at(800) == Translated(100, How.NEAREST)
    assert known.at(9500) == Translated(9051, How.NEAREST)
    assert known.at(9995) == Translated(10_045, How.RUN)
    # Its last sync is compacted away, but our announcement says that we went on behind it.
    behind = points(None, epochs := {1: Announcement(epoch=1, start=500, downstream=520, reason=BEHIND_MIRRORMAKER)})
    line = Line.of([Run(0, 0, 100)], behind, foreign=taken_over(epochs))
    assert translate(300, line=line, nearest=None, target_end=999) == Translated(100, How.NEAREST)


def test_the_copy_announces_a_takeover_by_the_reason_that_is_looked_for_here() -> None:
    target = TargetState(log_end=500)
    decision = decide(progress=Progress(last_offset=499), announced={}, target=target)
    assert isinstance(decision, Begin)
    assert decision.reason == BEHIND_MIRRORMAKER


def test_a_remote_topic_that_was_created_again_voids_what_was_before() -> None:
    # The copy went on at upstream 5000, from downstream 0 on; no sync says so yet.
    known = Known([sync(999, 999, 1000)], epochs=((0, 0), (5000, 0)), target_end=30)
    assert known.at(500) == Translated(0, How.BEFORE)
    assert known.at(5000) == Translated(0, How.RUN)
    plain = Known([sync(999, 999)], epochs=((5000, 0),), target_end=30)
    assert plain.at(1000) == Translated(0, How.BEFORE)
    later = Known([sync(999, 999, 1000), sync(5029, 29, 30)], target_end=30)
    assert later.at(500) == Translated(0, How.BEFORE)


def test_a_source_topic_that_was_created_again_voids_what_was_before() -> None:
    known = Known([sync(999, 999, 1000), sync(49, 1049, 50)], epochs=((0, 0), (0, 1000)))
    assert known.at(20) == Translated(1020, How.RUN)
    assert known.at(900) == WalkNeeded(
        from_upstream=50, until=900, from_downstream=1050, ceiling=1_000_000, at_end=True, fallback=1050
    )


def test_of_two_incarnations_that_begin_at_the_same_offset_the_later_one_counts() -> None:
    known = Known([sync(49, 1049, 50)], epochs=((0, 0), (0, 1000)), progress=Progress(49, 50, 1, 1049))
    assert known.line.runs[0] == Run(0, 1000, 50)


def test_an_epoch_that_was_reset_before_it_began_says_nothing() -> None:
    # Reset to the beginning, then to 500, before the copy took up either.
    known = Known([sync(999, 999, 1000)], epochs=((0, 0), (0, 1000), (500, 1000)))
    walk = known.at(300)
    assert isinstance(walk, WalkNeeded)
    assert (walk.from_upstream, walk.counted(300)) == (0, Translated(300, How.WALK))
    assert isinstance(known.at(700), WalkNeeded)  # from the second reset's beginning on


def test_an_epoch_that_never_began_though_the_copy_went_on_says_nothing() -> None:
    said = announced((0, 0), (0, 1000))
    at_second = Announcement(epoch=2, start=500, downstream=1050, reason="reset", stood_at=0)
    assert points(None, said | {2: at_second}) == [Run(0, 0, 0), Run(500, 1050, 0)]
    assert points(None, said | {2: replace(at_second, stood_at=1)}) == [Run(0, 1000, 0), Run(500, 1050, 0)]
    assert points(None, said | {2: replace(at_second, stood_at=None)}) == [Run(0, 1000, 0), Run(500, 1050, 0)]


def test_an_epoch_that_is_void_since_the_copy_went_on_says_nothing() -> None:
    said = announced((0, 0)) | {1: Announcement(epoch=1, start=150, downstream=100, reason="gap", after=(0, 100))}
    before = Progress(last_offset=79, sequence=80, epoch=0, last_downstream=79)
    assert points(before, said) == [Run(0, 0, 0), Run(80, 80, 0), Run(150, 100, 0)]
    behind = Progress(last_offset=999, sequence=1000, epoch=0, last_downstream=999)
    assert points(behind, said) == [Run(0, 0, 0), Run(1000, 1000, 0)]


def test_what_the_target_lost_may_lie_before_the_progress_without_voiding_the_epoch_behind_it() -> None:
    reason = f"{GapKind.TARGET_LOST.value}: it ends at 900; the copy goes on at 900"
    said = announced((0, 0)) | {1: Announcement(epoch=1, start=900, downstream=900, reason=reason, after=(0, 900))}
    before = Progress(last_offset=999, sequence=1000, epoch=0, last_downstream=999)
    assert points(before, said) == [Run(0, 0, 0), Run(900, 900, 0)]


def test_an_epoch_that_another_one_has_overtaken_says_nothing() -> None:
    said = announced((0, 0), (100, 100))
    said[2] = Announcement(epoch=2, start=150, downstream=100, reason="gap", after=(0, 100))
    of_the_first = Progress(last_offset=199, sequence=100, epoch=1, last_downstream=199)
    assert points(of_the_first, said) == [Run(0, 0, 0), Run(100, 100, 0), Run(200, 200, 0)]


def test_thousands_of_epochs_take_no_time() -> None:
    said = {
        epoch: Announcement(epoch=epoch, start=2 * epoch, downstream=epoch, reason="left out", after=(epoch - 1, 1))
        for epoch in range(1, 20_000)
    }
    assert len(points(None, said)) == 19_999


def test_no_answer_reaches_behind_the_targets_end() -> None:
    assert Known([sync(99, 99, 100)], target_end=40).at(70) == Translated(40, How.BEYOND)
    between = Known([sync(99, 99, 100), sync(999, 899, 10)], target_end=40).at(500)
    assert isinstance(between, WalkNeeded)
    assert between.counted(300) == Translated(40, How.BEYOND)
    assert between.not_counted() == Translated(40, How.NEAREST)


def test_a_pair_of_an_earlier_copy_does_not_fit_the_line() -> None:
    # The source lost 5000 records before the copy began anew in an empty topic.
    line = Line.of([], [Run(5000, 0, 0), Run(9000, 3000, 0)])
    assert line.fits(6000, 900)
    assert not line.fits(6000, 1001)  # more records than offsets
    assert not line.fits(8000, 3001)  # it lies behind what comes later
    assert line.fits(4000, 999)  # of what was before nothing is known


def test_a_partition_of_nothing_but_short_runs_does_not_fill_the_memory() -> None:
    store = RunStore()
    for number in range(3 * MOST_RUNS):
        store.add(sync(number * 20 + 9, number * 10 + 9, 10))
    runs = store.runs(PLACE)
    assert MOST_RUNS // 2 < len(runs) <= MOST_RUNS
    assert list(runs) == sorted(runs)
    assert runs[-1] == Run((3 * MOST_RUNS - 1) * 20, (3 * MOST_RUNS - 1) * 10, 10)


def test_of_a_topic_that_was_made_again_only_the_new_runs_count_and_what_was_walked_is_void() -> None:
    store = RunStore()
    store.add(sync(999, 999, 1000))
    before = store.resets(PLACE)
    store.forget()
    assert list(store.runs(PLACE)) == []
    assert store.resets(PLACE) > before
    store.add(sync(1009, 9, 10))
    assert list(store.runs(PLACE)) == [Run(1000, 0, 10)]


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
            append = Appended(
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
    line = Line.of([Run(0, 0, 50), Run(51, 50, 949), Run(2000, 999, 10)], [])
    at = [(offset, look_up(offset, line, compacted=False)) for offset in (49, 50, 51, 999, 1000)]
    assert at == [
        (offset, Translated(home, How.RUN))
        for offset, home in ((49, 49), (50, 50), (51, 52), (999, 1000), (1000, 2001))
    ]


def test_at_the_beginning_of_a_copy_that_began_late_nothing_says_what_a_group_has_read() -> None:
    line = Line.of([], [Run(1000, 0, 0), Run(1100, 100, 0)])
    assert isinstance(look_up(0, line, compacted=False), Unknown)
    assert look_up(7, line, compacted=False) == Translated(1007, How.RUN)
    # Behind what MirrorMaker 2 had copied, who stands there has read that.
    assert look_up(520, Line.of([], [Run(500, 520, 0), Run(600, 620, 0)]), compacted=False) == Translated(500, How.RUN)
