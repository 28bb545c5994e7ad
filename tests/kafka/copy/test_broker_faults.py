"""Brokers are killed on both sides, or too few are left; at the end every record is there once, in order."""

from __future__ import annotations

import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mirrorless.errors import ClusterUnavailable
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITIONS = 6
PER_SECOND = 2_000
IMPATIENT = {"broker.session.timeout.ms": "4000", "min.insync.replicas": "2"}


class Load:
    """Produces to the source, acknowledged by all replicas, and copies in short leases, until it is told to stop."""

    def __init__(self, world: World, topic: str) -> None:
        self._world, self._topic = world, topic
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self.produced = 0
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in (self._produce, self._copy)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self._errors == []

    def _run(self, work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 -- told in the main thread
            self._errors.append(error)
            self._stop.set()

    def _produce(self) -> None:
        client = producer(self._world.source, acks="all", enable_idempotence="true", batch_size=8_000)
        while not self._stop.wait(0.05):
            for _ in range(PER_SECOND // 20):
                client.produce(self._topic, value=b"%d" % self.produced, partition=self.produced % PARTITIONS)
                self.produced += 1
            client.poll(0)
        assert client.flush(60) == 0

    def _copy(self) -> None:
        while not self._stop.is_set():
            self._world.copy_unbounded(seconds=3)


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, EmbeddedCluster]]:
    specs = [ClusterSpec(name=name, brokers=3, settings=IMPATIENT) for name in ("source", "target")]
    with start_clusters(specs) as started:
        yield started


@pytest.fixture
def world(clusters: dict[str, EmbeddedCluster], tmp_path: Path) -> World:
    return World(clusters["source"], clusters["target"], tmp_path, replicas=3)


# kafka-python leaves a socket that could not connect to the garbage collector.
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_brokers_of_both_clusters_are_killed_and_come_back(world: World) -> None:
    topic = world.topic(partitions=PARTITIONS)
    world.discover()
    with Load(world, topic) as load:
        for cluster, node in ((world.target, 2), (world.source, 3), (world.target, 1)):
            time.sleep(4)
            cluster.kill_broker(node)
            time.sleep(5)
            cluster.start_broker(node)
    world.copy_to_the_end()
    assert world.assert_equal(topic) == load.produced
    gc.collect()  # here, where its warnings are known


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_target_with_too_few_replicas_is_waited_for(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy()
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    remote = ConfigResource(
        ResourceType.TOPIC,
        world.remote(topic),
        incremental_configs=[ConfigEntry("min.insync.replicas", "3", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([remote])[remote].result()
    # Otherwise the next pass of the config sync would put it right.
    world.write_settings(**{"sync.topic.configs.enabled": "false"})
    # A follower: behind the leader's death another leader would answer OFFSET_NOT_AVAILABLE, for as long.
    leader = admin.list_topics(world.remote(topic)).topics[world.remote(topic)].partitions[0].leader
    follower = next(node for node in (1, 2, 3) if node != leader)
    world.target.kill_broker(follower)
    fill(world.source, topic, (b"%d" % number for number in range(100, 200)))
    until = time.monotonic() + 150
    # A leader that has yet to find out that its follower is dead takes the records, and can never acknowledge them.
    waits_for = ("NOT_ENOUGH_REPLICAS", "100 records on the leader of the remote partition are not replicated yet")
    error = ""
    while not any(reason in error for reason in waits_for):
        assert time.monotonic() < until, error
        try:
            (report,) = world.copy_unbounded(seconds=8)
        except ClusterUnavailable:  # topic discovery, while the brokers that are left agree on who leads
            continue
        assert report.records == 0
        error = report.error or ""
    world.target.start_broker(follower)
    world.copy_to_the_end()
    assert world.assert_equal(topic) == 200
    gc.collect()
