"""Where two flows took turns in one log, each stretch translates by the flow that copied it."""

from __future__ import annotations

import pytest

from mirrorless.offsets.offset_map import OffsetMap, Run
from mirrorless.offsets.translation import How, Translated, Unknown
from mirrorless.offsets.turn_translation import Turns

# A has 0..100 of its own, 100..150 from B, 150..210 of its own again; B has it with 20 markers more in between.
THERE_AND_BACK = Turns(position=180, mine=((0, 0), (150, 170)), theirs=((100, 120),))
MAP = OffsetMap((Run(0, 0, 100), Run(150, 170, 30)))


@pytest.mark.parametrize(
    ("offset", "is_copy"), [(0, False), (99, False), (100, True), (149, True), (150, False), (200, False)]
)
def test_each_stretch_belongs_to_the_flow_that_copied_it(offset: int, *, is_copy: bool) -> None:
    assert THERE_AND_BACK.is_copy(offset) is is_copy


def test_before_its_first_turn_everything_is_the_other_flows() -> None:
    turns = Turns(position=120, mine=((120, 100),), theirs=((0, 0),))

    assert [turns.is_copy(offset) for offset in (0, 119, 120, 130)] == [True, True, False, False]


def test_a_flow_without_any_turn_of_the_other_is_as_always() -> None:
    assert not Turns(position=0, mine=(), theirs=()).is_copy(5)
    assert Turns(position=5, mine=((0, 0),), theirs=()).capped(7, Translated(9, How.WALK), MAP) == Translated(
        9, How.WALK
    )


def test_a_turn_in_which_nothing_was_copied_is_told_from_the_next_one() -> None:
    """Both began at the same offset: the flow's own position says whose records follow."""
    assert Turns(position=140, mine=((0, 0), (100, 120)), theirs=((100, 120),)).is_copy(130) is False
    assert Turns(position=100, mine=((0, 0), (100, 120)), theirs=((100, 120),)).is_copy(130) is True


def test_a_stranded_record_translates_to_the_first_record_that_follows_on_the_target() -> None:
    """A had 100..110 that were never copied, B went on at 100: an answer beyond that would skip records of B."""
    turns = Turns(position=100, mine=((0, 0),), theirs=((110, 100),))
    line = OffsetMap((Run(0, 0, 100),))

    assert turns.capped(105, Translated(105, How.WALK), line) == Translated(100, How.WALK)
    assert turns.capped(50, Translated(50, How.RUN), line) == Translated(50, How.RUN)
    assert turns.capped(105, Unknown("no"), line) == Unknown("no")


def test_an_answer_of_a_later_turn_is_not_kept_within_an_earlier_one() -> None:
    assert THERE_AND_BACK.capped(175, Translated(195, How.RUN), MAP) == Translated(195, How.RUN)
