"""What the `copy` function copies with a function's CPU: MB/s with and without TLS, peak memory, and a cold start.

    python -m bench.function_copy [--memory 512] [--megabytes 200] [--cold-topics 2000]

The handler runs under the real Lambda runtime client, whose process has the CPU of a function of so many MB (see
`lambda_limits`), from its start on. A topic is full when it starts; the rate is that between the first and the last
record on the target. Kafka's own clients would say the same of the brokers: they have a core and more for themselves.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from bench.lambda_limits import cores, cpu_s, limited, peak_mb
from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.kafka.security.conftest import tls
from tests.support.certificates import PASSWORD, Authority
from tests.support.runtime_api import Function
from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PATIENCE_S: Final = 600.0
_LOOK_S: Final = 0.1
_RECORD_BYTES: Final = 1_000
_SCHEDULED: Final[Mapping[str, Any]] = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One copy of a full topic."""

    memory_mb: int
    tls: bool
    partitions: int
    mb: float
    seconds: float
    mb_per_s: float
    cpu_ms_per_mb: float
    first_record_s: float
    peak_mb: float


def servers(cluster: EmbeddedCluster, *, secure: bool) -> str:
    """Bootstrap servers of a cluster."""
    return cluster.secure_servers("tls") if secure else cluster.bootstrap_servers


def ends(admin: AdminClient, topic: str, partitions: int) -> int:
    """The sum of a topic's end offsets; 0 while it does not exist."""
    if topic not in admin.list_topics(timeout=30).topics:
        return 0
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    found = admin.list_offsets(asked, request_timeout=30).values()
    return sum(future.result().offset for future in found if future.exception() is None)  # some have no leader yet


