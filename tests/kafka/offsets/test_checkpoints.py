"""Checkpoints of real groups, from both clusters, compared with a full read of both sides."""

from __future__ import annotations

import random
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli import root
from mirrorless.filters import GroupFilter, TopicFilter
from mirrorless.formats import Checkpoint
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.failover_plan import failover_plan
from tests.support.offsets import (
    commit,
    committed,
    committed_records,
    downstream_of,
    flow_of,
    plant_syncs,
    transactions,
)
from tests.support.world import delete, fill, read

if TYPE_CHECKING:
    import pytest

    from tests.support.world import World


def checkpoints(world: World) -> list[Checkpoint]:
    """Everything in the checkpoints topic, in order."""
    found = [
        Checkpoint.parse(one.key, one.value)
        for one in read(world.target, f"{world.source_alias}.checkpoints.internal")[0]
    ]
    return [one for one in found if isinstance(one, Checkpoint)]


def test_every_offset_of_a_topic_with_transactions_is_exact(world: World) -> None:
    topic = world.topic(partitions=2)
    random.seed(6)
    for partition in range(2):
        transactions(world.source, topic, 30, records=3, aborted_every=4, partition=partition)
    fill(world.source, topic, (b"%d" % number for number in range(200)), partitions=2)
    transactions(world.source, topic, 10, records=2, aborted_every=3)
    world.copy()
    records = committed_records(world.source, topic)
    assert {place: len(offsets) for place, offsets in committed_records(world.target, world.remote(topic)).items()} == {
        place: len(offsets) for place, offsets in records.items()
    }
    flow = flow_of(world, groups=f"{topic}-.*")
    plant_syncs(flow, {(topic, partition): offsets for partition, offsets in records.items()}, a_batch=7)
    ends = {partition: offsets[-1] + 2 for partition, offsets in records.items()}
    for offset in range(0, max(ends.values()), 3):
        commit(world.source, f"{topic}-{offset}", {(topic, partition): offset for partition in ends}, metadata="m")
    passes = Checkpoints(flow)
    report = passes.emit()
    assert report.troubles == []
    assert not report.unknown
    assert report.how["nearest"] == 0
    assert report.how["walk"] > 0
    found = checkpoints(world)
    assert len(found) == report.emitted == report.offsets
    for one in found:
        assert one.topic == world.remote(topic)
        assert one.metadata == "m"
        assert one.downstream == downstream_of(records[one.partition], one.upstream)
    # Nothing moved: nothing is written, and nothing is walked again.
    again = passes.emit()
    assert (again.emitted, again.walked_records) == (0, 0)
    passes.close()
    # A cold function comes to the same and knows what was written.
    cold = Checkpoints(flow)
    assert cold.emit().emitted == 0
    cold.close()


def test_groups_filters_and_what_is_not_on_the_target(world: World) -> None:
    topic, empty, alien = world.topic(), world.topic(), world.topic()
    world.topics.remove(alien)
    fill(world.source, topic, [b"1", b"2", b"3"])
    world.copy()
    flow = flow_of(world, groups=f"{topic}.*", **{"groups.exclude": ".*-not"})
    plant_syncs(flow, {(topic, 0): [0, 1, 2]})
    commit(world.source, f"{topic}-a", {(topic, 0): 2, (empty, 0): 0, (alien, 0): 0})
    commit(world.source, f"{topic}-not", {(topic, 0): 1})
    commit(world.source, f"other-{topic}", {(topic, 0): 1})
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert (report.groups, report.offsets, report.emitted) == (1, 2, 2)
    assert {(one.topic, one.upstream, one.downstream) for one in checkpoints(world)} == {
        (world.remote(topic), 2, 2),
        (world.remote(empty), 0, 0),
    }


class OnlyReleased(TopicFilter):
    """What a user has on the path."""

    def selects(self, name: str) -> bool:
        return super().selects(name) and not name.endswith("-draft")


class NoTrials(GroupFilter):
    """What a user has on the path."""

    def selects(self, name: str) -> bool:
        return super().selects(name) and not name.endswith("-trial")


