"""Where two flows took turns in one log, each stretch translates by the flow that copied it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.offsets.translation import How, Translated, Unknown
from mirrorless.offsets.turn_translation import Turns, turn_begins
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement, Known

if TYPE_CHECKING:
    from collections.abc import Sequence


def turns(
    mine: Sequence[tuple[int, int]] = (), theirs: Sequence[tuple[int, int]] = (), *, begins_stopped: bool = False
) -> Turns:
    return Turns.of(mine, theirs, begins_stopped=begins_stopped)


def owners(found: Turns, *offsets: int) -> list[bool]:
    return [found.at(offset).mine for offset in offsets]


def test_each_stretch_belongs_to_the_flow_that_copied_it() -> None:
    """A has 0..100 of its own, 100..150 from B, and its own again; B has it with 20 markers more in between."""
    found = turns([(150, 170)], [(100, 120)])

    assert owners(found, 0, 99, 100, 149, 150, 200) == [True, True, False, False, True, True]


def test_before_its_first_turn_everything_is_the_other_flows() -> None:
    assert owners(turns([(120, 100)], begins_stopped=True), 0, 119, 120, 130) == [False, False, True, True]


def test_a_flow_without_any_turn_of_the_other_is_as_always() -> None:
    assert owners(turns(), 0, 7) == [True, True]
    assert turns().at(7).capped(Translated(9, How.WALK)) == Translated(9, How.WALK)


@pytest.mark.parametrize(
    ("mine", "theirs", "is_mine"),
    [
        pytest.param([(100, 120)], [(100, 120)], True, id="B wrote nothing in its turn"),
        pytest.param([(100, 120)], [(100, 120), (100, 120)], False, id="nor A in the next one"),
        pytest.param([(100, 120), (100, 120)], [(100, 120), (100, 120)], True, id="nor B again"),
    ],
)
def test_turns_in_which_nothing_was_copied(
    mine: list[tuple[int, int]], theirs: list[tuple[int, int]], *, is_mine: bool
) -> None:
    assert owners(turns(mine, theirs), 130) == [is_mine]


def test_an_empty_turn_between_others_changes_no_owner() -> None:
    """A 0..100, B 100..150, A nothing, B 150..200, A from 200 on."""
    found = turns([(150, 150), (200, 200)], [(100, 100), (150, 150)])

    assert owners(found, 99, 120, 170, 210) == [True, False, False, True]
    assert found.at(170).capped(Translated(170, How.RUN)) == Translated(170, How.RUN)


def test_a_stranded_record_translates_to_the_first_record_that_follows_on_the_target() -> None:
    """A had 100..110 that were never copied, B continued at 100: an answer beyond that would skip records of B."""
    found = turns(theirs=[(110, 100)])

    assert found.at(105).capped(Translated(105, How.WALK)) == Translated(100, How.WALK)
    assert found.at(50).capped(Translated(50, How.RUN)) == Translated(50, How.RUN)
    assert found.at(105).capped(Unknown("no")) == Unknown("no")


def announced(*epochs: tuple[int, int, str], kind: EpochKind = EpochKind.RESET) -> Known:
    return Known(
        announced={
            number: Announcement(
                epoch=number, start=start, downstream=downstream, kind=kind, reason="", topic_id=topic_id
            )
            for number, (start, downstream, topic_id) in enumerate(epochs)
        }
    )


def test_turns_begin_at_resets() -> None:
    assert turn_begins(announced((5, 6, "a"), (9, 9, "a"))) == [(5, 6), (9, 9)]
    assert turn_begins(announced((5, 6, "a"), kind=EpochKind.FIRST_COPY)) == []
    assert turn_begins(None) == []


def test_turns_of_an_earlier_topic_are_void() -> None:
    assert turn_begins(announced((5, 6, "old"), (0, 9, "new"))) == [(0, 9)]


def test_a_turn_into_an_emptied_topic_voids_those_before() -> None:
    assert turn_begins(announced((100, 100, "a"), (0, 0, "a"), (50, 60, "a"))) == [(0, 0), (50, 60)]
