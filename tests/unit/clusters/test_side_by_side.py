"""Calls that wait at the same time."""

from __future__ import annotations

import threading
from contextvars import ContextVar

import pytest

from mirrorless.clusters.side_by_side import each, side_by_side

_given: ContextVar[str] = ContextVar("given")


def test_calls_wait_at_the_same_time_and_answer_in_their_order() -> None:
    together = threading.Barrier(3, timeout=20)

    def call(number: int) -> int:
        together.wait()
        return number

    assert side_by_side(lambda: call(1), lambda: call(2), lambda: call(3)) == (1, 2, 3)


def test_all_have_ended_when_the_first_error_is_raised() -> None:
    ended = threading.Event()

    def fails() -> None:
        raise ValueError("first")

    def fails_too() -> None:
        ended.set()
        raise KeyError

    with pytest.raises(ValueError, match="first"):
        side_by_side(fails, fails_too)
    assert ended.is_set()


def test_calls_see_the_context_of_the_caller() -> None:
    _given.set("here")
    assert each([_given.get, _given.get]) == ["here", "here"]


def test_no_more_calls_run_at_once_than_are_allowed() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with lock:
            running -= 1

    each([call] * 10, at_once=2)
    assert most == 2
