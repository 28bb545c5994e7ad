"""Leaders of the target are killed while markers and records are on their way: every offset stays the source's."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.kafka.copy.test_transactions import transactional
from tests.kafka.identical.test_identical_copy import identical
from tests.kafka.identical.test_writers import lease, rows_of
from tests.support.identical import assert_identical, ends
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IMPATIENT = {"broker.session.timeout.ms": "4000", "min.insync.replicas": "2"}
PARTITIONS = 3
LEASE_S = 110.0


@pytest.fixture
def target() -> Iterator[EmbeddedCluster]:
    with start_clusters([ClusterSpec(name="target", brokers=3, settings=IMPATIENT)]) as started:
        yield started["target"]


def produce(world: World, topic: str, stop: threading.Event) -> int:
    client = transactional(world.source, f"load-{topic}")
    number = 0
    while not stop.wait(0.02):
        client.begin_transaction()
        for _ in range(5):
            client.produce(topic, value=b"%d" % number, partition=number % PARTITIONS)
            number += 1
        if number % 7:
            client.commit_transaction()
        else:
            client.flush()
            client.abort_transaction()
    return number


# kafka-python leaves a socket that could not connect to the garbage collector.
@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_offset_stays_the_same(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> None:
    world = World(source, target, tmp_path)
    world.extra["replication.factor"] = "3"
    world.extra["offset.storage.replication.factor"] = "3"
    topic = identical(world, PARTITIONS)
    world.discover()
    stop = threading.Event()
    with ThreadPoolExecutor() as pool:
        load = pool.submit(produce, world, topic, stop)
        copy = pool.submit(lease, world, rows_of(world), seconds=LEASE_S)
        for node in (1, 2, 3):
            time.sleep(4)
            target.kill_broker(node)
            time.sleep(7)
            target.start_broker(node)
        stop.set()
        assert load.result() > 1_000
        reports = copy.result()
    assert [(report.state, report.error) for report in reports] == [("caught up", None)] * PARTITIONS
    assert assert_identical(world, topic) > 0
    remote = world.remote(topic)
    assert [ends(target, remote, number) for number in range(PARTITIONS)] == [
        ends(source, topic, number) for number in range(PARTITIONS)
    ]
