"""Invocations of the `copy` function one after the other under a steady load, some of them killed: what is lost.

    python -m bench.function_ticks [--ticks 60] [--tick 10] [--mb-per-s 2] [--kill-every 10]
        [--age-days 3] [--expiry-ms 100]

Each tick invokes an idle environment of the function, or starts another one, as Lambda does; all run the handler under
the real Lambda runtime client, with the CPU of a function of 512 MB. Every tenth invocation is killed while it copies.
Every record has a number and the time at which it was written; a reader on the target notes both. `--age-days` gives
the records older timestamps, and `--expiry-ms` lets the target forget producers that soon.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from bench.lambda_limits import limited, peak_mb
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.runtime_api import Function
from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.local.embedded_kafka import EmbeddedCluster

PARTITIONS: Final = 8
RECORD_BYTES: Final = 1_000
MEMORY_MB: Final = 512
_DAY_MS: Final = 86_400_000
_HEAD: Final = struct.Struct(">Qd")
_SCHEDULED: Final[Mapping[str, Any]] = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
_BURST_S: Final = 0.1
_TIMEOUT_S: Final = 120.0
"""The timeout in the template."""
_MOST_TICKS_AFTER: Final = 12


class Load(threading.Thread):
    """Writes so many MB a second, in order within each partition, until `stop` is set; `written` counts."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, *, mb_per_s: float, age_days: float) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.written = [0] * PARTITIONS
        self._client = producer(cluster, linger_ms=5)
        self._topic = topic
        self._each = max(1, round(mb_per_s * 1e6 * _BURST_S / RECORD_BYTES / PARTITIONS))
        self._age_ms = int(age_days * _DAY_MS)

    def run(self) -> None:
        """Write until `stop` is called, then wait for the acknowledgements."""
        due = time.monotonic()
        while not self.stop.is_set():
            now = time.time()
            for partition in range(PARTITIONS):
                for _ in range(self._each):
                    value = _HEAD.pack(self.written[partition], now).ljust(RECORD_BYTES, b".")
                    self._client.produce(
                        self._topic, value=value, partition=partition, timestamp=int(now * 1000) - self._age_ms
                    )
                    self.written[partition] += 1
            self._client.poll(0)
            due += _BURST_S
            time.sleep(max(0.0, due - time.monotonic()))
        assert self._client.flush(60) == 0


class Reader(threading.Thread):
    """Reads the remote topic, and notes the number of each record and how long it took to arrive."""

    def __init__(self, cluster: EmbeddedCluster, topic: str) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.next = [0] * PARTITIONS
        self.repeated = self.missing = 0
        self.longest_s = 0.0
        self.delays: dict[int, float] = defaultdict(float)
        self._client = Consumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "reader", "enable.auto.commit": False}
        )
        self._client.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
        self._began = time.time()

    def run(self) -> None:
        """Read until `stop` is called."""
        while not self.stop.is_set():
            for message in self._client.consume(5_000, timeout=0.2):
                assert message.error() is None, message.error()
                number, written_at = _HEAD.unpack_from(message.value() or b"")
                partition = message.partition() or 0
                expected = self.next[partition]
                self.repeated += number < expected
                self.missing += max(0, number - expected)
                self.next[partition] = max(expected, number + 1)
                delay = time.time() - written_at
                self.longest_s = max(self.longest_s, delay)
                second = int(time.time() - self._began)
                self.delays[second] = max(self.delays[second], delay)


