"""The builder of a test's world: a flow of its own between the session's two clusters."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.copy.engines import lease_run
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.errors import ClusterUnavailable, MirrorMaker2Runs
from tests.support.metadata import discover_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.metadata.sync_pass import SyncPass

_numbers = itertools.count()
_Result = TypeVar("_Result")


class Seen(NamedTuple):
    """A record as an ordinary consumer sees it."""

    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: list[tuple[str, bytes | None]] | None


@dataclass
class World:
    """A flow between `source` and `target` whose aliases no other test uses, so that no progress is shared."""

    source: EmbeddedCluster
    target: EmbeddedCluster
    folder: Path
    tasks_max: int = 1
    replicas: int = 1
    extra: dict[str, str] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        number = next(_numbers)
        self.source_alias, self.target_alias = f"s{number}", f"t{number}"
        self.flow = f"{self.source_alias}->{self.target_alias}"
        self.file = self.folder / "mm2.properties"

    def topic(self, partitions: int = 1, *, name: str | None = None, **config: str) -> str:
        """Create a source topic that this flow replicates."""
        name = name or f"topic-{next(_numbers)}"
        admin = AdminClient({"bootstrap.servers": self.source.bootstrap_servers})
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, self.replicas, config=settings)])[name].result()
        until = time.monotonic() + 120
        while len(admin.list_topics(name, timeout=60).topics[name].partitions) < partitions:
            assert time.monotonic() < until, f"{name} was made and is not there"
            time.sleep(0.05)  # brokers hear of it later than the controller
        self.topics.append(name)
        self.write_settings()
        return name

    def write_settings(self, **extra: str) -> Path:
        """Write the flow's mm2.properties."""
        self.extra |= extra
        lines = {
            "clusters": f"{self.source_alias}, {self.target_alias}",
            f"{self.source_alias}.bootstrap.servers": self.source.bootstrap_servers,
            f"{self.target_alias}.bootstrap.servers": self.target.bootstrap_servers,
            f"{self.flow}.enabled": "true",
            f"{self.flow}.topics": ", ".join(self.topics) or "none",
            "replication.factor": str(self.replicas),
            "offset.storage.replication.factor": str(self.replicas),
            "offset-syncs.topic.replication.factor": str(self.replicas),
            "checkpoints.topic.replication.factor": str(self.replicas),
            "heartbeats.topic.replication.factor": str(self.replicas),
            "tasks.max": str(self.tasks_max),
            # As many partitions as by default, for each of some hundred flows, keep a shared broker busy with nothing.
            "offset.storage.partitions": "2",
            # All tests share one topic of that name: what beats there would be copied by all of them.
            "emit.heartbeats.enabled": "false",
            "heartbeats.replication.enabled": "false",
            **self.extra,
        }
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return self.file

    def write_json(self, connector: Mapping[str, object]) -> Path:
        """Let a connector of Connect be the flow's configuration from now on."""
        self.file = self.folder / "connector.json"
        self.file.write_text(json.dumps(connector))
        return self.file

    def place(self, *, bounded: bool = True) -> FlowRef:
        """Where a lease finds the flow."""
        return FlowRef(location=str(self.file), flow=self.flow, bounded=bounded)

    def discover(self) -> SyncPass:
        """One pass of topic discovery."""
        return discover_topics(self.place().load())

    def copy(self, *, bounded: bool = True) -> list[Report]:
        """Discover topics, then one lease over everything that is there, in this process."""
        self._again(self.discover)
        place = self.place(bounded=bounded)
        planner = LeasePlanner(place.load(), bounded=bounded)
        try:
            rows = [row for pile in self._again(lambda: planner.plan(self.place().load())) for row in pile]
            return run_lease(place, rows, control=Control(), lease=1, slot=0) if rows else []
        finally:
            planner.close()
            # As a new worker would: nothing is remembered from lease to lease.
            if (open_slot := lease_run._slots.pop(self.flow, None)) is not None:
                open_slot.close()

    def copy_to_the_end(self, *, seconds: float = 120) -> list[Report]:
        """As many leases as it takes, with all reports: on a busy machine one may be over before all is copied."""
        until = time.monotonic() + seconds
        every = reports = self.copy()
        while any(report.state != "caught up" for report in reports):
            assert time.monotonic() < until, reports
            reports = self.copy()
            every = every + reports
        return every

    def copy_unbounded(self, *, seconds: float) -> list[Report]:
        """One lease of so many seconds, as a run without an end has them."""
        self.write_settings(**{"mirrorless.lease.seconds": str(seconds)})
        return self.copy(bounded=False)

    def _again(self, work: Callable[[], _Result]) -> _Result:
        """Do it again as a run does: brokers may still be busy with topics that were just made, or cut connections.

        Or with the members of a MirrorMaker 2 that has just stopped.
        """
        for _ in range(10):
            try:
                return work()
            except (ClusterUnavailable, MirrorMaker2Runs):
                time.sleep(1)
        return work()

    def remote(self, topic: str) -> str:
        """The remote topic's name."""
        return f"{self.source_alias}.{topic}"

    @property
    def progress_topic(self) -> str:
        """The progress topic's name."""
        return f"mm2-offsets.{self.source_alias}.internal"

    def assert_equal(self, topic: str) -> int:
        """Compare both sides of a topic, partition by partition, and return how many records they have."""
        ours = read(self.source, topic, isolation="read_committed")
        theirs = read(self.target, self.remote(topic))
        assert {partition: len(records) for partition, records in theirs.items()} == {
            partition: len(records) for partition, records in ours.items()
        }
        assert theirs == ours
        return sum(len(records) for records in ours.values())


