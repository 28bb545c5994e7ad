"""Clusters that do not take or give what is asked for, at once or at all: the copy waits, and loses nothing."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.support.proxy import Proxy
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEGABYTE = 1_000_000


def quota(cluster: EmbeddedCluster, client_id: str, key: str, value: float | None) -> None:
    """Give a client id a quota, or with None take it away."""
    request = AlterClientQuotasRequest
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    entry = request.EntryData(
        entity=[request.EntryData.EntityData(entity_type="client-id", entity_name=client_id)],
        ops=[request.EntryData.OpData(key=key, value=value or 0.0, remove=value is None)],
    )
    admin._manager.run(admin._manager.send, request(entries=[entry], validate_only=False))
    admin.close()


def seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def fill_two_megabytes(world: World, topic: str) -> None:
    fill(world.source, topic, (b"%d" % n * 2_000 for n in range(400)), partitions=2)


@pytest.mark.nightly
@pytest.mark.parametrize("side", ["source", "target"])
def test_quotas_are_kept(world: World, side: str, troubles: list[str]) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"before" for _ in range(2)), partitions=2)
    world.discover()
    world.copy_to_the_end()
    troubles.clear()  # what is new may have no leader yet
    fill_two_megabytes(world, topic)
    cluster, key = (world.source, "consumer_byte_rate") if side == "source" else (world.target, "producer_byte_rate")
    alias = world.source_alias if side == "source" else world.target_alias
    world.write_settings(**{f"{alias}.client.id": f"slow-{alias}"})
    quota(cluster, f"slow-{alias}", key, 100_000)
    try:
        # A broker's quota forgives what fits its window of some seconds; what is beyond has to wait.
        began = time.monotonic()
        reports = world.copy_to_the_end()
        took_ms = (time.monotonic() - began) * 1000
    finally:
        quota(cluster, f"slow-{alias}", key, None)
    assert world.assert_equal(topic) == 402
    assert not troubles  # to wait is none: nothing is dropped, and fetched or sent again
    by_partition = [[report for report in reports if report.partition == partition] for partition in range(2)]
    waited = {
        "source": max(sum(report.fetch_throttle_ms for report in every) for every in by_partition),
        "target": max(sum(report.produce_throttle_ms for report in every) for every in by_partition),
    }
    assert 2_000 < waited.pop(side) < took_ms
    assert not any(waited.values())  # the other side has no quota


@pytest.mark.nightly
def test_partitions_take_turns_where_not_all_can_be_served_in_a_second(world: World) -> None:
    topic = world.topic(partitions=8)
    fill(world.source, topic, (b"%d" % n * 2_000 for n in range(1_600)), partitions=8, batch_size=50_000)
    world.discover()
    world.write_settings(**{"mirrorless.max.bytes.per.second": "400000"})
    reports = world.copy_unbounded(seconds=15)
    assert len(reports) == 8
    assert all(report.records for report in reports), [report.records for report in reports]
    assert any(report.state != "caught up" for report in reports)


@pytest.mark.nightly
def test_connections_that_are_cut_half_way(tmp_path: Path) -> None:
    proxies = {name: Proxy() for name in ("cut-off", "cut-on")}
    specs = [
        ClusterSpec(
            name=name,
            secure=(SecureListener(name="DOOR", protocol="PLAINTEXT", settings={}, advertised=(proxy.port,)),),
        )
        for name, proxy in proxies.items()
    ]
    with start_clusters(specs) as clusters:
        for name, proxy in proxies.items():
            (proxy.target_port,) = clusters[name].secure_ports("DOOR")
        world = World(clusters["cut-off"], clusters["cut-on"], tmp_path)
        topic = world.topic(partitions=4)
        fill(world.source, topic, (b"%d" % n for n in range(200_000)), partitions=4, batch_size=4_000)
        world.discover()
        doors = zip((world.source_alias, world.target_alias), proxies.values(), strict=True)
        world.write_settings(**{f"{alias}.bootstrap.servers": f"127.0.0.1:{proxy.port}" for alias, proxy in doors})
        stop = threading.Event()

        def cut() -> None:
            # A client that only begins needs a moment to read the progress from its beginning.
            while not stop.wait(1.5):
                for proxy in proxies.values():
                    proxy.cut()

        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            for _ in range(2):
                world.copy_unbounded(seconds=6)
        finally:
            stop.set()
            cutter.join()
        world.write_settings(
            **{
                f"{world.source_alias}.bootstrap.servers": world.source.bootstrap_servers,
                f"{world.target_alias}.bootstrap.servers": world.target.bootstrap_servers,
            }
        )
        world.copy_to_the_end()
        assert world.assert_equal(topic) == 200_000
    for proxy in proxies.values():
        proxy.close()
