"""End-to-end latency beside MirrorMaker 2: from a record's timestamp to a consumer of the remote topic.

    python -m bench.latency [--rate 1000 …] [--engine NAME …] [--seconds 20] [--json FILE]

Producer and consumer are in one process, with one clock. The producer does not linger for more than 5 ms. Counted is
what comes once the engine has caught up with what was produced while it started; an engine that has not after a minute
and a half is measured as it is, and said to fall behind. This project is watched for as long as a lease lasts, so that
the end of one is among it: of the first, when Spark does for the first time what it does between two.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_END, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench import tables
from bench.brokers import source_and_target
from bench.engines import ENGINES, OURS, running
from bench.throughput import Ends
from bench.workloads import PARTITIONS
from mirrorless.settings import Flow
from tests.support.world import World, producer

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_RATES = (1_000, 10_000, 50_000)
_SETTLE_S = 10.0
_CATCHING_UP_S = 90.0
_CAUGHT_UP_S = 1.0
"""So many seconds of records may be on their way."""
_PATIENCE_S = 300.0
_LEASE_S = 1.05 * Flow.model_fields["lease_seconds"].default
_TICK_S = 0.005
_VALUE = b"x" * 100


class Stream:
    """Records at a steady rate, as long as the context is open."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, per_second: int, *, partitions: int = PARTITIONS) -> None:
        self._partitions = partitions
        self._producer = producer(cluster, linger_ms=5, queue_buffering_max_messages=1_000_000)
        self._topic, self._per_second = topic, per_second
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        self._producer.flush(60)

    def _run(self) -> None:
        began, sent = time.monotonic(), 0
        while not self._ending.wait(_TICK_S):
            due = int((time.monotonic() - began) * self._per_second)
            for number in range(sent, due):
                self._producer.produce(self._topic, value=_VALUE, partition=number % self._partitions)
            sent = due
            self._producer.poll(0)


def latencies_ms(cluster: EmbeddedCluster, topic: str, seconds: float, *, partitions: int = PARTITIONS) -> list[float]:
    """Read what arrives for so long; a record's latency is that of the moment it was handed over."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, OFFSET_END) for number in range(partitions)])
    found: list[float] = []
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            # One by one, not by hundreds: a call returns when its batch is full or its time is over.
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append(time.time() * 1000 - message.timestamp()[1])
    finally:
        consumer.close()
    return found


def measure(
    engine: str, per_second: int, clusters: dict[str, EmbeddedCluster], seconds: float
) -> tuple[list[float], bool]:
    """Latencies of one engine at one rate, in ms, and whether it keeps up with that rate."""
    topic = f"latency-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": clusters["source"].bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=[topic])
        with Stream(world.source, topic, per_second), running(engine, world):
            there, here = Ends(world.source, {topic: PARTITIONS}), Ends(world.target, {world.remote(topic): PARTITIONS})
            until = time.monotonic() + _PATIENCE_S
            while not here.total():
                assert time.monotonic() < until, f"{engine} copies nothing"
                time.sleep(0.2)
            until = time.monotonic() + _CATCHING_UP_S
            while not (keeps_up := there.total() - here.total() < per_second * _CAUGHT_UP_S):
                if time.monotonic() > until:
                    break
                time.sleep(0.2)
            time.sleep(_SETTLE_S)
            return latencies_ms(world.target, world.remote(topic), seconds), keeps_up


def main() -> None:
    """Measure what is asked for and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", action="append", type=int)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    with source_and_target() as clusters:
        for rate in given.rate or _RATES:
            for engine in given.engine or ENGINES:
                seconds = max(given.seconds, _LEASE_S) if engine == OURS else given.seconds
                found, keeps_up = measure(engine, rate, clusters, seconds)
                cuts = statistics.quantiles(found, n=100)
                rows.append(
                    {
                        "rate": rate,
                        "engine": engine,
                        "seen": len(found),
                        "keeps_up": keeps_up,
                        "p50": cuts[49],
                        "p99": cuts[98],
                        "max": max(found),
                    }
                )
    print(*tables.latency(rows), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
