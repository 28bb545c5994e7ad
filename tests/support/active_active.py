"""Clusters that all replicate one topic to each other under its own name, written on all, while flows are killed."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.support.processes import Mirrorless

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from confluent_kafka import KafkaError, Message

    from mirrorless.local.embedded_kafka import EmbeddedCluster

TOPIC = "orders"
KEYS = 1_000
_WINDOW_S = 0.05
_SETTLED_S = 120.0
_UNCHANGED_S = 10.0


@dataclass(frozen=True, kw_only=True)
class ActiveActiveTerms:
    """How long records are written, how many a second to each cluster, and after how long all flows are killed."""

    seconds: float
    rate: int = 1_000
    partitions: int = 3
    kill_every_s: float = 15.0
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class ActiveActiveOutcome:
    """What came of it: by cluster, the records that were written to it, and the offsets that it has at the end.

    `faults` has a line for each record that is lost, repeated or out of order, and each group that is ahead. `groups`
    has by flow how many records a group at its committed position has read, and how many of them it reads again.
    """

    kills: int = 0
    written: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)


class OriginWriter(threading.Thread):
    """Writes `A0, A1 …` to each partition of a cluster with the alias A, in order, without repeating any."""

    def __init__(self, alias: str, cluster: EmbeddedCluster, *, rate: int, partitions: int) -> None:
        super().__init__(daemon=True, name=f"writer-{alias}")
        self._alias = alias
        self._producer = Producer(
            {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
        )
        self._each = max(1, round(rate * _WINDOW_S / partitions))
        self.written = [0] * partitions
        self.error: str | None = None
        self._over = threading.Event()

    def run(self) -> None:
        """Write until `stop`."""
        while not self._over.is_set():
            began = time.monotonic()
            for partition, first in enumerate(self.written):
                for number in range(first, first + self._each):
                    self._producer.produce(
                        TOPIC,
                        value=f"{self._alias}{number}".encode(),
                        key=f"{self._alias}{number % KEYS}".encode(),
                        partition=partition,
                        on_delivery=self._delivered,
                    )
                self.written[partition] += self._each
            self._producer.poll(0)
            self._over.wait(max(0.0, _WINDOW_S - (time.monotonic() - began)))
        self._producer.flush(60)

    def stop(self) -> list[int]:
        """End, and return how many records each partition got."""
        self._over.set()
        self.join(90)
        assert not self.is_alive()
        assert self.error is None, self.error
        return self.written

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.error = str(error)


class CommittingReader(threading.Thread):
    """A group on one cluster that reads the topic and commits."""

    def __init__(self, group: str, cluster: EmbeddedCluster) -> None:
        super().__init__(daemon=True, name=group)
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 200,
                "session.timeout.ms": 6000,
            }
        )
        self._over = threading.Event()

    def run(self) -> None:
        """Read until `stop`."""
        self._consumer.subscribe([TOPIC])
        while not self._over.is_set():
            self._consumer.consume(500, timeout=0.1)
        self._consumer.close()

    def stop(self) -> None:
        """End; what was read is committed."""
        self._over.set()
        self.join(60)


def write_file(file: Path, clusters: Mapping[str, EmbeddedCluster]) -> None:
    """Write a file in which every cluster has a flow to every other one."""
    first = next(iter(clusters))
    lines = [f"clusters = {', '.join(clusters)}"]
    lines += [f"{alias}.bootstrap.servers = {one.bootstrap_servers}" for alias, one in clusters.items()]
    for source, target in permutations(clusters, 2):
        lines.append(f"{source}->{target}.enabled = true")
        if source != first:
            lines.append(f"{source}->{target}.sync.topic.configs.enabled = false")
    lines += [
        f"topics = {TOPIC}",
        "groups = .*",
        "replication.policy.class = IdentityReplicationPolicy",
        "mirrorless.both.directions = skip",
        "replication.factor = 1",
        "offset.storage.partitions = 2",
        *(f"{name}.replication.factor = 1" for name in ("offset.storage", "offset-syncs.topic", "checkpoints.topic")),
        "heartbeats.topic.replication.factor = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
        "emit.checkpoints.interval.seconds = 1",
        "refresh.topics.interval.seconds = 2",
    ]
    file.write_text("\n".join(lines) + "\n")


def run_active_active(
    clusters: Mapping[str, EmbeddedCluster], folder: Path, terms: ActiveActiveTerms
) -> ActiveActiveOutcome:
    """Write to all clusters for a while, kill all flows again and again, and compare at the end."""
    outcome = ActiveActiveOutcome()
    file = folder / "mm2.properties"
    write_file(file, clusters)
    admins = {alias: AdminClient({"bootstrap.servers": one.bootstrap_servers}) for alias, one in clusters.items()}
    for admin in admins.values():
        admin.create_topics([NewTopic(TOPIC, terms.partitions, 1, config=dict(terms.config))])[TOPIC].result()
    writers = {
        alias: OriginWriter(alias, one, rate=terms.rate, partitions=terms.partitions) for alias, one in clusters.items()
    }
    readers = {alias: CommittingReader(f"group-{alias}", one) for alias, one in clusters.items()}
    chance = random.Random(7)
    for thread in (*writers.values(), *readers.values()):
        thread.start()
    began = time.monotonic()
    flows = Mirrorless(file, "--engine", "functions")
    try:
        while (left := began + terms.seconds - time.monotonic()) > 0:
            time.sleep(min(left, terms.kill_every_s * chance.uniform(0.5, 1.5)))
            flows.kill()
            flows.process.wait()
            outcome.kills += 1
            flows = Mirrorless(file, "--engine", "functions")
        for reader in readers.values():
            reader.stop()
        written = {alias: writer.stop() for alias, writer in writers.items()}
        outcome.written = {alias: sum(some) for alias, some in written.items()}
        _wait_for_all(clusters, written)
        _wait_for_groups(admins, terms.partitions)
    finally:
        flows.kill()
        flows.process.wait()
    logs = {alias: _logs(one, terms.partitions) for alias, one in clusters.items()}
    _compare(logs, written, outcome, is_compacted="compact" in terms.config.get("cleanup.policy", ""))
    _compare_groups(admins, logs, outcome, terms.partitions)
    outcome.offsets = {alias: sum(_ends(admin, terms.partitions)) for alias, admin in admins.items()}
    return outcome


Log = dict[int, list[tuple[int, str]]]
"""Offsets and values by partition."""


def _logs(cluster: EmbeddedCluster, partitions: int) -> Log:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "read", "enable.auto.commit": False}
    )
    found: Log = {}
    for partition in range(partitions):
        first, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=60)
        consumer.assign([TopicPartition(TOPIC, partition, first)])
        some = found[partition] = []
        quiet = 0
        while (not some or some[-1][0] < end - 1) and quiet < 10:
            messages = consumer.consume(10_000, timeout=0.5)
            some += [(one.offset() or 0, (one.value() or b"").decode()) for one in messages if one.error() is None]
            quiet = 0 if messages else quiet + 1
    consumer.close()
    return found


def _ends(admin: AdminClient, partitions: int) -> list[int]:
    wanted = {TopicPartition(TOPIC, partition): OffsetSpec.latest() for partition in range(partitions)}
    return [future.result().offset for future in admin.list_offsets(wanted).values()]


def _wait_for_all(clusters: Mapping[str, EmbeddedCluster], written: Mapping[str, list[int]]) -> None:
    """Wait until each cluster has as many offsets as records were written to all of them."""
    admins = {alias: AdminClient({"bootstrap.servers": one.bootstrap_servers}) for alias, one in clusters.items()}
    goal = [sum(some) for some in zip(*written.values(), strict=True)]
    until = time.monotonic() + _SETTLED_S
    while any(_ends(admin, len(goal)) < goal for admin in admins.values()) and time.monotonic() < until:
        time.sleep(0.5)
    time.sleep(3)  # what is copied twice comes now


def _committed(admin: AdminClient, group: str, partitions: int) -> dict[int, int]:
    """Offsets of a group by partition; negative where it has none."""
    places = [TopicPartition(TOPIC, partition) for partition in range(partitions)]
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])[group].result()
    return {one.partition: one.offset for one in found.topic_partitions}


def _wait_for_groups(admins: Mapping[str, AdminClient], partitions: int) -> None:
    """Wait until each group has an offset on every cluster, and none has changed for some intervals."""
    until = time.monotonic() + _SETTLED_S
    before: list[dict[int, int]] = []
    since = time.monotonic()
    while time.monotonic() < until:
        now = [_committed(admin, f"group-{source}", partitions) for source in admins for admin in admins.values()]
        if now != before or min(min(one.values()) for one in now) < 0:
            before, since = now, time.monotonic()
        elif time.monotonic() - since >= _UNCHANGED_S:
            return
        time.sleep(0.5)


def _compare(
    logs: Mapping[str, Log], written: Mapping[str, list[int]], outcome: ActiveActiveOutcome, *, is_compacted: bool
) -> None:
    for alias, log in logs.items():
        for partition, records in log.items():
            for origin, counts in written.items():
                found = [value for _, value in records if value.startswith(origin)]
                wanted = [f"{origin}{number}" for number in range(counts[partition])]
                if is_compacted:  # earlier values of a key may be gone
                    kept = {*found, *wanted[-KEYS:]}
                    wanted = [value for value in wanted if value in kept]
                if found != wanted:
                    at = next((n for n, pair in enumerate(zip(found, wanted, strict=False)) if len({*pair}) > 1), "end")
                    lost, twice = len({*wanted} - {*found}), len(found) - len({*found})
                    where = f"{alias} {TOPIC}-{partition}: records of {origin} differ at {at}"
                    outcome.faults.append(f"{where}: lost {lost}, repeated {twice}")


def _compare_groups(
    admins: Mapping[str, AdminClient], logs: Mapping[str, Log], outcome: ActiveActiveOutcome, partitions: int
) -> None:
    """Compare where each group would continue on other clusters with what it has read."""
    for source, target in permutations(admins, 2):
        group = f"group-{source}"
        here, there = (_committed(admins[alias], group, partitions) for alias in (source, target))
        read = again = 0
        for partition in range(partitions):
            # Those of an origin are in order: compaction may have removed earlier ones that were read.
            newest = dict.fromkeys(admins, -1)
            for at, value in logs[source][partition]:
                if at < here[partition]:
                    newest[value[0]] = int(value[1:])
            was_read = [at for at, value in logs[target][partition] if int(value[1:]) <= newest[value[0]]]
            ahead = sorted({at for at, _ in logs[target][partition] if at < there[partition]} - {*was_read})
            if ahead and there[partition] >= 0:
                where = f"{source}->{target} {TOPIC}-{partition}"
                outcome.faults.append(f"{where}: {group} skips {len(ahead)} records, such as offset {ahead[0]}")
            if there[partition] < 0:
                outcome.faults.append(f"{source}->{target} {TOPIC}-{partition}: {group} has no offset")
            read += len(was_read)
            again += sum(at >= there[partition] for at in was_read)
        outcome.groups[f"{source}->{target}"] = (read, again)
