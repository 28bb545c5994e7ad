"""checkpoint writes translated offsets, woken by offset syncs or by the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.client import MirrorClient
from mirrorless.formats import OffsetSync
from tests.support.events import msk, record, schedule
from tests.support.offsets import commit, committed
from tests.support.world import fill

if TYPE_CHECKING:
    from tests.functions.conftest import Aws, Start
    from tests.support.world import World


def copied(world: World, **settings: str) -> tuple[str, str]:
    """A topic of a hundred records that is on the target, and a group in the middle of it."""
    topic = world.topic()
    group = f"group-{topic}"
    fill(world.source, topic, (b"%d" % n for n in range(100)))
    commit(world.source, group, {(topic, 0): 42})
    world.write_settings(groups=group, **settings)
    world.copy()
    return topic, group


def test_offset_syncs_wake_it_and_what_is_none_goes_to_the_failure_destination(
    world: World, aws: Aws, start: Start
) -> None:
    topic, group = copied(world)
    queue = aws.queue()
    syncs = f"mm2-offset-syncs.{world.target_alias}.internal"
    sync = OffsetSync(topic=topic, partition=0, last_upstream=99, last_downstream=99)
    function = start("checkpoint", MIRRORLESS_FAILURES=queue)
    answer = function.invoke(
        msk(
            record(syncs, offset=0, key=sync.key(), value=sync.value()),
            record(syncs, offset=1, key=sync.key(), value=None),
            record(syncs, offset=2, key=None, value=sync.value()),
        )
    )
    assert answer == {
        "flow": world.flow,
        "refused": 1,
        "groups": 1,
        "offsets": 1,
        "emitted": 1,
        "how": {"run": 1},
        "unknown": {},
        "walked_records": 0,
        "malformed": 0,
    }
    translated = MirrorClient(world.place().load().target).translate_offsets(world.source_alias, group)
    assert {place: offset for place, (offset, _) in translated.items()} == {(world.remote(topic), 0): 42}
    (message,) = aws.client("sqs").receive_message(QueueUrl=queue)["Messages"]
    assert '"offset": 2' in message["Body"]
    assert f'"flow": "{world.flow}"' in message["Body"]
    metrics = function.metrics()
    assert metrics["checkpoint-count"] == [1]
    assert "checkpoint-latency-ms" not in metrics  # Prometheus only
    assert "offsets-inexact" not in metrics  # none: no zeros of what is mostly zero


def test_groups_that_move_without_new_syncs_are_found_by_the_schedule(world: World, start: Start) -> None:
    topic, group = copied(world, **{"sync.group.offsets.enabled": "true"})
    function = start("checkpoint")
    assert function.invoke(schedule())["emitted"] == 1
    commit(world.source, group, {(topic, 0): 77})
    answer = function.invoke(schedule())
    assert answer["emitted"] == 1
    assert "group_offsets" not in answer  # sync.group.offsets.interval.seconds is a minute
    assert committed(world.target, group) == {(world.remote(topic), 0): 42}
    assert function.invoke({})["group_offsets"] == 1  # by hand
    assert committed(world.target, group) == {(world.remote(topic), 0): 77}


def test_near_its_limit_it_leaves_groups_to_the_next_one(world: World, start: Start) -> None:
    _, group = copied(world)
    function = start("checkpoint")
    assert function.invoke(schedule(), timeout_s=10)["left"] == [f"group {group}"]
    assert function.invoke(schedule())["emitted"] == 1
    assert function.metrics()["units-left"] == [1]


def test_a_trigger_does_not_go_round_where_the_schedule_fails(world: World, start: Start) -> None:
    topic = world.topic()
    world.write_settings(**{"checkpoints.topic.replication.factor": "3"})  # of one broker
    sync = OffsetSync(topic=topic, partition=0, last_upstream=0, last_downstream=0)
    function = start("checkpoint")
    answer = function.invoke(msk(record("syncs", offset=0, key=sync.key(), value=sync.value())))
    reason = f"cluster {world.target_alias}: cannot create topic {world.source_alias}.checkpoints.internal: "
    assert answer["error"].startswith(reason)
    function.begin(schedule())
    error = function.end().error
    assert error is not None
    assert error["errorType"] == "ClusterError"
    assert error["errorMessage"].startswith(reason)
