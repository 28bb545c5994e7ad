"""The simulated clients answer what operations ask for as a cluster does: topics, configs, groups, records, ids."""

from __future__ import annotations

import time
import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import NewTopic

from mirrorless.clusters.admin import Admin, Refusal
from mirrorless.clusters.configs import ConfigChange, Origin, alter_topic_configs, topic_configs
from mirrorless.clusters.consumers import reader, records_in, waiting
from mirrorless.clusters.groups import Activity, Committed, GroupOffsets, list_groups
from mirrorless.clusters.producer import TopicProducer
from mirrorless.clusters.replay import Replay
from mirrorless.clusters.topic_deletion import delete_by_id, idle_seconds
from mirrorless.clusters.topics import (
    create_topics,
    describe,
    grow_topics,
    high_watermarks,
    last_stable_offsets,
    log_starts,
    partition_counts,
    topic_ids,
)
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.fences import FENCED_BYTES, MAX_BYTES
from mirrorless.offsets.failover_plan import newest_timestamps
from mirrorless.settings import Cluster
from tests.simulation import system_threads as threads
from tests.simulation.administration import AdministeredCluster
from tests.simulation.network import SyncProcess
from tests.simulation.operated import operated
from tests.simulation.world import World, clock

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_VISIBLE_S = 20.0
_AT_MS = 1_700_000_000_000


class Conversation:
    """Asks a cluster for everything that operations ask for; `heard` has what it answered, by question."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._admin = Admin(cluster)
        self._topic = topic
        self.heard: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """Ask one after the other."""
        self._topics()
        self._records()
        self._configs()
        self._groups()
        self._deletion()
        return self.heard

    def _topics(self) -> None:
        admin, topic, heard = self._admin, self._topic, self.heard
        heard["missing topic"] = _code(describe(admin, topic))
        heard["ids without it"] = topic_ids(admin, [topic])
        new = NewTopic(topic, num_partitions=2, replication_factor=1, config={"retention.ms": "-1"})
        heard["create"] = create_topics(admin, [new])[topic]
        heard["create again"] = create_topics(admin, [new])[topic]
        self._until(lambda: partition_counts(admin.metadata()).get(topic) == 2)
        heard["grow"] = grow_topics(admin, {topic: 3})[topic]
        heard["grow again"] = grow_topics(admin, {topic: 3})[topic]
        heard["grow what is not there"] = _code(grow_topics(admin, {f"{topic}-not": 3})[f"{topic}-not"])
        self._until(lambda: partition_counts(admin.metadata()).get(topic) == 3)
        heard["has an id"] = len(topic_ids(admin, [topic])[0][topic])

    def _records(self) -> None:
        topic, heard = self._topic, self.heard
        places = [(topic, number) for number in range(3)]
        self._until(lambda: not high_watermarks(self._admin, places)[1])
        heard["empty"] = high_watermarks(self._admin, places)[0]
        producer = TopicProducer(self._cluster, gives_up_after_s=20.0)
        told: list[Any] = []
        for number in range(5):
            producer.send(
                topic,
                key=b"k",
                value=b"%d" % number,
                partition=number % 2,
                delivered=lambda error, message: told.append((error, message.partition(), message.offset())),
            )
        producer.confirm(topic, 20.0)
        heard["delivered"] = sorted(told)
        heard["not there"] = _error(lambda: self._write_to(f"{topic}-not"))
        heard["ends"] = high_watermarks(self._admin, places)[0]
        heard["stable"] = last_stable_offsets(self._admin, places)[0]
        heard["starts"] = log_starts(self._admin, places)[0]
        heard["with records"] = sorted(newest_timestamps(self._admin, places))
        heard["counted"] = records_in(self._cluster, {(topic, 0): (1, 3), (topic, 1): (0, 2)})
        with closing(Replay(topic=topic, cluster=self._cluster, admin=self._admin)) as replay:
            heard["replayed"] = sorted(one.value for one in replay.read() if one.value)
            heard["replayed again"] = [*replay.read()]
        with closing(reader(self._cluster)) as consumer:
            from confluent_kafka import TopicPartition  # noqa: PLC0415

            consumer.assign([TopicPartition(topic, 0, 1)])
            found: list[Any] = []
            until = time.monotonic() + _VISIBLE_S
            while time.monotonic() < until and not any(error for _, error in found):
                for message in waiting(consumer, 100, seconds=0.2):
                    error = message.error()
                    if error is None or error.name() == "_PARTITION_EOF":
                        found.append((message.offset(), None if error is None else error.name()))
            heard["messages"] = found
            heard["watermarks"] = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)

    def _write_to(self, topic: str) -> None:
        producer = TopicProducer(self._cluster, gives_up_after_s=20.0)
        producer.send(topic, value=b"x" * 20, partition=0)
        producer.confirm(topic, 25.0)

    def _configs(self) -> None:
        admin, topic, heard = self._admin, self._topic, self.heard
        before = topic_configs(admin, [topic])[0][topic]
        heard["its own config"] = (before["retention.ms"].value, before["retention.ms"].origin == Origin.TOPIC)
        heard["no config of its own"] = before[MAX_BYTES].origin == Origin.TOPIC
        heard["of a missing topic"] = _code(topic_configs(admin, [f"{topic}-not"])[1][f"{topic}-not"])
        heard["alter"] = alter_topic_configs(admin, {topic: [ConfigChange(MAX_BYTES, FENCED_BYTES)]})[topic]
        self._until(lambda: topic_configs(admin, [topic])[0][topic][MAX_BYTES].value == FENCED_BYTES)
        heard["fenced"] = _error(lambda: self._write_to(topic))
        heard["alter a missing topic"] = _code(
            alter_topic_configs(admin, {f"{topic}-not": [ConfigChange(MAX_BYTES, "100")]})[f"{topic}-not"]
        )
        heard["restore"] = alter_topic_configs(admin, {topic: [ConfigChange(MAX_BYTES, None)]})[topic]
        self._until(lambda: topic_configs(admin, [topic])[0][topic][MAX_BYTES] == before[MAX_BYTES])

    def _groups(self) -> None:
        topic, heard, group = self._topic, self.heard, f"group-of-{self._topic}"
        with closing(GroupOffsets(self._cluster)) as offsets:
            heard["no offsets"] = dict(offsets.committed([group]))[group]
            wanted = {(topic, 0): Committed(2, "said"), (topic, 1): Committed(1, "")}
            heard["commit"] = {place[1]: one for place, one in _of(offsets.commit({group: wanted})[group]).items()}
            heard["committed"] = {place[1]: one for place, one in _of(dict(offsets.committed([group]))[group]).items()}
            heard["listed"] = list_groups(self._admin)[0][group] is Activity.EMPTY
            heard["delete one"] = offsets.delete(group, [(topic, 1)])
            heard["what is left"] = [place[1] for place in dict(offsets.committed([group]))[group]]
            heard["delete"] = offsets.delete_groups([group])
            heard["delete again"] = offsets.delete_groups([group])
            heard["nothing left"] = dict(offsets.committed([group]))[group]

    def _deletion(self) -> None:
        topic, heard, admin = self._topic, self.heard, self._admin
        ids, _ = topic_ids(admin, [topic])
        confirmed: list[int] = []
        delete_by_id(self._cluster, ids, lambda: confirmed.append(1))
        self._until(lambda: topic not in partition_counts(admin.metadata()))
        delete_by_id(self._cluster, ids, lambda: confirmed.append(1))
        heard["confirmed"] = len(confirmed)
        heard["idle"] = idle_seconds(admin) > 60

    def _until(self, holds: Any) -> None:  # noqa: ANN401 -- a function
        """Wait until brokers have heard of a change."""
        until = time.monotonic() + _VISIBLE_S
        while not holds():
            assert time.monotonic() < until
            time.sleep(0.1)


def _of(found: Any) -> dict[Any, Any]:  # noqa: ANN401 -- offsets, or an error
    assert isinstance(found, dict), found
    return found


def _code(found: object) -> object:
    return found.code if isinstance(found, Refusal) else found


def _error(work: Any) -> str | None:  # noqa: ANN401 -- a function
    """The kind of an error, and the broker's word for it, without names of topics and clusters."""
    try:
        work()
    except MirrorlessError as error:
        return f"{type(error).__name__} {str(error).rpartition(': ')[2].partition(';')[0]}"
    return None


