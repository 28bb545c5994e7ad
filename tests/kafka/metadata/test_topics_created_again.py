"""While a source topic is another one than the copied one, its remote topic is not changed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient, NewPartitions

from mirrorless.cli import root
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.topics import partition_counts
from tests.kafka.copy.test_gaps import create_again
from tests.support.world import fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(root, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def own(world: World, topic: str) -> dict[str, str | None]:
    """Configs that the remote topic has of its own."""
    found, _ = topic_configs(Admin(world.place().load().target), [world.remote(topic)])
    return {name: one.value for name, one in found[world.remote(topic)].items() if one.origin == 1}


def count(world: World, topic: str) -> int:
    return partition_counts(Admin(world.place().load().target).metadata())[world.remote(topic)]


def grow(cluster: EmbeddedCluster, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
    until = time.monotonic() + 60
    while len(admin.list_topics(topic, timeout=60).topics[topic].partitions) < partitions:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("noticed", [True, False], ids=["the copy has halted", "the copy has not noticed"])
def test_configs_and_partitions_wait_for_the_copy(world: World, *, noticed: bool) -> None:
    topic = world.topic(retention_ms="86400000")
    remote = world.remote(topic)
    fill(world.source, topic, (b"old %d" % number for number in range(100)))
    world.copy()
    create_again(world.source, topic, **{"retention.ms": "1000", "cleanup.policy": "compact"})
    grow(world.source, topic, 3)
    fill(world.source, topic, [b"new"])
    if noticed:
        assert [report.state for report in world.copy()] == ["halted"]
    line = f"{topic} was deleted and recreated on {world.source_alias} "

    planned = call("plan", str(world.file), "--json")
    (plan,) = json.loads(planned.stdout)["flows"].values()
    assert [one for one in plan["actions"] if one["topic"] == remote] == []
    assert [note for note in plan["notes"] if note.startswith(line)]
    applied = call("apply", str(world.file))
    assert applied.exit_code == 0
    assert line in applied.stdout
    assert own(world, topic) == {"retention.ms": "86400000"}
    assert count(world, topic) == 1
    status = call("status", str(world.file))
    assert (status.exit_code, line in status.stdout) == (1, True)

    world.write_settings(**{"mirrorless.on.gap": "continue"})
    world.copy_to_the_end()
    assert line not in call("apply", str(world.file)).stdout
    assert own(world, topic) == {"retention.ms": "1000", "cleanup.policy": "compact"}
    assert count(world, topic) == 3
    assert line not in call("status", str(world.file)).stdout


def test_a_plan_says_so_where_nothing_would_change(world: World) -> None:
    topic, other = world.topic(), world.topic()
    for name in (topic, other):
        fill(world.source, name, [b"old"])
    world.copy_to_the_end()
    create_again(world.source, topic)
    planned = call("plan", str(world.file))
    assert f"{topic} was deleted and recreated on {world.source_alias} " in planned.stdout
    assert f"{other} was deleted" not in planned.stdout


def test_partitions_that_the_new_topic_does_not_have_hold_nothing_back(world: World) -> None:
    topic = world.topic(partitions=3)
    fill(world.source, topic, (b"%d" % number for number in range(30)), partitions=3)
    world.copy()
    create_again(world.source, topic)
    fill(world.source, topic, [b"new"])
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    world.copy_to_the_end()
    assert "is not changed" not in call("plan", str(world.file)).stdout
