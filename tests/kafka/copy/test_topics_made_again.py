"""An internal topic that is deleted, and made again, while somebody keeps reading it is another topic."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import checkpoints_topic
from mirrorless.clusters.target_state import TargetState, TargetStates, configs_topic
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.errors import ClusterUnavailable, FlowPaused
from mirrorless.formats import Checkpoint
from mirrorless.offsets.checkpoints import CheckpointTopic
from mirrorless.progress.records import Progress, SourcePartition
from mirrorless.progress.topic import ProgressTopic
from tests.support.world import delete, producer

if TYPE_CHECKING:
    from tests.support.world import World


def make(world: World, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    config = {"cleanup.policy": "compact"}
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result()
    known(admin, topic, partitions)


def known(admin: AdminClient, topic: str, partitions: int) -> None:
    """Wait until the broker knows them: it makes topics before it tells of them."""
    until = time.monotonic() + 120
    while not (there := admin.list_topics(timeout=60).topics.get(topic)) or len(there.partitions) < partitions:
        assert time.monotonic() < until
        time.sleep(0.1)


def write(world: World, topic: str, key: bytes, value: bytes, *, partition: int = 0) -> None:
    client = producer(world.target)
    client.produce(topic, key=key, value=value, partition=partition)
    assert client.flush(30) == 0


def progress(world: World, topic: str, last_offset: int, *, partition: int = 0) -> None:
    """Write progress of partition 0 of a source topic into a partition of the progress topic."""
    key = SourcePartition(world.source_alias, topic, 0).progress_key()
    write(world, world.progress_topic, key, Progress(last_offset=last_offset).to_bytes(), partition=partition)


def test_a_flow_goes_on_when_the_topic_that_paused_it_is_gone_and_is_paused_by_the_next_one(world: World) -> None:
    world.topic()
    flow = world.place().load()
    topic = configs_topic(flow).name
    with closing(LeasePlanner(flow, bounded=False)) as planner:
        TargetStates(flow).write(TargetState.PAUSED)
        with pytest.raises(FlowPaused):
            planner.refuse_paused()
        delete(world.target, topic)
        planner.refuse_paused()
        planner.refuse_paused()
        make(world, topic)
        planner.refuse_paused()
        TargetStates(flow).write(TargetState.PAUSED)
        with pytest.raises(FlowPaused):
            planner.refuse_paused()


def test_a_flow_goes_on_when_the_topic_that_paused_it_was_made_again_and_is_empty(world: World) -> None:
    world.topic()
    flow = world.place().load()
    with closing(TargetStates(flow)) as states:
        states.write(TargetState.PAUSED)
        assert states.read() is TargetState.PAUSED
        delete(world.target, configs_topic(flow).name)
        make(world, configs_topic(flow).name)
        assert states.read() is TargetState.STARTED


def test_checkpoints_are_forgotten_with_their_topic(world: World) -> None:
    world.topic()
    topic = checkpoints_topic(world.place().load())
    first, second = (Checkpoint(group=group, topic="t", partition=0, upstream=1, downstream=1) for group in "ab")
    make(world, topic.name)
    write(world, topic.name, first.key(), first.value())
    with closing(CheckpointTopic(topic, Admin(topic.cluster), wanted=lambda _: True)) as checkpoints:
        assert checkpoints.read() == {"a": {("t", 0): first}}
        delete(world.target, topic.name)
        make(world, topic.name)
        assert checkpoints.read() == {}
        write(world, topic.name, second.key(), second.value())
        assert checkpoints.read() == {"b": {("t", 0): second}}


def test_progress_of_a_topic_that_was_made_again_is_not_that_of_the_old_one(world: World) -> None:
    topic = world.topic()
    world.discover()
    flow = world.place().load()
    with closing(ProgressTopic(flow, Admin(flow.target))) as reader:
        assert reader.read() == {}
        progress(world, topic, 41)
        assert {place: known.progress for place, known in reader.read().items()} == {
            (topic, 0): Progress(last_offset=41)
        }
        delete(world.target, world.progress_topic)
        with pytest.raises(ClusterUnavailable, match=f"topic {world.progress_topic} does not exist yet"):
            reader.read()
        make(world, world.progress_topic, 2)
        assert reader.read() == {}
        # As long as the old one: its length says nothing.
        progress(world, topic, 7)
        assert reader.read()[topic, 0].progress == Progress(last_offset=7)
        delete(world.target, world.progress_topic)
        make(world, world.progress_topic, 2)
        progress(world, topic, 8)
        assert reader.read()[topic, 0].progress == Progress(last_offset=8)


def test_progress_in_a_partition_that_was_added_is_read(world: World) -> None:
    topic, other = world.topic(), world.topic()
    make(world, world.progress_topic)
    flow = world.place().load()
    with closing(ProgressTopic(flow, Admin(flow.target))) as reader:
        progress(world, topic, 1)
        assert reader.read().keys() == {(topic, 0)}
        admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
        admin.create_partitions([NewPartitions(world.progress_topic, 2)])[world.progress_topic].result()
        known(admin, world.progress_topic, 2)
        progress(world, other, 2, partition=1)
        assert reader.read().keys() == {(topic, 0), (other, 0)}
