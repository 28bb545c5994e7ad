"""Retention on the target deletes what a group has yet to read: its offset stays inside the remote log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.failover_plan import failover_plan
from tests.support.offsets import commit, committed, flow_of
from tests.support.world import fill

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.settings import Flow
    from tests.support.world import World


def delete_before(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    """Delete the records before an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def replicated(world: World) -> tuple[str, str, str, Flow]:
    """A topic of 100 records and its remote topic, a group of that name at 20, and the flow."""
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy_to_the_end()
    commit(world.source, topic, {(topic, 0): 20})
    flow = flow_of(world, groups=f"{topic}.*", **{"sync.group.offsets.enabled": "true"})
    return topic, world.remote(topic), topic, flow


def test_a_group_s_offset_stays_inside_the_remote_log(world: World) -> None:
    topic, remote, group, flow = replicated(world)
    passes = Checkpoints(flow)
    passes.emit()
    passes.sync_groups()
    assert committed(world.target, group) == {(remote, 0): 20}
    delete_before(world.target, remote, 50)
    commit(world.source, f"{topic}-new", {(topic, 0): 30})
    commit(world.source, f"{topic}-further", {(topic, 0): 70})

    report = passes.emit()
    passes.sync_groups()

    assert {name: committed(world.target, name)[remote, 0] for name in (group, f"{topic}-new", f"{topic}-further")} == {
        group: 50,
        f"{topic}-new": 50,
        f"{topic}-further": 70,
    }
    assert report.how["start"] == 2
    assert passes.emit().emitted == 0
    passes.close()
    forecasts = {one.group: (one.target_offset, one.how) for one in failover_plan(flow).forecasts}
    assert forecasts[group] == (50, "start")


def test_a_log_that_begins_later_than_the_last_checkpoint(world: World) -> None:
    _, remote, group, flow = replicated(world)
    passes = Checkpoints(flow)
    passes.emit()
    passes.sync_groups()
    delete_before(world.target, remote, 50)

    report = passes.sync_groups()

    assert (report.written, report.raised, report.troubles) == (1, 1, [])
    assert committed(world.target, group) == {(remote, 0): 50}
    # The checkpoint says so too, or the way back would take the group for one that went on by itself.
    (last,) = passes._topic.read()[group].values()
    assert (last.upstream, last.downstream) == (20, 50)
    assert passes.sync_groups().written == 0
    passes.close()
