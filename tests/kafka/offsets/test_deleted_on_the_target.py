"""Retention deletes records of the target, which may lose others: groups stay inside its log, the lost ones lack."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.copy.flow.status import status_of
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.failover_plan import failover_plan
from mirrorless.operation_log.records import OperationKind, Request
from mirrorless.operations.steps.context import OperationContext, StepFailed
from mirrorless.operations.steps.drain import DrainStep
from mirrorless.settings import load
from tests.support.offsets import commit, committed, flow_of
from tests.support.world import delete, fill, read, values

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


@pytest.mark.parametrize("left", [30, None], ids=["lost tail", "gone"])
def test_a_target_log_that_is_shorter_than_the_progress_lacks_records(world: World, left: int | None) -> None:
    """Such as of a disk that was restored; `None`: the remote topic was deleted."""
    topic, remote, _, flow = replicated(world)
    delete_before(world.target, remote, 50)
    assert (status_of(flow).lag_records, status_of(flow).lacking) == (0, ())
    assert drained(world, topic) == [100]
    delete(world.target, remote)
    if left is not None:
        admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
        admin.create_topics([NewTopic(remote, 1)])[remote].result()
        fill(world.target, remote, (b"%d" % number for number in range(left)))
    expected = 100 - (left or 0)

    found = status_of(flow)
    assert found.lag_records == expected
    (line,) = found.lacking
    assert line.startswith(f"{remote}-0 ends at {left or 0}, before offset 100 up to which {topic}-0 was copied")
    (forecast,) = failover_plan(flow).forecasts
    assert (forecast.not_copied, forecast.not_copied_exact) == (expected, True)
    with pytest.raises(StepFailed, match="not everything was copied in 2 s") as failed:
        drained(world, topic, seconds=2.0)
    assert failed.value.lines[0] == f"{topic}-0: {expected} records not copied, from offset {left or 0} on"

    world.discover()
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    assert drained(world, topic) == [100]
    assert values(read(world.target, remote)[0]) == [b"%d" % number for number in range(100)]
    assert (status_of(flow).lag_records, status_of(flow).lacking) == (0, ())


def drained(world: World, topic: str, *, seconds: float = 60.0) -> list[int]:
    """Drain the topic as a switchover does; returns the ends of its partitions."""
    settings = load(str(world.file))
    request = Request(kind=OperationKind.SWITCHOVER, source="", target="", drain_timeout_s=seconds)
    context = OperationContext(
        settings=settings,
        forward=settings.flow(world.flow),
        reverse=None,
        operation=cast("Any", SimpleNamespace(request=request, data=lambda _: {"topics": {topic: 1}})),
        check=lambda: None,
        say=lambda _: None,
        earlier=cast("Any", None),
        writer=cast("Any", None),
    )
    return list(DrainStep().act(context, {})["ends"][topic])
