"""Timers fire when they should, and never once they are cancelled; cancelled ones do not pile up."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.future import Future

from mirrorless.kafka_python.event_loop import EventLoop


@settings(deadline=None, max_examples=30)
@given(cancelled=st.lists(st.booleans(), min_size=1, max_size=40))
def test_all_fire_in_order_but_the_cancelled(cancelled: list[bool]) -> None:
    loop: Any = EventLoop()
    fired: list[int] = []
    begin = time.monotonic()

    def timer(number: int) -> Any:  # noqa: ANN401 -- the library is untyped
        return loop.call_at(begin + number * 1e-5, lambda: fired.append(number))

    for task, drop in [(timer(number), drop) for number, drop in enumerate(cancelled)]:
        if drop:
            loop.cancel(task)
    loop.drain(scheduled=True)
    assert fired == [number for number, drop in enumerate(cancelled) if not drop]
    loop.close()


def test_a_timer_that_was_put_off_fires_once_and_late(loop: Any) -> None:  # noqa: ANN401
    fired: list[float] = []
    begin = time.monotonic()
    task = loop.call_at(begin + 0.001, lambda: fired.append(time.monotonic()))
    loop.reschedule(begin + 0.05, task)
    loop.drain(scheduled=True)
    (at,) = fired
    assert at >= begin + 0.05


def test_cancelled_timers_hold_nothing_and_do_not_pile_up(loop: Any) -> None:  # noqa: ANN401
    late = loop.call_later(3_600, lambda: None)
    for _ in range(10_000):
        loop.cancel(loop.call_later(35, lambda: None))
    assert len(loop._scheduled) < 1_000
    assert all(task.is_done for _, task in loop._scheduled if task is not late)
    assert late in [task for _, task in loop._scheduled]


def test_one_socket_is_read_and_written_at_once(loop: Any) -> None:  # noqa: ANN401
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        seen: list[str] = []

        async def read() -> None:
            await loop.wait_read(here)
            seen.append(here.recv(10).decode())

        async def write() -> None:
            await loop.wait_write(here)
            here.send(b"out")
            seen.append(there.recv(10).decode())
            there.send(b"in")

        reading = loop.call_soon_with_future(read())
        loop.call_soon_with_future(write())
        loop.poll(5_000, reading)
        assert seen == ["out", "in"]


def test_another_thread_wakes_a_loop_that_waits(loop: Any) -> None:  # noqa: ANN401
    begin, asked = time.monotonic(), Future()
    timer = threading.Timer(0.1, lambda: loop.call_soon_threadsafe(lambda: asked.success(1)))
    timer.start()
    loop.call_later(20, lambda: None)
    loop.poll(10_000, asked)
    timer.join()
    assert asked.is_done
    assert time.monotonic() < begin + 5


def test_a_task_that_its_own_loop_is_given_runs_without_waiting(loop: Any) -> None:  # noqa: ANN401
    begin, asked = time.monotonic(), Future()
    loop.call_soon(lambda: loop.call_soon_threadsafe(lambda: asked.success(1)))
    loop.call_later(20, lambda: None)
    loop.poll(10_000, asked)
    assert asked.is_done
    assert time.monotonic() < begin + 5
