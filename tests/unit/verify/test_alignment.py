"""Two sequences of records are lined up again behind every difference, and each is named for what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.verify.alignment import Alignment, Piece, Print
from mirrorless.verify.findings import DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Sequence


def prints(names: Sequence[object]) -> list[Print]:
    """Records at offsets 0, 1, 2, ..., told apart by their values."""
    return [Print(offset, None, str(name).encode(), None, 0) for offset, name in enumerate(names)]


def line_up(source: Sequence[object], target: Sequence[object]) -> list[Piece]:
    both = Alignment(iter(prints(source)), iter(prints(target)))
    found: list[Piece] = []
    while both.source.first() is not None and both.target.first() is not None:
        if not both.same():
            pieces = both.differ()
            if pieces is None:
                return [*found, Piece(DifferenceKind.UNLIKE, None, None, 0)]
            found += pieces
    return found


def test_equal_sequences() -> None:
    assert line_up(range(50), range(50)) == []


@given(st.integers(5, 40), st.integers(1, 4))
def test_missing(at: int, count: int) -> None:
    target = [number for number in range(60) if not at <= number < at + count]
    assert line_up(range(60), target) == [Piece(DifferenceKind.MISSING, at, at, count)]


@given(st.integers(5, 40), st.integers(1, 4))
def test_extra(at: int, count: int) -> None:
    target = [*range(at), *(f"new {number}" for number in range(count)), *range(at, 60)]
    assert line_up(range(60), target) == [Piece(DifferenceKind.EXTRA, at, at, count)]


@given(st.integers(5, 40), st.integers(1, 4))
def test_doubled(at: int, count: int) -> None:
    target = [*range(at + count), *range(at, 60)]
    assert line_up(range(60), target) == [Piece(DifferenceKind.DOUBLED, at + count, at + count, count)]


@given(st.integers(5, 40), st.integers(2, 5))
def test_out_of_order(at: int, count: int) -> None:
    target = [*range(at), *reversed(range(at, at + count)), *range(at + count, 60)]
    (found,) = line_up(range(60), target)
    assert (found.kind, found.upstream, found.downstream, found.records) == (DifferenceKind.OUT_OF_ORDER, at, at, count)


@given(st.integers(5, 40))
def test_changed(at: int) -> None:
    target: list[object] = list(range(60))
    target[at] = "other"
    assert line_up(range(60), target) == [Piece(DifferenceKind.CHANGED, at, at, 1, ("value",))]


@given(st.sets(st.integers(0, 99), max_size=30))
def test_whatever_is_left_out_is_counted(gone: set[int]) -> None:
    target = [number for number in range(100) if number not in gone]
    found = line_up([*range(100), "end"], [*target, "end"])
    assert {one.kind for one in found} <= {DifferenceKind.MISSING}
    assert sum(one.records for one in found) == len(gone)


def test_records_that_are_all_alike_lack_as_many_as_there_are() -> None:
    both = Alignment(iter(prints("a" * 30)), iter(prints("a" * 28)))
    while both.same():
        pass
    assert both.target.first() is None
    assert len(both.source.get(10)) == 2


def test_two_logs_that_have_nothing_in_common() -> None:
    ours, theirs = range(10_500), [f"other {number}" for number in range(10_500)]
    assert line_up(ours, theirs) == [Piece(DifferenceKind.UNLIKE, None, None, 0)]


def test_a_long_loss_just_before_the_end() -> None:
    target = [*range(50), *range(250, 260)]
    assert line_up(range(260), target) == [Piece(DifferenceKind.MISSING, 50, 50, 200)]
