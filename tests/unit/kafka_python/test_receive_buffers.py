"""A kept frame is filled again when nothing refers to it any more, and never before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.kafka_python.receive_buffers import ReceiveBuffer, ReceiveBuffers, outlasts

MIB = 1 << 20


def test_a_frame_is_taken_again_when_its_views_are_gone() -> None:
    frames = ReceiveBuffers(8 * MIB)
    frame = frames.take(2 * MIB)
    assert frame.lasts
    view, number = memoryview(frame)[5:10], id(frame)
    del frame
    assert id(frames.take(2 * MIB)) != number
    del view
    assert number in {id(one) for one in (frames.take(2 * MIB), frames.take(2 * MIB))}


def test_a_view_of_a_view_counts_too() -> None:
    frames = ReceiveBuffers(2 * MIB)
    view = memoryview(frames.take(2 * MIB))[5:][5:]
    assert not frames.take(2 * MIB).lasts
    del view
    assert frames.take(2 * MIB).lasts


@pytest.mark.parametrize("size", [MIB, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, 4 * MIB])
def test_it_has_the_size_that_is_asked_for(size: int) -> None:
    frames = ReceiveBuffers(8 * MIB)
    first = frames.take(2 * MIB)
    first.seek(7)  # type: ignore[no-untyped-call]
    number = id(first)
    del first
    again = frames.take(size)
    assert (id(again), len(again), again.tell()) == (number, size, 0)  # type: ignore[no-untyped-call]


def test_small_ones_are_not_kept() -> None:
    frames = ReceiveBuffers(8 * MIB)
    assert not frames.take(MIB - 1).lasts
    assert frames.kept_bytes == 0


def test_those_of_another_size_make_room() -> None:
    frames = ReceiveBuffers(4 * MIB)
    many = [frames.take(MIB) for _ in range(4)]
    assert all(frame.lasts for frame in many)
    assert not frames.take(4 * MIB).lasts
    many.clear()
    assert frames.take(4 * MIB).lasts
    assert frames.kept_bytes == 4 * MIB


def test_one_that_is_larger_than_all_together_may_be() -> None:
    frame = ReceiveBuffers(MIB).take(2 * MIB)
    assert (len(frame), frame.lasts) == (2 * MIB, False)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 9)), max_size=60))
def test_what_is_in_use_is_nobody_elses_and_what_is_kept_has_a_bound(steps: list[tuple[int, int]]) -> None:
    frames = ReceiveBuffers(8 * MIB)
    held: list[ReceiveBuffer] = []
    for size, given_up in steps:
        frame = frames.take(size * MIB)
        assert len(frame) == size * MIB
        assert all(frame is not other for other in held)
        assert frames.kept_bytes <= 8 * MIB
        held.append(frame)
        if given_up < len(held):
            del held[given_up]
        del frame


@pytest.mark.parametrize(("around", "may_be_views"), [(0, True), (7, True), (8, False)])
def test_of_an_answer_that_is_not_kept_only_a_large_part_is_worth_keeping_all_of_it(
    around: int, *, may_be_views: bool
) -> None:
    answer = bytearray(100 + around * 100)
    assert outlasts(memoryview(answer)[:100]) == may_be_views


def test_of_one_that_is_kept_anyway_any_part_is() -> None:
    assert outlasts(memoryview(ReceiveBuffers(2 * MIB).take(2 * MIB))[:100])
    assert not outlasts(memoryview(ReceiveBuffers().take(2 * MIB))[:100])
    assert not outlasts(b"its own")
