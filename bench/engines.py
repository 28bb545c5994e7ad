"""What copies in a benchmark: MirrorMaker 2 in four settings, and this project's engines, each as whole processes."""

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
"""Those of benchmarks without distance; `OURS` is the Spark engine."""
LINK_TUNED: Final = "MirrorMaker 2, tuned for links"
FUNCTIONS: Final = "Mirrorless, functions"
SPARK: Final = "Mirrorless, Spark"
OUR_LINK_ENGINES: Final = (FUNCTIONS, SPARK)
LINK_ENGINES: Final = (DEFAULT, LINK_TUNED, *OUR_LINK_ENGINES)
"""Those of the benchmark with distance."""
_TASKS: Final = 2
_LINK_TASKS: Final = 6
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

    By default MirrorMaker 2 has a task for each of two cores (tuned for links: six), and this project its
    one slot.
    """
    if engine in (OURS, SPARK, FUNCTIONS):
        tasks = tasks or _OUR_SLOTS
        chosen = ("functions",) if engine == FUNCTIONS else ("spark", "--spark-master", f"local[{tasks}]")
        world.write_settings(**{"tasks.max": str(tasks), "emit.checkpoints.enabled": "false"})
        with Mirrorless(world.file, "--engine", *chosen) as ours:
            yield Running(Family(ours.process.pid))
        return
    tasks = tasks or (_LINK_TASKS if engine == LINK_TUNED else _TASKS)
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
    # The settings of a world say whether its clients go through a link.
    settings |= {key: value for key, value in world.extra.items() if key.endswith(".bootstrap.servers")}
    if engine == TUNED:
        settings |= _tuned(world)
    if engine == LINK_TUNED:
        settings |= _tuned_for_links(world)
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


def _tuned_for_links(world: World) -> dict[str, str]:
    """Settings for a link of high latency: what is recommended, in sizes that are at least as large as recommended.

    - Amazon MSK, developer guide, Migrate to an Amazon MSK cluster: fill batches (`buffer.memory`, `batch.size`,
      `linger.ms`), tune the socket buffers (`receive.buffer.bytes`, `send.buffer.bytes`).
    - Red Hat Streams for Apache Kafka, Kafka configuration tuning, Handling high volumes of messages: larger
      `fetch.max.bytes`, `max.partition.fetch.bytes`, `max.poll.records`, `batch.size` and `linger.ms`; its example has
      320 KiB, 100 ms, 50 MiB, 1 MiB and 500 records. Increasing bandwidth for high latency connections: buffers of
      bandwidth times round trip.
    - Cloudera, Configuring Streams Replication Manager Driver for performance tuning: more tasks, up to the number of
      partitions, each of which has connections of its own.
    - Connect has one request in flight to each broker; five, with idempotence so that order is kept, are what
      users set beside these where the target is far.

    -1 leaves the size of a socket's buffers to the operating system.
    """
    sockets = {"send.buffer.bytes": "-1", "receive.buffer.bytes": "-1"}
    producer = sockets | {
        "compression.type": "lz4",
        "batch.size": str(1 << 20),
        "linger.ms": "100",
        "buffer.memory": str(64 << 20),
        "max.request.size": str(16 << 20),
        "enable.idempotence": "true",
        "max.in.flight.requests.per.connection": "5",
    }
    consumer = sockets | {
        "max.poll.records": "20000",
        "fetch.max.bytes": str(100 << 20),
        "max.partition.fetch.bytes": str(16 << 20),
    }
    return {f"{world.target_alias}.producer.{key}": value for key, value in producer.items()} | {
        f"{world.source_alias}.consumer.{key}": value for key, value in consumer.items()
    }
