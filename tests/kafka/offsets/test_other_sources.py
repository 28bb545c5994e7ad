"""A group of two sources whose flows keep topic names continues at the earlier of its two positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import checkpoints_topic, ensure
from mirrorless.formats import Checkpoint
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.checkpoints import write_checkpoints
from mirrorless.offsets.failover_plan import failover_plan
from mirrorless.settings import load
from tests.support.offsets import commit, committed
from tests.support.world import fill

if TYPE_CHECKING:
    from tests.support.world import World


def test_a_group_of_two_sources_continues_at_the_earlier_position(world: World) -> None:
    topic, only_here = world.topic(), world.topic()
    other = f"{world.source_alias}x"
    world.write_settings(
        **{
            "clusters": f"{world.source_alias}, {other}, {world.target_alias}",
            f"{other}.bootstrap.servers": "127.0.0.1:9",
            f"{other}->{world.target_alias}.enabled": "true",
            "topics": f"{topic}, {only_here}",
            "groups": f"{topic}-.*",
            "replication.policy.class": "IdentityReplicationPolicy",
            "sync.group.offsets.enabled": "true",
        }
    )
    for name in (topic, only_here):
        fill(world.source, name, [b"%d" % number for number in range(100)])
    world.copy_to_the_end()
    settings = load(str(world.file))
    flow, beside = (
        next(one for one in settings.flows if one.source.alias == name) for name in (world.source_alias, other)
    )
    assert any("continues there at the earlier of its two positions" in line for line in settings.warnings)
    for group in ("both", "here"):
        commit(world.source, f"{topic}-{group}", {(topic, 0): 90, (only_here, 0): 80})
    ensure(Admin(beside.target), checkpoints_topic(beside))
    slower = Checkpoint(
        group=f"{topic}-both", topic=topic, partition=0, upstream=7, downstream=40, metadata="", committed=None
    )
    write_checkpoints(beside, [slower])

    plan = {(one.group, one.topic): one.target_offset for one in failover_plan(flow).forecasts}
    passes = Checkpoints(flow)
    assert passes.emit().troubles == []
    assert passes.sync_groups().written == 4
    passes.close()

    assert committed(world.target, f"{topic}-both") == {(topic, 0): 40, (only_here, 0): 80}
    assert committed(world.target, f"{topic}-here") == {(topic, 0): 90, (only_here, 0): 80}
    assert plan[f"{topic}-both", topic] == 40
    assert plan[f"{topic}-here", topic] == 90
