"""Throughput, CPU, memory and bytes stored: this project beside MirrorMaker 2 on the same brokers and records.

    python -m bench.throughput [--workload NAME …] [--engine NAME …] [--rounds 3] [--json FILE]
    python -m bench.throughput --quick

Engines take turns in every round, each into a remote topic of its own; who begins changes from round to round. Seconds
are from the first record that is seen on the target to the last one, whose time is that of its log file: a look now and
then would add half of the time between two to a copy of a second. While records come, looks are at log files only: to
ask a broker for the ends of 1,000 partitions costs it and this process 35 ms. CPU is that of the engine's whole process
tree in that time, and beside it with its start. Before the first round of a workload stands what the brokers alone can
do (`bench.limits`), again and again until it is no faster. Then the copier alone, without Spark, copies until it is no
faster, and every engine copies once or more without being counted (`Workload.warm_rounds`): brokers that have run for
weeks have compiled what an engine asks of them, these have not.
Each round begins with the limit, for a machine's speed is another one minutes later; of it and of the engines the
medians count. The quick run is one round of the first workload against tuned MirrorMaker 2 and prints the ratios alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from bench import limits, slot, tables
from bench.brokers import source_and_target
from bench.engines import ENGINES, OURS, TUNED, running
from bench.logs import FirstSegments, appended_at, stored_bytes, until_gone, until_made
from bench.workloads import WORKLOADS
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka.admin import TopicMetadata

    from mirrorless.local.embedded_kafka import EmbeddedCluster

_PATIENCE_S = 600.0
_QUIET_S = 2.0
_FIRST_LOOKS_S = 0.01
_LOOK_S = 0.3
_WARMING = "1 KB, lz4"
_WARM_ROUNDS = 4
_WARMEST_ROUNDS = 16
_NO_FASTER = 0.95
_LATEST = 4
"""Brokers compile in bursts, so that of three copies in a row none may be faster, and then others are by a quarter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One engine's copy of one workload."""

    workload: str
    engine: str
    records: int
    source_bytes: int
    stored_bytes: int
    seconds: float
    cpu_s: float
    cpu_with_start_s: float
    peak_bytes: int

    @property
    def per_second(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a record."""
        return self.cpu_s * 1e6 / self.records


class Ends:
    """How many offsets topics have together, each of so many partitions; 0 for those that are not there."""

    def __init__(self, cluster: EmbeddedCluster, partitions: Mapping[str, int]) -> None:
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self._latest = {
            TopicPartition(topic, number): OffsetSpec.latest()
            for topic, count in partitions.items()
            for number in range(count)
        }
        self._missing = dict(partitions)

    def total(self) -> int:
        """Sum of the partitions' ends."""
        # Asked thousands of times for what is not there, librdkafka's client has ended the process: double free.
        if self._missing:
            there = self._admin.list_topics(timeout=10).topics
            missing = {topic: count for topic, count in self._missing.items() if not _whole(there.get(topic), count)}
            if missing:
                return 0
            self._missing = {}
        found = self._admin.list_offsets(self._latest, request_timeout=10)
        return sum(0 if one.exception() else one.result().offset for one in found.values())


def _whole(topic: TopicMetadata | None, partitions: int) -> bool:
    return (
        topic is not None
        and len(topic.partitions) >= partitions
        and all(one.leader >= 0 for one in topic.partitions.values())
    )


def measure(
    engine: str, workload: str, world: World, *, partitions: Mapping[str, int], records: int, tasks: int | None = None
) -> Sample:
    """Let an engine copy all there is, and say what it took; the records of a transaction's end count as none.

    `partitions` has the source topics, each with the number of its partitions.
    """
    remote = {world.remote(topic): count for topic, count in partitions.items()}
    logs, ends = FirstSegments(world.target, remote), Ends(world.target, remote)
    # A look at a thousand files takes a few milliseconds.
    first_looks_s = _FIRST_LOOKS_S if sum(partitions.values()) < 100 else 6 * _FIRST_LOOKS_S
    begun = time.monotonic()
    with running(engine, world, tasks) as now:
        while not (before := logs.size_bytes()):
            assert time.monotonic() < begun + _PATIENCE_S, f"{engine} copies nothing"
            time.sleep(first_looks_s)
        first = last = time.monotonic()
        since_1970 = time.time() - first
        cpu_before = now.family.look()
        size, cpu, total = before, cpu_before, 0
        while total < records:
            time.sleep(_LOOK_S)
            if (found := logs.size_bytes()) > size:
                size, last, cpu = found, time.monotonic(), now.family.look()
            elif time.monotonic() > last + _QUIET_S:
                total = ends.total()
            assert time.monotonic() < begun + _PATIENCE_S, f"{engine}: not all of {records:,} records came"
        stored = sum(stored_bytes(world.target, topic) for topic in remote)
        assert stored == logs.size_bytes(), f"{engine}: a log has a second segment"
        last = min(last, max(appended_at(world.target, topic) for topic in remote) - since_1970)
        share = 1 - before / size  # what was there at the first look took no time that was seen
        return Sample(
            workload=workload,
            engine=engine,
            records=records,
            source_bytes=sum(stored_bytes(world.source, topic) for topic in partitions),
            stored_bytes=stored,
            seconds=(last - first) / share,
            cpu_s=(cpu - cpu_before) / share,
            cpu_with_start_s=cpu,
            peak_bytes=now.family.peak_bytes,
        )


def run(
    clusters: dict[str, EmbeddedCluster], name: str, engines: list[str], rounds: int, *, limit: bool
) -> tuple[list[Sample], list[limits.Limits]]:
    """Fill a topic once, and let every engine copy it in every round.

    With `limit`, each round begins with the brokers' own limit, and rounds go before that are not counted; returned are
    all measurements of the limit, those of the rounds last.
    """
    source, target = clusters["source"], clusters["target"]
    topic = f"bench-{time.monotonic_ns()}"
    workload = WORKLOADS[name]
    records = workload.make(source, topic)
    found: list[limits.Limits] = []

    def look() -> None:
        found.append(limits.measure(source, target, topic, workload.partitions, workload.config))

    if alone := limit and workload.raw:
        # Engines that take seconds would else be measured with brokers that are slower than at their limit.
        while _still_faster([one.slower_s for one in found]):
            look()
    if limit:
        seconds: list[float] = []
        while _still_faster(seconds):
            seconds.append(copy_without_spark(clusters, topic, workload.partitions))
        for engine in engines * workload.warm_rounds:
            _copy_once(clusters, engine, name, topic, records)
    samples = []
    for number in range(rounds):
        if alone:
            look()
        begins = number % len(engines)
        turn = (*engines[begins:], *engines[:begins])
        samples += [_copy_once(clusters, engine, name, topic, records) for engine in turn]
    tidy(source, [topic])
    return samples, found


def _still_faster(seconds: list[float]) -> bool:
    if _LATEST < len(seconds) < _WARMEST_ROUNDS:
        return min(seconds[-_LATEST:]) < _NO_FASTER * min(seconds[:-_LATEST])
    return len(seconds) <= _LATEST


def warm(clusters: dict[str, EmbeddedCluster]) -> None:
    """Have the brokers' code compiled: a cold broker takes twice the CPU."""
    source, target = clusters["source"], clusters["target"]
    workload, topic = WORKLOADS[_WARMING], f"warm-{time.monotonic_ns()}"
    workload.make(source, topic)
    for _ in range(_WARM_ROUNDS):
        limits.measure(source, target, topic, workload.partitions, workload.config)
    tidy(source, [topic])


def _copy_once(clusters: dict[str, EmbeddedCluster], engine: str, name: str, topic: str, records: int) -> Sample:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=[topic])
        sample = measure(engine, name, world, partitions={topic: WORKLOADS[name].partitions}, records=records)
        tidy(world.target, [world.remote(topic)])
    return sample


