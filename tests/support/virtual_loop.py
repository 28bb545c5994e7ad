"""An event loop with a clock of its own: what would take minutes of waiting takes none."""

from __future__ import annotations

import heapq
import inspect
import itertools
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mirrorless.kafka_python.structs import Future

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from types import ModuleType

    import pytest

_Answer = TypeVar("_Answer")
_EPOCH_S = 1_700_000_000.0
_MOST_STEPS = 2_000_000


class _Sleep:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __await__(self) -> Generator[_Sleep, None, None]:
        yield self


class VirtualLoop:
    """Runs coroutines as `EventLoop` does: they wait for `sleep` and for kafka-python's futures.

    Its time stands still while anything can run, and then jumps to the next timer.
    """

    def __init__(self) -> None:
        self._now = 1_000.0
        self._ready: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._coroutines: set[Coroutine[Any, Any, Any]] = set()

    def close(self) -> None:
        """End all coroutines where they are."""
        self._ready.clear()
        self._timers.clear()
        while self._coroutines:
            self._coroutines.pop().close()

    # The clock, in place of the module `time`.

    def monotonic(self) -> float:
        """As `time.monotonic`."""
        return self._now

    def time(self) -> float:
        """As `time.time`."""
        return _EPOCH_S + self._now

    @property
    def now_ms(self) -> int:
        """The time of day in ms."""
        return int(self.time() * 1000)

    def replace_time(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        """Have these modules read this clock."""
        for module in modules:
            monkeypatch.setattr(module, "time", self)

    # The loop.

    def sleep(self, seconds: float) -> _Sleep:
        """Wait so long."""
        return _Sleep(seconds)

    def call_soon(self, work: Coroutine[Any, Any, Any] | Callable[[], object]) -> None:
        """Run a coroutine or a function beside the caller."""
        if inspect.iscoroutine(work):
            self._coroutines.add(work)
            self._soon(lambda: self._step(work))
        elif callable(work):
            self._soon(lambda: self._call(work))

    def call_soon_with_future(self, work: Coroutine[Any, Any, Any]) -> Future:
        """Run a coroutine beside the caller, who waits for its result."""
        future = Future()
        self._coroutines.add(work)
        self._soon(lambda: self._step(work, future))
        return future

    def call_later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call a function after so long."""
        heapq.heappush(self._timers, (self._now + seconds, next(self._numbers), work))

    def run(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Run until a coroutine has ended; all others stay where they are."""
        future = self.call_soon_with_future(work)
        for _ in range(_MOST_STEPS):
            if future.is_done:
                break
            self._turn()
        else:
            message = "the coroutine does not end"
            raise AssertionError(message)
        if future.exception is not None:
            raise future.exception
        return cast("_Answer", future.value)

    def run_for(self, seconds: float) -> None:
        """Run everything for so long."""

        async def wait() -> None:
            await self.sleep(seconds)

        self.run(wait())

    def _turn(self) -> None:
        if self._ready:
            self._ready.popleft()()
            return
        assert self._timers, "everything waits for something that nothing will do"
        self._now, _, work = heapq.heappop(self._timers)
        work()

    def _call(self, work: Callable[[], object]) -> None:
        made = work()
        if inspect.iscoroutine(made):
            self.call_soon(made)

    def _step(self, work: Coroutine[Any, Any, Any], result: Future | None = None) -> None:
        try:
            waits_for = work.send(None)
        except StopIteration as ended:
            self._coroutines.discard(work)
            if result is not None:
                result.success(ended.value)
            return
        except BaseException as error:
            if result is None:
                raise
            self._coroutines.discard(work)
            result.failure(error)  # raised where it is waited for
            return
        if isinstance(waits_for, _Sleep):
            self.call_later(waits_for.seconds, lambda: self._step(work, result))
        else:
            assert isinstance(waits_for, Future), waits_for

            def ended_waiting(_: object) -> None:
                self._soon(lambda: self._step(work, result))

            waits_for.add_callback(ended_waiting)
            waits_for.add_errback(ended_waiting)

    def _soon(self, work: Callable[[], None]) -> None:
        self._ready.append(work)
