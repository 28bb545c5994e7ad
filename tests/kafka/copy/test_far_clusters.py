"""A copy between clusters that are far from each other: everything arrives once, over several connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.link import Link, LinkTerms
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

FAR = LinkTerms(round_trip_s=0.06)
RECORDS = 40_000
SIDES = ("source", "target")


@pytest.fixture(scope="module")
def links() -> Iterator[dict[str, Link]]:
    found = {side: Link() for side in SIDES}
    yield found
    for link in found.values():
        link.close()


@pytest.fixture(scope="module")
def clusters(links: dict[str, Link]) -> Iterator[dict[str, EmbeddedCluster]]:
    doors = {
        side: SecureListener(name="DOOR", protocol="PLAINTEXT", settings={}, advertised=(link.port,))
        for side, link in links.items()
    }
    with start_clusters([ClusterSpec(name=side, secure=(door,)) for side, door in doors.items()]) as found:
        for side, link in links.items():
            link.connect(found[side].secure_ports("DOOR")[0])
        yield found


@pytest.mark.nightly
@pytest.mark.parametrize("far", SIDES)
def test_dense_batches_and_transactions_arrive_once(
    far: str, clusters: dict[str, EmbeddedCluster], links: dict[str, Link], tmp_path: Path
) -> None:
    world = World(clusters["source"], clusters["target"], tmp_path)
    dense = world.topic(partitions=1)
    fill(world.source, dense, (b"%d " % n + bytes(1_000) for n in range(RECORDS)), batch_size=100_000, linger_ms=50)
    aborted = world.topic(partitions=1)
    client = Producer(
        {"bootstrap.servers": world.source.bootstrap_servers, "transactional.id": aborted, "linger.ms": 5}
    )
    client.init_transactions(30)
    for number in range(150):
        client.begin_transaction()
        for record in range(100):
            client.produce(aborted, b"%d %d " % (number, record) + bytes(1_000))
        if number % 3:
            client.commit_transaction()
        else:
            client.flush()
            client.abort_transaction()
    alias = {"source": world.source_alias, "target": world.target_alias}[far]
    world.write_settings(**{f"{alias}.bootstrap.servers": f"127.0.0.1:{links[far].port}"})
    links[far].become(FAR)
    before = links[far].stats()["accepted"]
    world.copy_to_the_end()
    links[far].become(LinkTerms())
    if far == "source":
        assert links[far].stats()["accepted"] - before > 5
    assert world.assert_equal(dense) == RECORDS
    assert world.assert_equal(aborted) == 100 * 100
