"""Threads of synchronous code, of which one at a time runs: it gives the turn back wherever it waits.

A thread of a simulated process is a thread of Python that waits for its turn whenever the world does something else.
`threading`, `ThreadPoolExecutor` and `time.sleep` of the product's modules are replaced by what is here.
"""

from __future__ import annotations

import sys
import threading as real_threading
from typing import TYPE_CHECKING, Any, ClassVar

from tests.simulation.world import clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.kafka_python.structs import Future
    from tests.simulation.world import Process


class Killed(BaseException):
    """The process does not exist any more: what unwinds in its thread can send nothing."""


class SimulatedThread:
    """A thread of a process; `error` is what it ended with."""

    current: ClassVar[SimulatedThread | None] = None
    every: ClassVar[list[SimulatedThread]] = []

    def __init__(self, process: Process, work: Callable[[], object], name: str = "") -> None:
        self.process = process
        self.name = name
        self.over = False
        self.error: BaseException | None = None
        self._work = work
        self._token: object = None
        self._woken = False
        self._joining: list[SimulatedThread] = []
        self._turn, self._done = real_threading.Lock(), real_threading.Lock()
        self._turn.acquire()
        self._done.acquire()
        self._thread = real_threading.Thread(target=self._run, daemon=True)
        SimulatedThread.every.append(self)

    def start(self) -> None:
        """Let it run, after what can run now."""
        self._thread.start()
        self.process.world.soon(self.process, self._step)

    def block(self, seconds: float | None = None) -> bool:
        """Give the turn back until `wake`, or so long; returns whether it was woken."""
        token = self._token = object()
        self._woken = False
        world = self.process.world
        if seconds is not None:
            world.later(seconds, self.process, lambda: self._resume(token))
        self._done.release()
        self._turn.acquire()
        if self.process.dead:
            raise Killed
        return self._woken

    def wake(self) -> None:
        """Let it continue, if it is blocked."""
        token = self._token
        if token is not None and not self._woken:
            self._woken = True
            self.process.world.soon(self.process, lambda: self._resume(token))

    def join(self, seconds: float | None = None) -> None:
        """Wait for its end."""
        caller = running()
        until = None if seconds is None else clock.monotonic() + seconds
        while not self.over:
            left = None if until is None else until - clock.monotonic()
            if left is not None and left <= 0:
                return
            self._joining.append(caller)
            caller.block(left)

    def end(self) -> None:
        """End it where it is, as its process was killed."""
        if not self.over and self._thread.is_alive():
            self.process.dead = True
            self._step()

    def _resume(self, token: object) -> None:
        if self._token is token:
            self._token = None
            self._step()

    def _step(self) -> None:
        before, SimulatedThread.current = SimulatedThread.current, self
        self._turn.release()
        self._done.acquire()
        SimulatedThread.current = before

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self.process.dead:
                self._work()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 -- it is the process's, which decides
            self.error = error
        finally:
            self.over = True
            for one in self._joining:
                one.wake()
            self._done.release()


def running() -> SimulatedThread:
    """The thread that has the turn."""
    assert SimulatedThread.current is not None, "no simulated thread runs"
    if SimulatedThread.current.process.dead:
        raise Killed
    return SimulatedThread.current


def sleep(seconds: float) -> None:
    """As `time.sleep`."""
    until = clock.monotonic() + seconds
    running().block(max(0.0, seconds))
    while (left := until - clock.monotonic()) > 0:
        running().block(left)


def wait_for(future: Future, seconds: float | None) -> bool:
    """Wait for a future of kafka-python's kind; returns whether it is done."""
    thread = running()
    until = None if seconds is None else clock.monotonic() + seconds
    future.add_both(lambda _: thread.wake())
    while not future.is_done:
        left = None if until is None else until - clock.monotonic()
        if left is not None and left <= 0:
            return False
        thread.block(left)
    return True


def end_all() -> None:
    """End what is left of a schedule."""
    while SimulatedThread.every:
        SimulatedThread.every.pop().end()


class Waiting:
    """Threads that wait for something."""

    def __init__(self) -> None:
        self._threads: list[SimulatedThread] = []

    def wait(self, seconds: float | None) -> bool:
        """Wait until woken, at most so long."""
        thread = running()
        self._threads.append(thread)
        woken = thread.block(seconds)
        if thread in self._threads:
            self._threads.remove(thread)
        return woken

    def wake(self, most: int = 1 << 30) -> None:
        """Wake all, or some."""
        some, self._threads = self._threads[:most], self._threads[most:]
        for one in some:
            one.wake()


class _Event:
    def __init__(self) -> None:
        self._set = False
        self._waiting = Waiting()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._waiting.wake()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        until = None if timeout is None else clock.monotonic() + timeout
        while not self._set:
            left = None if until is None else until - clock.monotonic()
            if left is not None and left <= 0:
                break
            self._waiting.wait(left)
        return self._set


class _Lock:
    def __init__(self) -> None:
        self._held = False
        self._waiting = Waiting()

    def acquire(self) -> bool:
        while self._held:
            self._waiting.wait(None)
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        self._waiting.wake(1)

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> _Lock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _Condition(_Lock):
    def __init__(self, _: object = None) -> None:
        super().__init__()
        self._noticed = Waiting()

    def wait(self, timeout: float | None = None) -> bool:
        self.release()
        try:
            return self._noticed.wait(timeout)
        finally:
            if not running().process.dead:
                self.acquire()

    def notify_all(self) -> None:
        self._noticed.wake()

    def notify(self, n: int = 1) -> None:
        self._noticed.wake(n)


class _Thread:
    """As `threading.Thread`."""

    def __init__(
        self,
        *,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "",
        daemon: bool | None = None,
    ) -> None:
        self.name = name
        self.daemon = daemon
        self._thread = SimulatedThread(running().process, lambda: target(*args), name)
        self._started = False

    def start(self) -> None:
        self._started = True
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._started and not self._thread.over


class _Threading:
    """In place of the module `threading`."""

    Event = _Event
    Lock = _Lock
    RLock = _Lock
    Condition = _Condition
    Thread = _Thread

    def current_thread(self) -> object:
        return SimulatedThread.current or real_threading.current_thread()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(real_threading, name)


class _Call:
    def __init__(self, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._found: Any = None
        self._error: BaseException | None = None
        self._thread = SimulatedThread(running().process, lambda: self._call(work, args), "side-by-side")
        self._thread.start()

    def _call(self, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        try:
            self._found = work(*args)
        except Exception as error:  # noqa: BLE001 -- raised where it is waited for
            self._error = error

    def result(self) -> Any:  # noqa: ANN401
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found


class Pool:
    """As `ThreadPoolExecutor`, with a thread for each call."""

    def __init__(self, *_: object, **__: object) -> None:
        self._calls: list[_Call] = []

    def submit(self, work: Callable[..., Any], *args: Any) -> _Call:  # noqa: ANN401
        """Begin a call."""
        call = _Call(work, args)
        self._calls.append(call)
        return call

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._calls:
            one._thread.join()


simulated = _Threading()


def install() -> list[str]:
    """Give every module of the product that is loaded the simulated threads; returns their names."""
    changed = []
    for name, module in list(sys.modules.items()):
        if name.startswith("mirrorless.") and getattr(module, "threading", None) is real_threading:
            module.threading = simulated  # type: ignore[attr-defined]
            changed.append(name)
    return changed


def uninstall(names: list[str]) -> None:
    """Undo `install`."""
    for name in names:
        sys.modules[name].threading = real_threading  # type: ignore[attr-defined]
