"""A leader that forgot the producer of old records refuses a batch and would take the next: no hole comes of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.support.refusing_proxy import RefusingProxy
from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORGETFUL = {"producer.id.expiration.ms": "100", "producer.id.expiration.check.interval.ms": "50"}
RECORDS = 60_000
DAYS_AGO_MS = 3 * 86_400_000


@pytest.fixture
def proxy() -> Iterator[RefusingProxy]:
    proxy = RefusingProxy(every=5)
    yield proxy
    proxy.close()


@pytest.fixture
def forgetful(proxy: RefusingProxy) -> Iterator[EmbeddedCluster]:
    door = SecureListener(name="DOOR", protocol="PLAINTEXT", settings={}, advertised=(proxy.port,))
    with start_clusters([ClusterSpec(name="forgetful", settings=FORGETFUL, secure=(door,))]) as started:
        (proxy.target_port,) = started["forgetful"].secure_ports("DOOR")
        yield started["forgetful"]


def fill_old(world: World, topic: str, records: int, *, partitions: int) -> None:
    client = producer(world.source, batch_size=8_000, queue_buffering_max_messages=2_000_000)
    timestamp = int(time.time() * 1000) - DAYS_AGO_MS
    for number in range(records):
        client.produce(topic, value=b"%200d" % number, partition=number % partitions, timestamp=timestamp)
    assert client.flush(60) == 0


def test_no_hole_and_no_duplicate(
    source: EmbeddedCluster, forgetful: EmbeddedCluster, proxy: RefusingProxy, tmp_path: Path
) -> None:
    world = World(source, forgetful, tmp_path)
    topic = world.topic(partitions=2)
    fill_old(world, topic, RECORDS, partitions=2)
    world.discover()
    direct = world.target.bootstrap_servers
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": f"127.0.0.1:{proxy.port}"})
    reports = world.copy_to_the_end()
    assert not [report.error for report in reports if report.state == "halted"]
    assert proxy.refused >= 3, proxy.seen
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": direct})
    assert world.assert_equal(topic) == RECORDS
