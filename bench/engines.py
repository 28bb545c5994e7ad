"""What copies in a benchmark: MirrorMaker 2 in three settings, and this project, each as whole processes."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import psutil

from tests.support.peer import MirrorMaker, peer_settings
from tests.support.processes import Mirrorless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

OURS: Final = "Mirrorless"
DEFAULT: Final = "MirrorMaker 2"
TUNED: Final = "MirrorMaker 2, tuned"
EXACTLY_ONCE: Final = "MirrorMaker 2, exactly-once"
ENGINES: Final = (DEFAULT, TUNED, EXACTLY_ONCE, OURS)
_TASKS: Final = 2
_OUR_SLOTS: Final = 1
"""Its default. On two cores a second one costs up to two fifths more CPU a record; `bench.growth` shows its worth."""


class Family:
    """A process and everything below it: CPU in seconds, of those that ended too as far as they were seen."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._cpu: dict[int, float] = {}
        self.peak_bytes = 0

    def look(self) -> float:
        """Return the CPU seconds so far, user and system, and note the memory."""
        resident = 0
        with suppress(psutil.NoSuchProcess):
            for process in (self._root, *self._root.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    self._cpu[process.pid] = times.user + times.system
                    resident += process.memory_info().rss
        self.peak_bytes = max(self.peak_bytes, resident)
        return sum(self._cpu.values())


@dataclass(frozen=True, slots=True)
class Running:
    """An engine at work."""

    family: Family


@contextmanager
def running(engine: str, world: World, tasks: int | None = None) -> Iterator[Running]:
    """Start an engine for the flow of a world with so many slots or tasks; leaving the context stops it.

    Unless told otherwise, MirrorMaker 2 has a task for each of two cores, and this project its one slot.
    """
    tasks = tasks or (_OUR_SLOTS if engine == OURS else _TASKS)
    if engine == OURS:
        world.write_settings(**{"tasks.max": str(tasks), "emit.checkpoints.enabled": "false"})
        with Mirrorless(world.file, "--engine", "spark", "--spark-master", f"local[{tasks}]") as ours:
            yield Running(Family(ours.process.pid))
        return
    # Neither engine has anything to do beside the copy, and what there is to copy is there when it starts.
    settings = peer_settings(
        world,
        **{
            "tasks.max": str(tasks),
            "emit.checkpoints.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "refresh.topics.interval.seconds": "600",
            "refresh.groups.interval.seconds": "600",
        },
    )
    if engine == TUNED:
        settings |= _tuned(world)
    if engine == EXACTLY_ONCE:
        settings[f"{world.target_alias}.exactly.once.source.support"] = "enabled"
    with MirrorMaker(world.folder, settings, as_shipped=True) as peer:
        yield Running(Family(peer.pid))


def _tuned(world: World) -> dict[str, str]:
    """Large batches, compressed, and as many records a poll as its users set (lz4, 512 KiB, 50 ms, 10,000)."""
    return {
        f"{world.target_alias}.producer.compression.type": "lz4",
        f"{world.target_alias}.producer.batch.size": str(512 << 10),
        f"{world.target_alias}.producer.linger.ms": "50",
        f"{world.source_alias}.consumer.max.poll.records": "10000",
    }
