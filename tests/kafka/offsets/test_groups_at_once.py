"""Commits on the source are committed on the target at once, however they are found."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition

from mirrorless.clusters.groups import GroupOffsets
from mirrorless.group_sync import commit_feeds
from mirrorless.group_sync import follower as following
from mirrorless.group_sync.commit_feeds import AskingFeed, NotReadable, TopicFeed
from mirrorless.group_sync.follower import GroupFollower
from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.kafka.offsets.test_active_groups import member
from tests.support.offsets import commit, committed, flow_of
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import World

SOON_S = 10.0
"""On a busy machine."""
METADATA = "m" * 4_000
"""Brokers take 4,096 characters by default."""


@pytest.fixture(params=["reads", "asks"])
def feed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type:
    """What finds commits; the second one is used where the topic may not be read."""
    if request.param == "reads":
        return TopicFeed

    def refused(*_: object, **__: object) -> TopicFeed:
        raise NotReadable("__consumer_offsets of source: refused")

    monkeypatch.setattr(following, "TopicFeed", refused)
    monkeypatch.setattr(following, "_READ_AGAIN_S", 0.5)  # that the topic is refused again loses no commit
    monkeypatch.setattr(commit_feeds, "_ALL_WITHIN_S", 1.0)  # the cluster has groups of other tests
    return AskingFeed


def until(follower: GroupFollower, holds: Callable[[], bool]) -> None:
    """Step until something holds."""
    end = time.monotonic() + SOON_S
    while not holds():
        assert time.monotonic() < end
        follower.step()


def settle(follower: GroupFollower, feed: type) -> None:
    """A feed that asks reports what changes after it has asked once, about every group."""
    for _ in range(12 if feed is AskingFeed else 4):
        follower.step()


def test_a_commit_is_on_the_target_soon(world: World, feed: type) -> None:
    topic = world.topic()
    group, idle = f"{topic}-g", f"{topic}-idle"
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    commit(world.source, group, {(topic, 0): 3})
    commit(world.source, idle, {(topic, 0): 3})
    world.copy()
    flow = flow_of(world, groups=f"{group}, {idle}", **{"sync.group.offsets.enabled": "true"})
    remote = world.remote(topic)
    with closing(GroupFollower(flow)) as follower:
        follower.begin()
        settle(follower, feed)
        assert isinstance(follower._feed, feed)
        commit(world.source, group, {(topic, 0): 40}, metadata="kept")
        until(follower, lambda: committed(world.target, group) == {(remote, 0): 40})
        # A group that did not commit is left to the checkpoint runs.
        assert committed(world.target, idle) == {}
        # Never backwards.
        commit(world.source, group, {(topic, 0): 20})
        for _ in range(12):
            follower.step()
        assert committed(world.target, group) == {(remote, 0): 40}
        # Ahead of the copy: up to what is copied, and the rest once it is.
        fill(world.source, topic, (b"%d" % number for number in range(100, 200)))
        commit(world.source, group, {(topic, 0): 180})
        until(follower, lambda: committed(world.target, group) == {(remote, 0): 100})
        assert follower.step().waiting == 1
        world.copy()
        until(follower, lambda: committed(world.target, group) == {(remote, 0): 180})
        assert follower.step().waiting == 0


def test_a_group_that_reads_on_the_target_is_left_alone(world: World, feed: type) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    commit(world.source, topic, {(topic, 0): 3})
    world.copy()
    flow = flow_of(world, groups=topic, **{"sync.group.offsets.enabled": "true"})
    there = member(world.target, topic, world.remote(topic), "classic")
    try:
        with closing(GroupFollower(flow)) as follower:
            follower.begin()
            settle(follower, feed)
            commit(world.source, topic, {(topic, 0): 40})
            for _ in range(12):
                follower.step()
            assert follower.step().waiting == 0
            assert committed(world.target, topic) == {}
    finally:
        there.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_commits_of_members_are_followed(world: World, feed: type, protocol: str) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy()
    flow = flow_of(world, groups=topic, **{"sync.group.offsets.enabled": "true"})
    here = member(world.source, topic, topic, protocol)
    try:
        with closing(GroupFollower(flow)) as follower:
            follower.begin()
            settle(follower, feed)
            place = TopicPartition(topic, 0, 40, METADATA)
            here.commit(offsets=[place], asynchronous=False)
            until(follower, lambda: committed(world.target, topic) == {(world.remote(topic), 0): 40})
            with closing(GroupOffsets(flow.target)) as offsets:
                ((_, kept),) = offsets.committed([topic])
            assert not isinstance(kept, str)
            assert [one.metadata.rstrip("\0") for one in kept.values()] == [METADATA]
    finally:
        here.close()


def test_a_group_that_is_deleted_gets_no_offset_later(world: World, feed: type) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    commit(world.source, topic, {(topic, 0): 1})
    world.copy()
    flow = flow_of(world, groups=topic, **{"sync.group.offsets.enabled": "true"})
    with closing(GroupFollower(flow)) as follower, closing(GroupOffsets(flow.source)) as groups:
        follower.begin()
        settle(follower, feed)
        fill(world.source, topic, (b"%d" % number for number in range(100, 200)))
        commit(world.source, topic, {(topic, 0): 180})
        until(follower, lambda: committed(world.target, topic) == {(world.remote(topic), 0): 100})
        assert groups.delete_groups([topic]) == []
        until(follower, lambda: follower.step().waiting == 0)
        world.copy()
        for _ in range(6):
            follower.step()
        assert committed(world.target, topic) == {(world.remote(topic), 0): 100}


def test_checkpoint_runs_agree_with_what_was_followed(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy()
    flow = flow_of(world, groups=topic, **{"sync.group.offsets.enabled": "true"})
    with closing(GroupFollower(flow)) as follower:
        follower.begin()
        settle(follower, TopicFeed)
        commit(world.source, topic, {(topic, 0): 40})
        until(follower, lambda: committed(world.target, topic) == {(world.remote(topic), 0): 40})
    with closing(Checkpoints(flow)) as passes:
        assert passes.emit().emitted == 1
        assert passes.sync_groups().written == 0
