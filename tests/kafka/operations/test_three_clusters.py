"""Applications leave one of three clusters that all have one topic, written on each, with flows that skip copies."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.moving import EXACT, PARTITIONS, Applications
from tests.support.secured import eventually
from tests.support.world import producer, read

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World

pytestmark = pytest.mark.timeout(300)
KEY = 9
"""Of the records of the third cluster: no partition has this number, so readers keep them apart."""


def write(cluster: EmbeddedCluster, topic: str, first: int, end: int) -> None:
    client = producer(cluster)
    for number in range(first, end):
        client.produce(topic, key=b"%d" % KEY, value=b"%d" % number, partition=0)
    assert client.flush(30) == 0


@pytest.mark.nightly
def test_it_is_left_and_the_others_copy_on(world: World) -> None:
    with start_clusters([ClusterSpec(name="third")]) as more:
        third, aliases = more["third"], (world.source_alias, world.target_alias, "third")
        applications = Applications(world, shares_topics=True)
        topic = applications.topic
        flows = [f"{one}->{other}" for one, other in permutations(aliases, 2)]
        world.write_settings(
            clusters=", ".join(aliases),
            **{"third.bootstrap.servers": third.bootstrap_servers, "sync.topic.configs.enabled": "false"},
            **{f"{flow}.enabled": "true" for flow in flows},
            **{f"{flow}.topics": topic for flow in flows},
        )
        admin = AdminClient({"bootstrap.servers": third.bootstrap_servers})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
        eventually(lambda: topic in admin.list_topics(timeout=10).topics)
        write(third, topic, 0, 200)
        with applications.running():
            eventually(lambda: all(len(one.read[KEY]) == 200 for one in applications.readers))
            status, _, said = applications.command("switchover", "--to", world.target_alias, "--yes")
            assert (status, "that applications leave with --from" in said) == (2, True), said
            status, report, said = applications.command(
                "switchover", "--to", world.target_alias, "--from", world.source_alias, "--yes"
            )
            assert status == 0, (report, said)
            write(third, topic, 200, 300)  # the fence keeps these from the old cluster
            status, _, said = applications.command("switchover", "--to", world.source_alias, "--from", "third", "--yes")
            assert (status, "is up on" in said and "close` first" in said) == (2, True), said
            applications.close()
            write(third, topic, 300, 400)
            eventually(lambda: all(len(one.read[KEY]) >= 400 for one in applications.readers))
            assert [repr(one) for one in applications.outcomes()] == [EXACT] * len(applications.readers)
            assert [one.read[KEY] for one in applications.readers] == [list(range(400))] * len(applications.readers)
            written = sum(applications.writer.written) + 400
            clusters = (world.source, world.target, third)
            eventually(lambda: all(sum(map(len, read(one, topic).values())) == written for one in clusters))
