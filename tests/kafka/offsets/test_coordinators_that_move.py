"""Another broker becomes the coordinator of a group: whoever has asked the old one finds the new one."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from mirrorless.clusters.groups import Committed, GroupOffsets
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.support.offsets import commit
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUPS = 8
# The library leaves sockets that a stopped broker refused to the garbage collector, which may come in the next test.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def three() -> Iterator[EmbeddedCluster]:
    settings = {"broker.session.timeout.ms": "4000", "auto.leader.rebalance.enable": "false"}
    with start_clusters([ClusterSpec(name="three", brokers=3, settings=settings)]) as started:
        yield started["three"]


def coordinator(cluster: EmbeddedCluster, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    until = time.monotonic() + 120
    while True:
        found = admin.describe_consumer_groups([group])[group].result().coordinator
        if found is not None and found.id > 0:
            return int(found.id)
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.nightly
@pytest.mark.parametrize("comes_back", [True, False], ids=["to another one", "from one that is gone"])
def test_groups_are_found_where_they_went(three: EmbeddedCluster, tmp_path: Path, comes_back: bool) -> None:
    world = World(three, three, tmp_path, replicas=3)
    topic = world.topic()
    fill(three, topic, [b"%d" % number for number in range(20)])
    place = (topic, 0)
    groups = [f"{topic}-{number}" for number in range(GROUPS)]
    for group in groups:
        commit(three, group, {place: 5})
    with closing(GroupOffsets(world.place().load().source)) as offsets:
        assert dict(offsets.committed(groups)) == {group: {place: Committed(5, "")} for group in groups}
        node = coordinator(three, groups[0])
        three.stop_broker(node)
        if comes_back:
            three.start_broker(node)
        try:
            until = time.monotonic() + 120
            while coordinator(three, groups[0]) == node:
                assert time.monotonic() < until
                time.sleep(0.2)
            found = dict(offsets.committed(groups))
            assert found == {group: {place: Committed(5, "")} for group in groups}
            outcome = offsets.commit({group: {place: Committed(7, "")} for group in groups})
            assert outcome == {group: {place: None} for group in groups}
        finally:
            if not comes_back:
                three.start_broker(node)


def test_a_commit_finds_it_as_well(three: EmbeddedCluster, tmp_path: Path) -> None:
    world = World(three, three, tmp_path, replicas=3)
    topic = world.topic()
    fill(three, topic, [b"%d" % number for number in range(20)])
    place, group = (topic, 0), topic
    commit(three, group, {place: 5})
    with closing(GroupOffsets(world.place().load().source)) as offsets:
        assert offsets.commit({group: {place: Committed(6, "")}}) == {group: {place: None}}
        node = coordinator(three, group)
        three.stop_broker(node)
        three.start_broker(node)
        assert coordinator(three, group) != node
        assert offsets.commit({group: {place: Committed(7, "")}}) == {group: {place: None}}
        assert dict(offsets.committed([group])) == {group: {place: Committed(7, "")}}
