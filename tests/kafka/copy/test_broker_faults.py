"""Brokers are killed on both sides while records flow; at the end every record is there once, in order."""

from __future__ import annotations

import gc
import threading
import time
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.kafka import ClusterSpec, start_clusters
from tests.support.world import World, producer

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 6
PER_SECOND = 10_000
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


# kafka-python leaves a socket that could not connect to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_brokers_of_both_clusters_are_killed_and_come_back(tmp_path: Path) -> None:
    specs = [ClusterSpec(name=name, brokers=3, settings=IMPATIENT) for name in ("source", "target")]
    with start_clusters(specs) as clusters:
        source, target = clusters["source"], clusters["target"]
        world = World(source, target, tmp_path, replicas=3)
        topic = world.topic(partitions=PARTITIONS)
        world.discover()
        with Load(world, topic) as load:
            for cluster, node in ((target, 2), (source, 3), (target, 1)):
                time.sleep(4)
                cluster.kill_broker(node)
                time.sleep(5)
                cluster.start_broker(node)
        until = time.monotonic() + 60
        while any(report.state != "caught up" for report in world.copy()):
            assert time.monotonic() < until
        assert world.assert_equal(topic) == load.produced
    gc.collect()  # here, where its warnings are known
