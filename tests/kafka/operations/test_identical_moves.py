"""Applications move between clusters whose records have the same offsets, under the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.identical import ends, records_at
from tests.support.moving import PARTITIONS, Applications
from tests.support.secured import eventually
from tests.support.world import producer

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World

pytestmark = pytest.mark.timeout(300)

IDENTICAL = {"mirrorless.offsets": "identical"}


def is_identical(world: World, topic: str) -> bool:
    """Whether both sides have the same committed records at the same offsets."""
    return records_at(world.source, topic) == records_at(world.target, topic)


def abort(cluster: EmbeddedCluster, topic: str, times: int) -> None:
    """Have aborted records and markers at the end of every partition, or markers only where records are refused."""
    client = producer(cluster, **{"transactional.id": f"{topic}-aborts"})
    client.init_transactions(60)
    for _ in range(times):
        client.begin_transaction()
        for partition in range(PARTITIONS):
            client.produce(topic, key=b"%d" % partition, value=b"never" * 20, partition=partition)
        client.flush(30)
        client.abort_transaction(60)


@pytest.mark.parametrize("fence", ["acl", "config"])
def test_there_and_back_and_there_again(world: World, fence: str) -> None:
    extra = IDENTICAL | {"mirrorless.fence": fence}
    applications = Applications(world, extra, takes_turns=True, log_in=fence == "acl")
    topic = applications.topic
    abort(world.source, topic, 20)
    old = {world.target_alias: world.source, world.source_alias: world.target}
    with applications.running():
        for target in (world.target_alias, world.source_alias, world.target_alias):
            report = applications.move(target)
            assert set(report["groups"]["read_again"].values()) <= {0}, report
            abort(old[target], topic, 5)  # a producer that is late
            applications.close()
            applications.write_more(300)
        applications.check()
        eventually(
            lambda: all(ends(world.source, topic, one) == ends(world.target, topic, one) for one in range(PARTITIONS))
        )
        assert is_identical(world, topic)