def copy_without_spark(clusters: dict[str, EmbeddedCluster], topic: str, partitions: int) -> float:
    """Let the copier alone copy a topic; returns seconds."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        world = World(clusters["source"], clusters["target"], Path(folder), topics=[topic])
        world.write_settings()
        world.discover()
        until_made(world.target, world.remote(topic), partitions)
        seconds = slot.measured(world, world.flow)["seconds"]
        tidy(world.target, [world.remote(topic)])
    return seconds


def tidy(cluster: EmbeddedCluster, topics: list[str]) -> None:
    """Delete topics, and wait for it: what lies on the disk would be in the way of the next ones."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_topics(topics).values():
        future.result()
    for topic in topics:
        until_gone(cluster, topic)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS))
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    workloads = given.workload or (list(WORKLOADS)[:1] if given.quick else list(WORKLOADS))
    engines = given.engine or ([TUNED, OURS] if given.quick else list(ENGINES))
    samples: list[Sample] = []
    usual: dict[str, limits.Limits] = {}
    least: dict[str, limits.Limits] = {}
    with source_and_target() as clusters:
        warm(clusters)
        for workload in workloads:
            rounds = 1 if given.quick else given.rounds
            found, bounds = run(clusters, workload, engines, rounds, limit=not given.quick)
            samples += found
            if bounds:
                usual[workload], least[workload] = limits.median(bounds[-rounds:]), limits.fastest(bounds)
            measured = {
                "python": sys.version,  # one that was built with a profile runs small loops in two thirds of the time
                "samples": [asdict(one) for one in samples],
                "limits": {name: asdict(one) for name, one in usual.items()},
                "fastest": {name: asdict(one) for name, one in least.items()},
            }
            if given.json:  # after each one: the whole takes long
                given.json.write_text(json.dumps(measured, indent=1) + "\n")
    print(*(tables.ratios if given.quick else tables.throughput)(measured), sep="\n")


if __name__ == "__main__":
    main()