def producer(cluster: EmbeddedCluster, **config: str | int) -> Producer:
    """An ordinary producer; `config` with `_` for `.`."""
    settings: dict[str, str | int] = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5} | settings)


def delete(cluster: EmbeddedCluster, topic: str) -> None:
    """Delete a topic, and wait until the broker does not tell of it any more."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    until = time.monotonic() + 120
    while topic in admin.list_topics(timeout=60).topics:
        assert time.monotonic() < until, f"{topic} was deleted and is still there"
        time.sleep(0.05)


def fill(
    cluster: EmbeddedCluster, topic: str, values: Iterable[bytes], *, partitions: int = 1, **config: str | int
) -> None:
    """Produce `values` round-robin over `partitions`, each with a key of its own."""
    client = producer(cluster, **{"queue_buffering_max_messages": 2_000_000, **config})
    for number, value in enumerate(values):
        client.produce(topic, value=value, key=b"%d" % number, partition=number % partitions)
        if number % 10_000 == 0:
            client.poll(0)
    assert client.flush(60) == 0


def read(cluster: EmbeddedCluster, topic: str, *, isolation: str = "read_uncommitted") -> dict[int, list[Seen]]:
    """Every record of a topic by partition, with an ordinary consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "test",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,  # the end of a partition is told by an answer without records
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        found: dict[int, list[Seen]] = {partition: [] for partition in sorted(partitions)}
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in found])
        missing = set(found)
        until = time.monotonic() + 120
        while missing:
            assert time.monotonic() < until, f"{topic} could not be read to its end, partitions {sorted(missing)}"
            for message in consumer.consume(10_000, timeout=0.1):
                error, partition = message.error(), message.partition()
                assert partition is not None
                if error is None:
                    headers = message.headers()
                    found[partition].append(
                        Seen(message.key(), message.value(), message.timestamp(), headers and list(headers))  # type: ignore[arg-type]
                    )
                elif error.code() == KafkaError._PARTITION_EOF:
                    missing.discard(partition)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return found


def values(records: Sequence[Seen]) -> list[bytes | None]:
    """Only the values."""
    return [record.value for record in records]
