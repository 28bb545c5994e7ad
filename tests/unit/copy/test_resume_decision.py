"""Where a copy goes on, case by case (design, section 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.header import SEQUENCES
from mirrorless.copy.resume.decision import (
    Continue,
    Decision,
    Lost,
    OwnRecords,
    RemoteLogState,
    Start,
    Unexplained,
    Wait,
    decide,
)
from mirrorless.errors import GapKind
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement, Progress

OURS = Progress(last_offset=99, sequence=100, epoch=0, last_downstream=99)
THEIRS = Progress(last_offset=499)
BEHIND = "behind MirrorMaker 2"


def announced(*epochs: tuple[int, int, int]) -> dict[int, Announcement]:
    """Announcements of epoch, start and downstream."""
    return {
        epoch: Announcement(epoch=epoch, start=start, downstream=downstream, reason="test")
        for epoch, start, downstream in epochs
    }


def remembered(log_end: int, *, epoch: int, last_sequence: int) -> RemoteLogState:
    return RemoteLogState(log_end=log_end, epoch=epoch, last_sequence=last_sequence, remembered=True)


def go_on(offset: int, records: int, sequence: int, last_downstream: int, *, epoch: int = 0) -> Decision:
    return Continue(
        epoch=epoch, walk_from=offset, walk_records=records, sequence=sequence, last_downstream=last_downstream
    )


def test_nothing_was_ever_copied() -> None:
    empty = RemoteLogState(log_end=0)
    assert decide(progress=None, announced={}, target=empty) == Start(
        epoch=0, start=None, kind=EpochKind.FIRST_COPY, reason="first copy"
    )


def test_the_target_is_exactly_where_the_progress_says() -> None:
    state = remembered(100, epoch=0, last_sequence=99)
    assert decide(progress=OURS, announced=announced((0, 0, 0)), target=state) == go_on(100, 0, 100, 99)


def test_the_target_is_ahead_of_the_progress() -> None:
    state = remembered(130, epoch=0, last_sequence=129)
    assert decide(progress=OURS, announced=announced((0, 0, 0)), target=state) == go_on(100, 30, 130, 129)


@pytest.mark.parametrize(
    "state", [RemoteLogState(log_end=99), remembered(99, epoch=0, last_sequence=98)], ids=["forgotten", "remembered"]
)
def test_one_lost_record_is_a_gap(state: RemoteLogState) -> None:
    decided = decide(progress=OURS, announced=announced((0, 0, 0)), target=state)
    assert isinstance(decided, Lost)
    assert (decided.kind, decided.records) == (GapKind.TARGET_LOST, 1)


def test_what_only_the_leader_holds_does_not_count() -> None:
    # Its producer state reaches to its log's end, and the next leader may not have that.
    state = remembered(120, epoch=0, last_sequence=129)
    assert decide(progress=OURS, announced=announced((0, 0, 0)), target=state) == Wait(
        reason="10 records on the leader of the remote partition are not replicated yet"
    )
    first = remembered(0, epoch=0, last_sequence=99)
    assert isinstance(decide(progress=None, announced=announced((0, 0, 0)), target=first), Wait)


def test_what_the_leader_has_no_room_for_is_a_hole_and_not_waited_for() -> None:
    waits = replace(remembered(120, epoch=0, last_sequence=129), unreplicated=10)
    assert isinstance(decide(progress=OURS, announced=announced((0, 0, 0)), target=waits), Wait)
    for state in (
        replace(remembered(120, epoch=0, last_sequence=129), unreplicated=7),
        RemoteLogState(log_end=127, epoch=0, last_sequence=129, unreplicated=0),  # forgotten: the last batch says it
    ):
        decision = decide(progress=OURS, announced=announced((0, 0, 0)), target=state)
        assert isinstance(decision, Lost)
        assert (decision.kind, decision.records) == (GapKind.TARGET_HOLE, 3)
    began = replace(remembered(90, epoch=0, last_sequence=99), unreplicated=0)
    decision = decide(progress=None, announced=announced((0, 0, 0)), target=began)
    assert isinstance(decision, Lost)
    assert decision.records == 10


@given(st.integers(0, SEQUENCES - 1), st.integers(0, 1_000_000))
def test_being_ahead_is_counted_across_the_wrap(sequence: int, ahead: int) -> None:
    progress = Progress(last_offset=10, sequence=sequence, epoch=2, last_downstream=10)
    state = remembered(11 + ahead, epoch=2, last_sequence=(sequence + ahead - 1) % SEQUENCES)
    decision = decide(progress=progress, announced=announced((2, 0, 0)), target=state)
    assert isinstance(decision, Continue)
    assert (decision.walk_records, decision.sequence) == (ahead, (sequence + ahead) % SEQUENCES)


@given(st.integers(1, 1 << 33), st.integers(0, 1_000_000))
def test_an_epoch_without_progress_is_counted_across_any_number_of_wraps(records: int, downstream: int) -> None:
    state = remembered(downstream + records, epoch=1, last_sequence=(records - 1) % SEQUENCES)
    decision = decide(progress=None, announced=announced((1, 500, downstream)), target=state)
    assert decision == go_on(500, records, records % SEQUENCES, downstream + records - 1, epoch=1)


def test_an_empty_remote_topic_may_be_another_one_by_a_changed_policy() -> None:
    empty = decide(progress=OURS, announced=announced((0, 0, 0)), target=RemoteLogState(log_end=0))
    assert isinstance(empty, Lost)
    assert empty.kind is GapKind.TARGET_LOST
    assert "because replication.policy.class, its separator or an alias was changed" in empty.reason
    shorter = decide(progress=OURS, announced=announced((0, 0, 0)), target=RemoteLogState(log_end=50))
    assert isinstance(shorter, Lost)
    assert "replication.policy.class" not in shorter.reason


def test_the_broker_has_forgotten_and_the_log_is_empty() -> None:
    as_it_was = RemoteLogState(log_end=100)
    assert decide(progress=OURS, announced=announced((0, 0, 0)), target=as_it_was) == go_on(100, 0, 100, 99)
    grown_and_emptied = RemoteLogState(log_end=107)
    assert decide(progress=OURS, announced=announced((0, 0, 0)), target=grown_and_emptied) == go_on(100, 7, 107, 106)


def test_where_the_broker_has_forgotten_what_is_not_replicated_may_be_ours() -> None:
    state = RemoteLogState(log_end=100, unreplicated=7)
    assert isinstance(decide(progress=OURS, announced=announced((0, 0, 0)), target=state), Wait)
    assert isinstance(decide(progress=None, announced={}, target=replace(state, log_end=0)), Wait)


@pytest.mark.parametrize(
    "state",
    [
        remembered(60, epoch=0, last_sequence=59),
        RemoteLogState(log_end=0),
        remembered(100, epoch=0, last_sequence=98),
        RemoteLogState(log_end=140, foreign_tail=True),
    ],
    ids=["truncated", "created again", "behind by one", "foreign records on top"],
)
def test_a_target_behind_the_progress_is_a_gap(state: RemoteLogState) -> None:
    assert isinstance(decide(progress=OURS, announced=announced((0, 0, 0)), target=state), Lost)


def test_a_lost_tail_counts_by_sequences_whoever_has_taken_its_offsets_since() -> None:
    known = Progress(last_offset=99, sequence=24, epoch=0, last_downstream=123)
    found = decide(progress=known, announced=announced((0, 0, 0)), target=remembered(114, epoch=0, last_sequence=12))
    assert isinstance(found, Lost)
    assert (found.kind, found.records) == (GapKind.TARGET_LOST, 11)


@pytest.mark.parametrize(("records", "holds"), [(0, False), (3, True)])
def test_of_a_shared_log_only_the_copys_own_records_count(records: int, holds: bool) -> None:
    own = OwnRecords(after=20, records=records, last_downstream=19 + records, end=40)
    assert RemoteLogState(log_end=40, own=own).holds_records_from(7) is holds


def test_a_higher_epoch_on_the_target_is_counted_from_its_announcement() -> None:
    state = remembered(110, epoch=1, last_sequence=9)
    known = announced((0, 0, 0), (1, 500, 100))
    assert decide(progress=OURS, announced=known, target=state) == go_on(500, 10, 10, 109, epoch=1)
    assert decide(progress=OURS, announced=announced((0, 0, 0)), target=state) == Unexplained(epoch=1)


def test_a_first_copy_that_died_before_its_first_progress() -> None:
    state = remembered(25, epoch=0, last_sequence=24)
    assert decide(progress=None, announced=announced((0, 7, 0)), target=state) == go_on(7, 25, 25, 24)


def test_behind_mirrormaker_a_new_epoch_begins() -> None:
    foreign = RemoteLogState(log_end=480, foreign_tail=True)
    assert decide(progress=THEIRS, announced={}, target=foreign) == Start(
        epoch=0, start=500, kind=EpochKind.AFTER_MIRRORMAKER2, reason=BEHIND
    )
    handed_back = remembered(480, epoch=3, last_sequence=9)
    known = announced((3, 200, 100))
    assert decide(progress=THEIRS, announced=known, target=handed_back) == Start(
        epoch=4, start=500, kind=EpochKind.AFTER_MIRRORMAKER2, reason=BEHIND
    )


def test_behind_mirrormaker_an_epoch_that_nobody_announced_is_not_passed_over() -> None:
    state = remembered(480, epoch=3, last_sequence=9)
    assert decide(progress=THEIRS, announced={}, target=state) == Unexplained(epoch=3)


def test_the_epoch_behind_mirrormaker_is_not_begun_twice() -> None:
    known = announced((0, 500, 480))
    not_begun = RemoteLogState(log_end=480, foreign_tail=True)
    assert decide(progress=THEIRS, announced=known, target=not_begun) == Start(
        epoch=0, start=500, kind=EpochKind.AFTER_MIRRORMAKER2, reason=BEHIND
    )
    begun = remembered(485, epoch=0, last_sequence=4)
    assert decide(progress=THEIRS, announced=known, target=begun) == go_on(500, 5, 5, 484)


def test_a_takeover_that_was_cut_off_before_its_first_append_goes_on() -> None:
    begun = Progress(last_offset=499, sequence=0, epoch=0, last_downstream=479)
    still_theirs = RemoteLogState(log_end=480, foreign_tail=True)
    assert decide(progress=begun, announced=announced((0, 500, 480)), target=still_theirs) == go_on(500, 0, 0, 479)


def test_an_epoch_that_has_only_passed_what_is_not_copied_was_not_begun() -> None:
    """Markers, aborted records: its progress goes on, and nothing of it is on the target."""
    known = announced((0, 0, 0), (1, 501, 100))
    passed = Progress(last_offset=501, sequence=0, epoch=1, last_downstream=99)
    state = remembered(100, epoch=0, last_sequence=99)
    assert decide(progress=passed, announced=known, target=state) == go_on(502, 0, 0, 99, epoch=1)
    forgotten = RemoteLogState(log_end=100)
    assert decide(progress=passed, announced=known, target=forgotten) == go_on(502, 0, 0, 99, epoch=1)
    begun = remembered(110, epoch=1, last_sequence=9)
    assert decide(progress=passed, announced=known, target=begun) == go_on(502, 10, 10, 109, epoch=1)


def test_an_epoch_does_not_begin_before_where_it_was_announced() -> None:
    """A reset that was followed by the end of the remote topic: what it was to be appended behind is gone."""
    known = announced((0, 0, 0), (1, 0, 1_000))
    reset = Progress(last_offset=-1, sequence=0, epoch=1, last_downstream=999)
    assert isinstance(decide(progress=reset, announced=known, target=RemoteLogState(log_end=0)), Lost)
    assert decide(progress=reset, announced=known, target=RemoteLogState(log_end=1_000)) == go_on(0, 0, 0, 999, epoch=1)


def test_an_epoch_that_cannot_begin_at_mirrormakers_position_is_known_by_it() -> None:
    elsewhere = {0: Announcement(epoch=0, start=2, downstream=10, reason="cut", behind=500)}
    nothing_yet = RemoteLogState(log_end=10, foreign_tail=True)
    assert decide(progress=THEIRS, announced=elsewhere, target=nothing_yet) == Start(
        epoch=0, start=500, kind=EpochKind.AFTER_MIRRORMAKER2, reason=BEHIND
    )
    begun = remembered(13, epoch=0, last_sequence=2)
    assert decide(progress=THEIRS, announced=elsewhere, target=begun) == go_on(2, 3, 3, 12)
    # What was appended in it turned out to be another record: the next epoch is for that state of the target alone.
    more = elsewhere | {1: Announcement(epoch=1, start=7, downstream=13, reason="cleaned", after=(0, 3), behind=500)}
    assert decide(progress=THEIRS, announced=more, target=begun) == Start(
        epoch=1, start=500, kind=EpochKind.AFTER_MIRRORMAKER2, reason=BEHIND
    )
    moved_on = remembered(14, epoch=0, last_sequence=3)
    assert decide(progress=THEIRS, announced=more, target=moved_on) == go_on(2, 4, 4, 13)


def test_what_was_announced_to_begin_behind_what_the_target_has_lost_is_a_gap() -> None:
    taken_over = Progress(last_offset=99)
    quiet = announced((0, 100, 100))
    made_anew = decide(progress=taken_over, announced=quiet, target=RemoteLogState(log_end=0))
    assert isinstance(made_anew, Lost)
    assert made_anew.records == 100
    in_vain = remembered(50, epoch=0, last_sequence=49)
    assert isinstance(decide(progress=taken_over, announced=quiet, target=in_vain), Lost)
    # Without progress nothing that was acknowledged is lost: another epoch begins at the same offset.
    first = decide(progress=None, announced=announced((0, 7, 5)), target=RemoteLogState(log_end=0))
    assert isinstance(first, Start)
    assert (first.epoch, first.start) == (1, 7)


def test_an_older_progress_says_nothing_of_a_newer_epoch() -> None:
    anew = announced((0, 0, 0), (1, 0, 0))
    state = remembered(10, epoch=1, last_sequence=9)
    assert decide(progress=OURS, announced=anew, target=state) == go_on(0, 10, 10, 9, epoch=1)
