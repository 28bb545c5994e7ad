"""Each place where a group's offset may be has a defined answer, and none is ever ahead of the group."""

from __future__ import annotations

from dataclasses import replace

from mirrorless.offsets.offset_map import MOST_RUNS, OffsetMap, Run, RunStore, points, taken_over
from mirrorless.offsets.translation import How, Translated, Unknown, WalkNeeded, translate
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement, Progress
from tests.support.known import PLACE, Known, announced, sync


def taken_over_at(offset: int) -> Announcement:
    kind = EpochKind.AFTER_MIRRORMAKER2
    return Announcement(epoch=1, start=offset, downstream=offset + 20, kind=kind, reason="taken over")


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
    assert Known([sync(199, 149, 100)]).at(99) == Unknown("the offset is before the oldest offset sync")
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
    behind = points(None, epochs := {1: taken_over_at(500)})
    line = OffsetMap.of([Run(0, 0, 100)], behind, foreign=taken_over(epochs))
    assert translate(300, line=line, nearest=None, target_end=999) == Translated(100, How.NEAREST)


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
    lost = Announcement(
        epoch=1, start=900, downstream=900, kind=EpochKind.TARGET_LOST, reason="it ends at 900", after=(0, 900)
    )
    said = announced((0, 0)) | {1: lost}
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
    line = OffsetMap.of([], [Run(5000, 0, 0), Run(9000, 3000, 0)])
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