class Environments:
    """Environments of the function, as Lambda keeps them: idle ones are used again."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stack = ExitStack()
        self._idle: list[Function] = []
        self._busy: list[Function] = []
        self.cold_starts = 0
        self.answers: list[Any] = []
        self.peak_mb = 0.0

    def __enter__(self) -> Environments:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def look(self) -> None:
        """Note the answers that have come."""
        for function in list(self._busy):
            if not function._answers.empty():
                answer = function.end()
                assert answer.error is None, f"{answer.error}\n{function.output.read_text()}"
                self.answers.append(answer.result)
                self.peak_mb = max(self.peak_mb, peak_mb(function.process.pid))
                self._busy.remove(function)
                self._idle.append(function)

    def invoke(self, *, timeout_s: float) -> Function:
        """Invoke the function."""
        self.look()
        function = self._idle.pop() if self._idle else self._started()
        self._busy.append(function)
        function.begin(_SCHEDULED, timeout_s=timeout_s)
        return function

    def kill(self, function: Function) -> bool:
        """Kill an environment that is busy; returns whether it was."""
        self.look()
        if function not in self._busy:
            return False
        function.process.kill()
        function.process.wait()
        self._busy.remove(function)
        return True

    def _started(self) -> Function:
        self.cold_starts += 1
        environment = {
            "MIRRORLESS_CONFIG": str(self._world.file),
            "MIRRORLESS_FLOW": self._world.flow,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(MEMORY_MB),
        }
        function = self._stack.enter_context(Function("copy", self._world.folder, environment))
        self._stack.enter_context(limited(function.process.pid, memory_mb=MEMORY_MB))
        return function


def run(given: argparse.Namespace, clusters: Mapping[str, EmbeddedCluster], folder: Path) -> dict[str, Any]:
    """Invoke for so many ticks, then until everything is copied; returns what was seen."""
    chance = random.Random(1)  # noqa: S311
    world = World(clusters["source"], clusters["target"], folder)
    world.extra |= {"mirrorless.engine": "functions", "mirrorless.copy.tick.seconds": str(given.tick)}
    topic = world.topic(PARTITIONS)
    world.discover()
    load = Load(world.source, topic, mb_per_s=given.mb_per_s, age_days=given.age_days)
    reader = Reader(world.target, world.remote(topic))
    killed = 0
    with Environments(world) as environments:
        load.start()
        reader.start()
        due = time.monotonic()
        for tick in range(1, given.ticks + 1):
            function = environments.invoke(timeout_s=_TIMEOUT_S)
            due += given.tick
            if given.kill_every and tick % given.kill_every == 0:
                time.sleep(given.tick * chance.uniform(0.3, 0.9))
                killed += environments.kill(function)
            while time.monotonic() < due:
                environments.look()
                time.sleep(0.1)
        load.stop.set()
        load.join()
        for _ in range(_MOST_TICKS_AFTER):
            if reader.next == load.written:
                break
            environments.invoke(timeout_s=_TIMEOUT_S)
            due += given.tick
            while time.monotonic() < due and reader.next != load.written:
                environments.look()
                time.sleep(0.1)
        time.sleep(2)  # what comes twice may come late
        reader.stop.set()
        reader.join()
        records = sum(load.written)
        delays = sorted(reader.delays.values())
        return {
            "ticks": given.ticks,
            "tick_s": given.tick,
            "age_days": given.age_days,
            "expiry_ms": given.expiry_ms,
            "records": records,
            "killed": killed,
            "cold_starts": environments.cold_starts,
            "lost": records - sum(reader.next) + reader.missing,
            "repeated": reader.repeated,
            "longest_delay_s": round(reader.longest_s, 2),
            "median_of_seconds_s": round(delays[len(delays) // 2], 2),
            "at_most_half_a_second": round(sum(one <= 0.5 for one in delays) / len(delays), 3),
            "peak_mb": round(environments.peak_mb, 1),
            "notes": _counted(answer["note"] for answer in environments.answers),
        }


def _counted(notes: Any) -> dict[str, int]:  # noqa: ANN401
    found: dict[str, int] = defaultdict(int)
    for note in notes:
        found[note] += 1
    return dict(found)


def main() -> None:
    """Run once, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=60)
    parser.add_argument("--tick", type=float, default=10.0)
    parser.add_argument("--mb-per-s", type=float, default=2.0)
    parser.add_argument("--kill-every", type=int, default=10)
    parser.add_argument("--age-days", type=float, default=0.0)
    parser.add_argument("--expiry-ms", type=int)
    given = parser.parse_args()
    settings = {}
    if given.expiry_ms:
        settings = {
            "producer.id.expiration.ms": str(given.expiry_ms),
            "producer.id.expiration.check.interval.ms": "50",
            "transactional.id.expiration.ms": str(given.expiry_ms),
        }
    specs = [ClusterSpec(name="source"), ClusterSpec(name="target", settings=settings)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, start_clusters(specs) as clusters:
        print(json.dumps(run(given, clusters, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
