"""Where a copy goes on, case by case (design, section 5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.progress import Progress
from mirrorless.copy.resume import Begin, GoOn, Lost, TargetState, decide

OURS = Progress(last_offset=99, sequence=100, epoch=0, last_downstream=99)


def test_nothing_was_ever_copied() -> None:
    empty = TargetState(log_start=0, log_end=0)
    assert decide(progress=None, starts={}, target=empty) == Begin(epoch=0, start=None, reason="first copy")


def test_the_target_is_exactly_where_the_progress_says() -> None:
    state = TargetState(log_start=0, log_end=100, epoch=0, last_sequence=99)
    assert decide(progress=OURS, starts={0: 0}, target=state) == GoOn(
        epoch=0, walk_from=100, walk_records=0, sequence=100, last_downstream=99
    )


def test_the_target_is_ahead_of_the_progress() -> None:
    state = TargetState(log_start=0, log_end=130, epoch=0, last_sequence=129)
    assert decide(progress=OURS, starts={0: 0}, target=state) == GoOn(
        epoch=0, walk_from=100, walk_records=30, sequence=130, last_downstream=129
    )


@given(st.integers(0, SEQUENCES - 1), st.integers(0, 1_000_000))
def test_being_ahead_is_counted_across_the_wrap(sequence: int, ahead: int) -> None:
    progress = Progress(last_offset=10, sequence=sequence, epoch=2, last_downstream=10)
    state = TargetState(log_start=0, log_end=11 + ahead, epoch=2, last_sequence=(sequence + ahead - 1) % SEQUENCES)
    decision = decide(progress=progress, starts={2: 0}, target=state)
    assert isinstance(decision, GoOn)
    assert (decision.walk_records, decision.sequence) == (ahead, (sequence + ahead) % SEQUENCES)


def test_the_broker_has_forgotten_and_the_log_is_empty() -> None:
    state = TargetState(log_start=100, log_end=100)
    assert decide(progress=OURS, starts={0: 0}, target=state) == GoOn(
        epoch=0, walk_from=100, walk_records=0, sequence=100, last_downstream=99
    )


@pytest.mark.parametrize(
    "state",
    [
        TargetState(log_start=0, log_end=60, epoch=0, last_sequence=59),
        TargetState(log_start=0, log_end=0),
        TargetState(log_start=0, log_end=100, epoch=0, last_sequence=98),
        TargetState(log_start=0, log_end=140, foreign_tail=True),
    ],
    ids=["truncated", "created again", "behind by one", "foreign records on top"],
)
def test_a_target_behind_the_progress_is_a_gap(state: TargetState) -> None:
    assert isinstance(decide(progress=OURS, starts={0: 0}, target=state), Lost)


def test_a_higher_epoch_on_the_target_is_counted_from_its_announcement() -> None:
    state = TargetState(log_start=0, log_end=110, epoch=1, last_sequence=9)
    assert decide(progress=OURS, starts={0: 0, 1: 500}, target=state) == GoOn(
        epoch=1, walk_from=500, walk_records=10, sequence=10, last_downstream=109
    )
    assert isinstance(decide(progress=OURS, starts={0: 0}, target=state), Lost)


def test_a_first_copy_that_died_before_its_first_progress() -> None:
    state = TargetState(log_start=0, log_end=25, epoch=0, last_sequence=24)
    assert decide(progress=None, starts={0: 7}, target=state) == GoOn(
        epoch=0, walk_from=7, walk_records=25, sequence=25, last_downstream=24
    )


def test_behind_mirrormaker_a_new_epoch_begins() -> None:
    theirs = Progress(last_offset=499)
    foreign = TargetState(log_start=0, log_end=480, foreign_tail=True)
    assert decide(progress=theirs, starts={}, target=foreign) == Begin(
        epoch=0, start=500, reason="behind MirrorMaker 2"
    )
    handed_back = TargetState(log_start=0, log_end=480, epoch=3, last_sequence=9)
    assert decide(progress=theirs, starts={3: 200}, target=handed_back) == Begin(
        epoch=4, start=500, reason="behind MirrorMaker 2"
    )


def test_the_epoch_behind_mirrormaker_is_not_begun_twice() -> None:
    theirs = Progress(last_offset=499)
    announced = TargetState(log_start=0, log_end=480, foreign_tail=True)
    assert decide(progress=theirs, starts={0: 500}, target=announced) == Begin(
        epoch=0, start=500, reason="behind MirrorMaker 2"
    )
    begun = TargetState(log_start=0, log_end=485, epoch=0, last_sequence=4)
    assert decide(progress=theirs, starts={0: 500}, target=begun) == GoOn(
        epoch=0, walk_from=500, walk_records=5, sequence=5, last_downstream=484
    )


def test_a_takeover_that_was_cut_off_before_its_first_append_goes_on() -> None:
    begun = Progress(last_offset=499, sequence=0, epoch=0, last_downstream=479)
    still_theirs = TargetState(log_start=0, log_end=480, foreign_tail=True)
    decision = decide(progress=begun, starts={0: 500}, target=still_theirs)
    assert decision == GoOn(epoch=0, walk_from=500, walk_records=0, sequence=0, last_downstream=479)