def test_filters_of_ones_own_choose_groups_and_their_topics(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_filters")
    vars(module).update({"OnlyReleased": OnlyReleased, "NoTrials": NoTrials})
    monkeypatch.setitem(sys.modules, "own_filters", module)
    topic = world.topic()
    draft = f"{topic}-draft"
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    admin.create_topics([NewTopic(draft, 1, 1)])[draft].result()
    world.topics.append(draft)
    own = {"topic.filter.class": "own_filters:OnlyReleased", "group.filter.class": "own_filters:NoTrials"}
    flow = flow_of(world, groups=f"{topic}-.*", **own)
    world.discover()
    for group in ("team", "trial"):
        commit(world.source, f"{topic}-{group}", {(topic, 0): 0, (draft, 0): 0})
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert (report.groups, report.offsets) == (1, 1)
    assert [(one.group, one.topic) for one in checkpoints(world)] == [(f"{topic}-team", world.remote(topic))]
    assert [(one.group, one.topic) for one in failover_plan(flow).forecasts] == [(f"{topic}-team", topic)]


def test_without_any_sync_nothing_is_made_up(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"1", b"2", b"3"])
    world.write_settings(**{"emit.offset-syncs.enabled": "false"})
    world.copy()
    fill(world.target, world.remote(topic), [b"somebody else's"])
    flow = flow_of(world, groups=topic, **{"offset.storage.topic": "not-there"})
    commit(world.source, topic, {(topic, 0): 2})
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert report.emitted == 0
    assert dict(report.unknown) == {"there is no offset sync yet": 1}


def test_the_progress_topic_alone_is_enough_to_be_exact(world: World) -> None:
    topic = world.topic()
    transactions(world.source, topic, 20, records=2)
    world.copy()
    flow = flow_of(world, groups=topic)
    commit(world.source, topic, {(topic, 0): 31})
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert dict(report.how) == {"walk": 1}
    (found,) = checkpoints(world)
    assert found.downstream == downstream_of(committed_records(world.source, topic)[0], 31)


def test_where_the_sources_head_is_gone_the_answer_is_the_nearest_pair_below(world: World) -> None:

    topic = world.topic()
    transactions(world.source, topic, 40, records=2)
    world.copy()
    flow = flow_of(world, groups=topic, **{"offset.storage.topic": "not-there"})
    records = committed_records(world.source, topic)[0]
    # Of the syncs only two are left.
    plant_syncs(flow, {(topic, 0): records[:20]}, a_batch=20)
    commit(world.source, topic, {(topic, 0): 100})
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    place = TopicPartition(topic, 0, 90)
    admin.delete_records([place])[place].result()
    passes = Checkpoints(flow)
    report = passes.emit()
    passes.close()
    assert dict(report.how) == {"nearest": 1}
    assert "OFFSET_OUT_OF_RANGE" in report.troubles[0]
    (found,) = checkpoints(world)
    assert found.downstream == 20 < downstream_of(records, 100)


def test_group_offsets_on_the_target(world: World) -> None:
    topic = world.topic(partitions=3)
    fill(world.source, topic, (b"%d" % number for number in range(300)), partitions=3)
    world.copy()
    flow = flow_of(world, groups=f"{topic}.*")
    plant_syncs(flow, {(topic, partition): list(range(100)) for partition in range(3)})
    remote = world.remote(topic)
    commit(world.source, f"{topic}-new", {(topic, 0): 50, (topic, 1): 60})
    commit(world.source, f"{topic}-idle", {(topic, 0): 50, (topic, 1): 60, (topic, 2): 70})
    commit(world.target, f"{topic}-idle", {(remote, 0): 90, (remote, 1): 10})
    passes = Checkpoints(flow)
    passes.emit()
    report = passes.sync_groups()
    assert (report.written, report.active, report.troubles) == (4, [], [])
    assert committed(world.target, f"{topic}-new") == {(remote, 0): 50, (remote, 1): 60}
    assert committed(world.target, f"{topic}-idle") == {(remote, 0): 90, (remote, 1): 60, (remote, 2): 70}
    assert passes.sync_groups().written == 0
    passes.close()


