"""Threads of a simulated process: one at a time runs, and each wait is a point where the world continues.

The product's synchronous code sleeps by `clock.sleep`, waits for events, and for coroutines of its process. A thread
that the world ends is unwound by `Ended`, and what it still does has no effect.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tests.simulation.world import Process, clock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_Answer = TypeVar("_Answer")
_running: list[SimulatedThread] = []


class Ended(BaseException):
    """The world ended while the thread waited."""


class SimulatedThread:
    """A thread of the process that runs: as `threading.Thread`."""

    def __init__(self, target: Callable[[], None], *, name: str = "", daemon: bool = True) -> None:
        process = clock.process
        assert isinstance(process, ThreadedProcess)
        self._process = process
        self._target = target
        self._go, self._parked = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, name=name, daemon=daemon)
        self._joining: list[Callable[[], None]] = []
        self.is_over = False
        self._waits = 0

    def start(self) -> None:
        """Begin at the process's next step."""
        self._process.threads.append(self)
        self._thread.start()
        self._process.call_soon(self._continue)

    def join(self) -> None:
        """Wait for its end."""
        if not self.is_over:
            current().wait(self._joining.append)

    def _main(self) -> None:
        self._go.acquire()
        try:
            if not self._process.is_closed:
                self._target()
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001 -- raised where the world runs
            self._process.world.failure = error
        self.is_over = True
        for resume in self._joining:
            resume()
        self._parked.release()

    def _continue(self) -> None:
        """Let it run until it waits again."""
        _running.append(self)
        self._go.release()
        self._parked.acquire()
        _running.pop()

    def wait(self, register: Callable[[Callable[[], None]], object], *, seconds: float | None = None) -> None:
        """Wait until what is registered is called, or for so long."""
        if self._process.is_closed:
            raise Ended
        self._waits += 1
        mine, called = self._waits, [False]

        def resume() -> None:
            if not called[0] and self._waits == mine:
                called[0] = True
                self._process.call_soon(self._continue)

        register(resume)
        if seconds is not None:
            self._process.call_later(seconds, resume)
        self._parked.release()
        self._go.acquire()
        if self._process.is_closed:
            raise Ended

    def end(self) -> None:
        """Unwind it."""
        _running.append(self)
        while not self.is_over:
            self._go.release()
            self._parked.acquire()
        _running.pop()


def current() -> SimulatedThread:
    """The thread that runs."""
    return _running[-1]


def sleep(seconds: float) -> None:
    """As `time.sleep`."""
    current().wait(lambda _: None, seconds=seconds)


class Event:
    """As `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[Callable[[], None]] = []

    def set(self) -> None:
        """As of `threading.Event`."""
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for resume in waiting:
            resume()

    def clear(self) -> None:
        """As of `threading.Event`."""
        self._is_set = False

    def is_set(self) -> bool:
        """As of `threading.Event`."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """As of `threading.Event`."""
        if not self._is_set:
            current().wait(self._waiting.append, seconds=timeout)
        return self._is_set


class ThreadedProcess(Process):
    """A process whose threads run synchronous code of the product."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- those of `Process`
        super().__init__(*args, **kwargs)
        self.threads: list[SimulatedThread] = []
        self.is_closed = False

    def begin(self, work: Callable[[], None]) -> None:
        """Run something in a thread of its own."""

        def start() -> None:
            SimulatedThread(work).start()

        self.call_soon(start)

    def run_coroutine(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Wait, in a thread, for a coroutine of this process; returns its result, or raises its error."""
        future = self.call_soon_with_future(work)
        if not future.is_done:

            def register(resume: Callable[[], None]) -> None:
                future.add_callback(lambda _: resume())
                future.add_errback(lambda _: resume())

            current().wait(register)
        if future.exception is not None:
            raise future.exception
        return cast("_Answer", future.value)

    def close(self) -> None:
        """End all threads and coroutines where they are."""
        self.is_closed = True
        world = self.world
        for thread in self.threads:
            world.current = self
            thread.end()
        world.current = None
        super().close()