def make(cluster: EmbeddedCluster, topic: str, partitions: int, *, megabytes: int) -> int:
    """Create and fill a topic, records of 1 KB that compress to a half, in lz4; returns how many."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    chance = random.Random(1)  # noqa: S311
    values = [chance.randbytes(_RECORD_BYTES // 2).ljust(_RECORD_BYTES, b".") for _ in range(1_000)]
    client = producer(
        cluster,
        compression_type="lz4",
        batch_size=1 << 18,
        linger_ms=50,
        queue_buffering_max_messages=1_000_000,
        queue_buffering_max_kbytes=2_000_000,
    )
    records = megabytes * 2_000_000 // _RECORD_BYTES
    for number in range(records):
        client.produce(topic, value=values[number % 1_000], partition=number // 500 % partitions)
        if number % 1_000 == 0:
            client.poll(0)
    assert client.flush(120) == 0
    return records


class Bench:
    """Two clusters, and worlds on them."""

    def __init__(self, clusters: Mapping[str, EmbeddedCluster], authority: Authority, *, memory_mb: int) -> None:
        self._clusters = clusters
        self._authority = authority
        self._memory_mb = memory_mb

    def world(self, folder: Path, *, secure: bool) -> World:
        """A flow; with TLS its file has the secure listeners only."""
        world = World(self._clusters["source"], self._clusters["target"], folder)
        world.extra["mirrorless.engine"] = "functions"
        if secure:
            for alias, cluster in ((world.source_alias, world.source), (world.target_alias, world.target)):
                world.extra |= {
                    f"{alias}.bootstrap.servers": servers(cluster, secure=True),
                    f"{alias}.security.protocol": "SSL",
                    f"{alias}.ssl.truststore.location": str(self._authority.trust_store()),
                    f"{alias}.ssl.truststore.type": "PKCS12",
                    f"{alias}.ssl.truststore.password": PASSWORD,
                }
        return world

    def rate(self, *, secure: bool, partitions: int, megabytes: int) -> Rate:
        """Copy a full topic."""
        with tempfile.TemporaryDirectory() as folder:
            world = self.world(Path(folder), secure=secure)
            topic = f"full-{time.monotonic_ns()}"
            records = make(world.source, topic, partitions, megabytes=megabytes)
            world.topics.append(topic)
            world.write_settings()
            world.discover()
            admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
            with self._started(world) as function:
                pid, began = function.process.pid, time.monotonic()
                function.begin(_SCHEDULED, timeout_s=120)
                first, first_cpu, already = 0.0, 0.0, 0
                while (there := ends(admin, world.remote(topic), partitions)) < records:
                    assert time.monotonic() < began + _PATIENCE_S, function.output.read_text()
                    if there and not first:
                        first, first_cpu, already = time.monotonic(), cpu_s(pid), there
                    if not function._answers.empty():
                        function.end()
                        function.begin(_SCHEDULED, timeout_s=120)
                    time.sleep(_LOOK_S)
                seconds, cpu = time.monotonic() - first, cpu_s(pid) - first_cpu
                mb = megabytes * (records - already) / records
                return Rate(
                    memory_mb=self._memory_mb,
                    tls=secure,
                    partitions=partitions,
                    mb=round(mb, 1),
                    seconds=round(seconds, 1),
                    mb_per_s=round(mb / seconds, 1),
                    cpu_ms_per_mb=round(cpu / mb * 1000, 2),
                    first_record_s=round(first - began, 1),
                    peak_mb=round(peak_mb(pid), 1),
                )

    def cold_start(self, topics: int) -> dict[str, float]:
        """Seconds from the start of the process to the first record of a flow with so many topics, and the peak."""
        with tempfile.TemporaryDirectory() as folder:
            world = self.world(Path(folder), secure=False)
            stem = f"cold-{time.monotonic_ns()}"
            names = [f"{stem}-{number}" for number in range(topics)]
            admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
            for at in range(0, topics, 200):
                for future in admin.create_topics([NewTopic(name, 1, 1) for name in names[at : at + 200]]).values():
                    future.result()
            client = producer(world.source)
            for name in names:
                client.produce(name, b"x" * 100, partition=0)
            assert client.flush(120) == 0
            world.topics.append(f"{stem}-.*")
            world.write_settings()
            world.discover()
            target = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
            asked = {TopicPartition(world.remote(name), 0): OffsetSpec.latest() for name in names}

            def copied() -> int:
                found = target.list_offsets(asked, request_timeout=30).values()
                return sum(future.exception() is None and future.result().offset > 0 for future in found)

            began = time.monotonic()
            with self._started(world) as function:
                function.begin(_SCHEDULED, timeout_s=120)
                first = 0.0
                while (there := copied()) < topics:
                    assert time.monotonic() < began + _PATIENCE_S, function.output.read_text()
                    first = first or (time.monotonic() if there else 0.0)
                    time.sleep(_LOOK_S)
                first = first or time.monotonic()
                return {
                    "topics": topics,
                    "first_record_s": round(first - began, 1),
                    "all_s": round(time.monotonic() - began, 1),
                    "cpu_s": round(cpu_s(function.process.pid), 1),
                    "peak_mb": round(peak_mb(function.process.pid), 1),
                }

    def _started(self, world: World) -> _Limited:
        return _Limited(world, memory_mb=self._memory_mb)


class _Limited:
    """The function with its limit."""

    def __init__(self, world: World, *, memory_mb: int) -> None:
        self._world = world
        self._memory_mb = memory_mb
        self._stack = ExitStack()

    def __enter__(self) -> Function:
        environment = {
            "MIRRORLESS_CONFIG": str(self._world.file),
            "MIRRORLESS_FLOW": self._world.flow,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self._memory_mb),
        }
        function = self._stack.enter_context(Function("copy", self._world.folder, environment))
        self._stack.enter_context(limited(function.process.pid, memory_mb=self._memory_mb))
        return function

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def started(folder: Path) -> tuple[ExitStack, dict[str, EmbeddedCluster], Authority]:
    """Two clusters with a plain and a secure listener."""
    authority = Authority.make(folder)
    listener = SecureListener(name="tls", protocol="SSL", settings=tls(authority, authority.issue("broker")))
    stack = ExitStack()
    specs = [ClusterSpec(name=name, secure=(listener,)) for name in ("source", "target")]
    return stack, stack.enter_context(start_clusters(specs)), authority


def measured(bench: Bench, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every measurement that was asked for, as it is made."""
    for secure in (False, True):
        for partitions in given.partitions:
            yield asdict(bench.rate(secure=secure, partitions=partitions, megabytes=given.megabytes))
    if given.cold_topics:
        yield {"memory_mb": given.memory} | bench.cold_start(given.cold_topics)


def main() -> None:
    """Measure, and print a line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", type=int, default=512)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, nargs="*", default=(1, 10, 100))
    parser.add_argument("--cold-topics", type=int, default=2_000)
    given = parser.parse_args()
    print(f"{given.memory} MB, {cores(given.memory):.2f} of a core", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        stack, clusters, authority = started(Path(folder))
        with stack:
            bench = Bench(clusters, authority, memory_mb=given.memory)
            for one in measured(bench, given):
                print(json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
