"""Groups with members: translated on the source like any other, left alone on the target, of both protocols."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.groups import Activity, list_groups
from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.support.offsets import commit, committed, flow_of, plant_syncs
from tests.support.world import fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


def member(cluster: EmbeddedCluster, group: str, topic: str, protocol: str) -> Consumer:
    """A consumer that has its partitions."""
    settings: dict[str, str | bool] = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    until = time.monotonic() + 120
    while not consumer.assignment():
        consumer.poll(0.2)
        assert time.monotonic() < until
    return consumer


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_is_active_on_both_sides(world: World, protocol: str) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy()
    flow = flow_of(world, groups=topic)
    plant_syncs(flow, {(topic, 0): list(range(100))})
    remote = world.remote(topic)
    here, there = member(world.source, topic, topic, protocol), member(world.target, topic, remote, protocol)
    try:
        got = [message for message in here.consume(40, timeout=30) if message.error() is None]
        here.commit(message=got[-1], asynchronous=False)
        at = committed(world.source, topic)[topic, 0]
        assert at > 0
        groups, troubles = list_groups(Admin(flow.target))
        assert troubles == []
        assert groups[topic] in {Activity.ACTIVE, Activity.UNKNOWN}
        passes = Checkpoints(flow)
        assert passes.emit().emitted == 1
        report = passes.sync_groups()
        assert report.written == 0
        assert committed(world.target, topic) == {}
    finally:
        here.close()
        there.close()
    # Once its last member has left, the group gets its offset.
    until = time.monotonic() + 120
    while passes.sync_groups().written == 0:
        assert time.monotonic() < until
        time.sleep(0.5)
    passes.close()
    assert committed(world.target, topic) == {(remote, 0): at}


def test_a_group_that_went_on_at_the_target_is_never_sent_back(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy()
    flow = flow_of(world, groups=topic)
    plant_syncs(flow, {(topic, 0): list(range(100))})
    commit(world.source, topic, {(topic, 0): 80})
    passes = Checkpoints(flow)
    passes.emit()
    assert passes.sync_groups().written == 1
    commit(world.source, topic, {(topic, 0): 30})  # it was reset on the source
    assert passes.emit().emitted == 1
    assert passes.sync_groups().written == 0
    passes.close()
    assert committed(world.target, topic) == {(world.remote(topic), 0): 80}
