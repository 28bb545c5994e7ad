"""Active/active: what one flow's checkpoints did to a group on the other side is nothing that the other sends back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient

from tests.support.offsets import commit, committed
from tests.support.pair import Pair
from tests.support.world import fill

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

NUMBERS = [b"%d" % number for number in range(100)]


def replicate(pair: Pair, times: int = 3) -> None:
    for _ in range(times):
        pair.replicate()


def forget(cluster: EmbeddedCluster, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    gone = admin.delete_consumer_groups([group])[group]
    gone.result(timeout=60)


def test_a_group_that_moves_at_home_alone_is_moved_by_nobody_else(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path
) -> None:
    pair = Pair(source, target, tmp_path, group="at-home")
    topic, remote = pair.topics[0], pair.there.remote(pair.topics[0])
    fill(source, topic, NUMBERS)
    commit(source, pair.group, {(topic, 0): 80})
    replicate(pair)
    assert committed(target, pair.group)[remote, 0] == 80
    assert committed(source, pair.group)[topic, 0] == 80
    commit(source, pair.group, {(topic, 0): 30})  # reset, to read again
    replicate(pair)
    assert committed(source, pair.group)[topic, 0] == 30
    forget(source, pair.group)
    replicate(pair)
    assert committed(source, pair.group) == {}


def test_a_group_before_the_copys_beginning_stays_there(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path
) -> None:
    pair = Pair(source, target, tmp_path, group="before")
    pair.there.write_settings(**{f"{pair.there.source_alias}.consumer.auto.offset.reset": "latest"})
    topic, remote = pair.topics[0], pair.there.remote(pair.topics[0])
    fill(source, topic, NUMBERS)
    pair.replicate()
    fill(source, topic, NUMBERS)
    commit(source, pair.group, {(topic, 0): 30})
    replicate(pair)
    assert committed(target, pair.group)[remote, 0] == 0
    assert committed(source, pair.group)[topic, 0] == 30
    commit(target, pair.group, {(remote, 0): 10})  # it failed over, and went on there
    replicate(pair, 2)
    assert committed(source, pair.group)[topic, 0] == 110