def simulated(topic: str) -> dict[str, Any]:
    """What the simulated clients answer."""
    found: list[dict[str, Any]] = []
    with operated():
        world = clock.world = World(1)
        cluster = AdministeredCluster(world, "A")
        process = SyncProcess(world, "process")
        settings = Cluster(alias="A", bootstrap_servers=cluster.address)
        before, globals()["time"] = time, clock
        try:
            thread = process.begin(lambda: found.append(Conversation(settings, topic).run()))
            world.run(10_000.0, until=lambda: thread.over)
        finally:
            globals()["time"] = before
            threads.end_all()
            world.close()
    if thread.error is not None:
        raise thread.error
    return found[0]


def test_the_simulated_clients_converse() -> None:
    heard = simulated("t")
    assert heard["create"] is None
    assert heard["delivered"] == [(None, 0, 0), (None, 0, 1), (None, 0, 2), (None, 1, 0), (None, 1, 1)]
    assert heard["fenced"] is not None


def test_a_cluster_answers_the_same(source: EmbeddedCluster) -> None:
    topic = f"conformance-{uuid.uuid4().hex[:8]}"
    settings = Cluster(alias="A", bootstrap_servers=source.bootstrap_servers)
    real = Conversation(settings, topic).run()
    other = simulated(topic)
    different = {question: (real[question], other[question]) for question in real if real[question] != other[question]}
    assert not different
