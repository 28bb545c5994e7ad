"""What `plan` says of identical offsets, and compacted topics, which begin where the source's first record is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from mirrorless.cli.plan import planned
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.metadata.actions import AlterConfigs
from tests.kafka.identical.test_identical_copy import identical, transactions
from tests.support.identical import assert_identical, delete_before, ends, records_at
from tests.support.world import World, fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster


def make_compact(cluster: EmbeddedCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()


def test_a_compacted_topic_that_begins_later(world: World) -> None:
    topic = identical(world)
    fill(world.source, topic, [b"%d" % number for number in range(6_000)])
    delete_before(world.source, topic, 5_500)
    make_compact(world.source, topic)
    plan = planned(world.place().load())
    assert any(
        "1 partition begins after offset 0: the remote one is filled with 5,500 offsets" in note for note in plan.notes
    ), plan.notes
    (report,) = world.copy()
    assert (report.state, report.records, report.error) == ("caught up", 500, None)
    assert assert_identical(world, topic) == 500
    assert ends(world.target, world.remote(topic)) == (5_500, 6_000)
    configs, _ = topic_configs(Admin(world.place().load().target), [world.remote(topic)])
    there = {name: configs[world.remote(topic)][name].value for name in ("cleanup.policy", "retention.ms")}
    assert there == {"cleanup.policy": "compact,delete", "retention.ms": "-1"}
    plan = planned(world.place().load())
    assert not [one for one in plan.actions if isinstance(one, AlterConfigs)]
    assert (plan.problems, records_at(world.target, world.remote(topic))[0][0].offset) == ((), 5_500)


def test_holes_are_estimated_and_too_many_are_a_problem(world: World) -> None:
    topic, dense = identical(world), world.topic()
    world.write_settings(**{"mirrorless.offsets": "dense"})
    transactions(world, dense, rounds=1)
    world.copy()
    world.write_settings(**{"mirrorless.offsets": "identical", "mirrorless.offsets.holes.max": "20"})
    transactions(world, topic, rounds=10)
    plan = planned(world.place().load())
    assert any("of the next offsets have no record and become markers of 78 bytes" in note for note in plan.notes)
    problems = {one.topic: one.reason for one in plan.problems}
    assert "more than mirrorless.offsets.holes.max" in problems[topic]
    assert "holds records with other offsets" in problems[dense]
    world.write_settings(**{"mirrorless.offsets.identical.topics": dense})
    assert topic not in {one.topic for one in planned(world.place().load()).problems}