def test_a_group_that_was_deleted_on_the_source_is_not_made_again_and_not_moved(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy()
    flow = flow_of(world, groups=f"{topic}.*")
    gone, reset, stays = (f"{topic}-{name}" for name in ("gone", "reset", "stays"))
    for group in (gone, reset, stays):
        commit(world.source, group, {(topic, 0): 50})
    passes = Checkpoints(flow)
    passes.emit()
    assert passes.sync_groups().written == 3
    there = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    there.delete_consumer_groups([gone])[gone].result()
    commit(world.target, reset, {(world.remote(topic), 0): 10})
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    for future in admin.delete_consumer_groups([gone, reset]).values():
        future.result()
    commit(world.source, stays, {(topic, 0): 60})
    passes.emit()
    report = passes.sync_groups()
    passes.close()
    assert (report.written, report.troubles) == (1, [])
    assert committed(world.target, gone) == {}
    assert committed(world.target, reset) == {(world.remote(topic), 0): 10}
    assert committed(world.target, stays) == {(world.remote(topic), 0): 60}


def test_where_the_remote_topic_was_made_anew_no_group_is_sent_behind_what_it_read(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(1_000)))
    world.copy()
    flow = flow_of(world, groups=f"{topic}.*")
    groups = {f"{topic}-{offset}": offset for offset in (900, 1_000)}
    for group, offset in groups.items():
        commit(world.source, group, {(topic, 0): offset})
    passes = Checkpoints(flow)
    passes.emit()
    assert passes.sync_groups().written == 2
    # The source has the later half only, and the remote topic is to begin with it.
    source = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    place = TopicPartition(topic, 0, 500)
    source.delete_records([place])[place].result()
    delete(world.target, world.remote(topic))
    world.discover()
    passes.sync_groups()  # before anything was copied into the new one
    arguments = ["offsets", "reset", str(world.file), "--topic", topic, "--offset", "earliest", "--yes"]
    assert CliRunner().invoke(root, arguments).exit_code == 0
    world.copy()
    passes.emit()
    report = passes.sync_groups()
    passes.close()
    assert report.troubles == []
    assert {group: committed(world.target, group) for group in groups} == {
        group: {(world.remote(topic), 0): offset - 500} for group, offset in groups.items()
    }
    last = {one.group: one.downstream for one in checkpoints(world)}
    assert last == {group: offset - 500 for group, offset in groups.items()}


def test_a_checkpoint_of_the_topic_before_is_lowered_where_records_have_to_be_counted(world: World) -> None:
    topic = world.topic()
    transactions(world.source, topic, 100, records=3)
    world.copy()
    flow = flow_of(world, groups=topic)
    commit(world.source, topic, {(topic, 0): 240})
    passes = Checkpoints(flow)
    passes.emit()
    assert [one.downstream for one in checkpoints(world)] == [180]
    # More is lost than the group is ahead of the records that it has read.
    source = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    place = TopicPartition(topic, 0, 120)
    source.delete_records([place])[place].result()
    delete(world.target, world.remote(topic))
    world.discover()
    arguments = ["offsets", "reset", str(world.file), "--topic", topic, "--offset", "earliest", "--yes"]
    assert CliRunner().invoke(root, arguments).exit_code == 0
    world.copy()
    report = passes.emit()
    passes.close()
    assert report.troubles == []
    assert [one.downstream for one in checkpoints(world)][-1] == 90


def test_near_the_time_limit_groups_are_left_to_the_next_pass(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"1", b"2", b"3"])
    world.copy()
    flow = flow_of(world, groups=f"{topic}.*")
    groups = [f"{topic}-{number}" for number in range(5)]
    for group in groups:
        commit(world.source, group, {(topic, 0): 2})
    passes = Checkpoints(flow)
    passes.emit()
    asked = iter([False, False, True])
    report = passes.sync_groups(stopping=lambda: next(asked))
    assert (report.written, len(report.left)) == (2, 3)
    assert all(committed(world.target, group) == {} for group in report.left)
    # All move on: those first that were left.
    for group in groups:
        commit(world.source, group, {(topic, 0): 3})
    passes.emit()
    asked = iter([False, False, False, True])
    assert passes.sync_groups(stopping=lambda: next(asked)).written == 3
    assert all(committed(world.target, group) == {(world.remote(topic), 0): 3} for group in report.left)
    assert passes.sync_groups().written == 2
    passes.close()
