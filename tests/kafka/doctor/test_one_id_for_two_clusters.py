"""Two clusters that were formatted with one id: named, and told apart once the operator confirms that they differ.

The target's brokers have defaults of their own, which remote topics get: a short retention, two in-sync replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from mirrorless.cli.plan import plan
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.errors import CopiedClusterIdError, SameClusterError
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.local.embedded_kafka import ClusterSpec, new_cluster_id, start_clusters
from mirrorless.progress.producer_ids import producer_id
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.settings import load
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mirrorless.doctor.findings import Finding
    from mirrorless.local.embedded_kafka import EmbeddedCluster

DEFAULTS = {"log.retention.ms": "60000", "min.insync.replicas": "2"}


@pytest.fixture(scope="module")
def alike() -> Iterator[Mapping[str, EmbeddedCluster]]:
    one_id = new_cluster_id()
    specs = [
        ClusterSpec(name="here", cluster_id=one_id),
        ClusterSpec(name="there", cluster_id=one_id, settings=DEFAULTS),
    ]
    with start_clusters(specs) as clusters:
        yield clusters


@pytest.fixture
def world(alike: Mapping[str, EmbeddedCluster], tmp_path: Path) -> World:
    return World(alike["here"], alike["there"], tmp_path)


def findings(world: World) -> dict[str, Finding]:
    """What the doctor says of both ends and of the target."""
    found = examine(load(world.write_settings()).flow(world.flow))
    return {one.check: one for one in found if one.cluster != world.source_alias}


def topics_of(cluster: EmbeddedCluster) -> set[str]:
    return set(AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60).topics)


def test_a_copied_id_is_named_and_nothing_is_written(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"1"])
    before = topics_of(world.target)

    failed = findings(world)["cluster ids"]
    with pytest.raises(CopiedClusterIdError) as refused:
        world.discover()

    assert failed.status is Status.FAILED
    assert failed.text == (
        f"{world.source_alias} ({world.source.bootstrap_servers}) and {world.target_alias} "
        f"({world.target.bootstrap_servers}) have the same cluster id, {world.source.cluster_id}, but different "
        "brokers and topics: one of the clusters was formatted with a copied id"
    )
    assert failed.fix == refused.value.fix
    assert f"set {world.target_alias}.mirrorless.cluster.id to any name" in failed.fix
    assert "nothing was written" in str(refused.value)
    assert topics_of(world.target) == before


def test_two_clusters_that_are_told_apart_by_a_name(world: World) -> None:
    topic = world.topic()
    name = f"name-of-{world.source_alias}"
    world.write_settings(**{f"{world.source_alias}.mirrorless.cluster.id": name})
    fill(world.source, topic, (b"%d" % number for number in range(10)))

    world.copy_to_the_end()

    assert world.assert_equal(topic) == 10
    found = findings(world)["cluster ids"]
    assert found.status is Status.OK
    assert found.text == (
        f"cluster ids differ: {name}, {world.target.cluster_id}; both report {world.target.cluster_id}, and "
        "mirrorless.cluster.id distinguishes them"
    )
    assert remembers(world, topic, producer_id(name, topic, 0))
    assert not remembers(world, topic, producer_id(world.source.cluster_id, topic, 0))


def remembers(world: World, topic: str, producer: int) -> bool:
    """Whether the target remembers a producer id on the remote topic."""
    net = EventLoop()
    place = world.remote(topic), 0
    target = load(world.file).flow(world.flow).target
    wire = ClusterClient(net, cluster=target.alias, config=for_kafka_python(target, role="producer"))

    async def ask() -> bool:
        await wire.connect(timeout_ms=20_000, topics=[place[0]])
        node = wire.leader(place)
        assert node is not None
        return (await wire.producers(node, {place: producer}))[place] is not None

    try:
        found: bool = net.run(ask)
        return found
    finally:
        wire.close()
        net.close()


def test_one_cluster_is_refused_whatever_it_is_called(alike: Mapping[str, EmbeddedCluster], tmp_path: Path) -> None:
    world = World(alike["here"], alike["here"], tmp_path)
    world.topic()
    world.write_settings(**{f"{world.target_alias}.mirrorless.cluster.id": "another"})

    with pytest.raises(SameClusterError, match="are the same cluster") as refused:
        world.discover()

    assert not isinstance(refused.value, CopiedClusterIdError)
    assert findings(world)["cluster ids"].text == f"source and target are the same cluster ({world.source.cluster_id})"


def test_defaults_of_the_target_that_remote_topics_get(world: World) -> None:
    topic = world.topic()
    world.write_settings(**{f"{world.target_alias}.mirrorless.cluster.id": "another"})

    found = findings(world)
    planned = CliRunner().invoke(plan, [str(world.file)])

    shorter = (
        f"retention of 1 of 1 topics is shorter on {world.target_alias} than on {world.source_alias}, so their records "
        f"are deleted sooner: {world.remote(topic)} 1 minute ({topic}: 7 days)"
    )
    assert (found["retention"].status, found["retention"].text) == (Status.WARNING, shorter)
    assert found["retention"].fix is not None
    assert found["retention"].fix.startswith("set use.defaults.from=source, or retention.ms on the source topics, or ")
    assert f"  note: {shorter}; {found['retention'].fix}\n" in planned.output
    assert found["in-sync replicas"].status is Status.FAILED
    assert (
        f"{world.remote(topic)} with replication factor 1 and min.insync.replicas=2" in found["in-sync replicas"].text
    )
    assert found["progress topic"].status is Status.FAILED
    world.write_settings(**{"use.defaults.from": "source"})
    assert findings(world)["retention"].status is Status.OK
