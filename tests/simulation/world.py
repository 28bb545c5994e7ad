"""Virtual time, and the processes that share it: each may be killed, suspended and resumed at any of its steps."""

from __future__ import annotations

import heapq
import itertools
import sys
import time as real_time
from collections import Counter, deque
from random import Random
from typing import TYPE_CHECKING, Any

from tests.support.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.cluster import SimulatedCluster

EPOCH_S = 1_700_000_000.0
_BEGINS_S = 1_000.0
_LEAST_S = 1e-6
_MOST_STEPS = 500_000
_LOOKS_EVERY_S = 0.05


class Violation(AssertionError):
    """Something happened that must not."""


class World:
    """All that runs in one schedule; `work` without a process is the world's own, as what a broker does.

    Time does not pass while anything can run, and then jumps to the next timer. `random` decides what is not a fault,
    as latencies. `events` counts what happened, by kind.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = _BEGINS_S
        self.events: Counter[str] = Counter()
        self.current: Process | None = None
        self.clusters: dict[str, SimulatedCluster] = {}
        self.processes: list[Process] = []
        self.failure: BaseException | None = None
        self.trace: list[str] | None = None
        self.steps = 0
        self._ready: deque[tuple[Process | None, Callable[[], None]]] = deque()
        self._timers: list[tuple[float, int, Process | None, Callable[[], None]]] = []
        self._numbers = itertools.count()

    @property
    def now_ms(self) -> int:
        """The true time of day in ms: that of brokers."""
        return int((EPOCH_S + self.now) * 1000)

    def note(self, text: str) -> None:
        """Add a line to the trace, if there is one."""
        if self.trace is not None:
            self.trace.append(f"{self.now - _BEGINS_S:10.3f} {text}")

    def soon(self, process: Process | None, work: Callable[[], None]) -> None:
        """Run something once everything that can run before it has run."""
        self._ready.append((process, work))

    def later(self, seconds: float, process: Process | None, work: Callable[[], None]) -> None:
        """Run something after so long; at least a microsecond, or a wait for a rest of time might never end."""
        at = self.now + (seconds if seconds > _LEAST_S else _LEAST_S)
        heapq.heappush(self._timers, (at, next(self._numbers), process, work))

    def run(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> None:
        """Run everything for so long, or until something is true, which is looked at often; raises what failed."""
        end, looks_at = self.now + seconds, self.now
        ready, timers = self._ready, self._timers
        while self.failure is None:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise Violation(f"no end after {_MOST_STEPS} steps, {self.now - _BEGINS_S:.3f} s")
            if ready:
                process, work = ready.popleft()
            else:
                if not timers or timers[0][0] > end:
                    self.now = end
                    break
                self.now, _, process, work = heapq.heappop(timers)
                if self.now >= looks_at:
                    if until():
                        self.soon(process, work)
                        break
                    looks_at = self.now + _LOOKS_EVERY_S
            if process is None:
                work()
            elif process.suspended:
                process.stalled.append(work)
            elif not process.dead:
                self.current = process
                work()
                self.current = None
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """End everything where it is."""
        self._ready.clear()
        self._timers.clear()
        for process in self.processes:
            process.close()


class Process(VirtualLoop):
    """One process on a machine of its own, whose wall clock is `ahead_s` ahead; also the event loop of its coroutines.

    A `suspended` one does nothing until it is resumed; requests that it has sent arrive. A machine that sleeps has a
    monotonic clock that stood still meanwhile, one that is stopped by a signal does not. A `dead` one does nothing.
    """

    def __init__(self, world: World, name: str, *, ahead_s: float = 0.0) -> None:
        super().__init__()
        self.world = world
        self.name = name
        self.ahead_s = ahead_s
        self.dead = self.suspended = False
        self.stalled: list[Callable[[], None]] = []
        self.asleep_s = 0.0
        self.suspended_at = 0.0
        world.processes.append(self)

    def start(self, work: Any) -> None:  # noqa: ANN401 -- a coroutine
        """Run a coroutine as this process's own; what it raises fails the schedule."""

        async def watched() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 -- raised where the world runs
                self.world.failure = error

        self.call_soon(watched())

    def kill(self) -> None:
        """End it as SIGKILL does: what it has sent may still arrive."""
        self.dead = True
        self.suspended = False
        self.stalled.clear()
        self.world.note(f"{self.name} is killed")

    def suspend(self) -> None:
        """Stop it between two steps."""
        if not self.suspended and not self.dead:
            self.suspended, self.suspended_at = True, self.world.now
            self.world.note(f"{self.name} is suspended")

    def resume(self, *, slept: bool) -> None:
        """Continue; `slept`: its monotonic clock stood still."""
        if not self.suspended or self.dead:
            return
        self.suspended = False
        if slept:
            self.asleep_s += self.world.now - self.suspended_at
        self.world.note(f"{self.name} is resumed")
        stalled, self.stalled = self.stalled, []
        for work in stalled:
            self.world.soon(self, work)

    def monotonic(self) -> float:
        """As `time.monotonic`."""
        return self.world.now - self.asleep_s

    def time(self) -> float:
        """As `time.time`."""
        return EPOCH_S + self.world.now + self.ahead_s

    def call_later(self, seconds: float, work: Callable[[], None]) -> None:
        """Call a function after so long."""
        self.world.later(seconds, self, work)

    def _soon(self, work: Callable[[], None]) -> None:
        self.world.soon(self, work)


class _Clock:
    """In place of the module `time` for the product's code: the clocks of the process that runs."""

    world: World | None = None
    sleeps: Callable[[float], None] | None = None
    CLOCK_BOOTTIME = 7

    def monotonic(self) -> float:
        current = self.world.current  # type: ignore[union-attr]
        return self.world.now - current.asleep_s  # type: ignore[union-attr]

    def time(self) -> float:
        return self.process.time()

    def sleep(self, seconds: float) -> None:
        """As `time.sleep`, in a thread of a simulated process; `sleeps` does it if it is set."""
        if self.sleeps is not None:
            self.sleeps(seconds)
            return
        from tests.simulation.threads import sleep  # noqa: PLC0415 -- built on this module

        sleep(seconds)

    def perf_counter(self) -> float:
        return self.process.monotonic()

    def gmtime(self, seconds: float | None = None) -> real_time.struct_time:
        return real_time.gmtime(self.time() if seconds is None else seconds)

    def clock_gettime(self, _: int) -> float:
        """The clock that also counts while a machine sleeps."""
        return self._world().now

    def _world(self) -> World:
        assert self.world is not None
        return self.world

    @property
    def process(self) -> Process:
        """The process that runs."""
        current = self._world().current
        assert current is not None, "no process runs"
        return current

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(real_time, name)


clock = _Clock()


def install() -> list[str]:
    """Give every module of the product that is loaded the simulated clock; returns their names."""
    changed = []
    for name, module in list(sys.modules.items()):
        if name.startswith("mirrorless.") and getattr(module, "time", None) is real_time:
            module.time = clock  # type: ignore[attr-defined]
            changed.append(name)
    return changed


def uninstall(names: list[str]) -> None:
    """Undo `install`."""
    for name in names:
        sys.modules[name].time = real_time  # type: ignore[attr-defined]
