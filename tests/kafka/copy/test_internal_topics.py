"""Internal topics that are deleted, or that are not compacted, where brokers create topics by themselves."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from mirrorless.cli.offsets.reset import reset
from mirrorless.cli.plan import plan
from mirrorless.cli.status import status
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import checkpoints_topic, heartbeats_topic, offset_syncs_topic
from mirrorless.clusters.replay import Replay
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.offset_syncs.writer import SyncWriter
from mirrorless.copy.planning.lease_planner import LeasePlanner
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterError
from mirrorless.formats import OffsetSync
from mirrorless.heartbeats import Heartbeats, look
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.progress.records import Progress, SourcePartition
from mirrorless.progress.writer import ProgressWriter
from mirrorless.rights import Function, On
from tests.support.world import World, delete, fill, producer, read, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def creating() -> Iterator[EmbeddedCluster]:
    """A cluster that creates topics which clients ask for, as Kafka does by default."""
    settings = {"auto.create.topics.enable": "true", "num.partitions": "3"}
    with start_clusters([ClusterSpec(name="creating", settings=settings)]) as started:
        yield started["creating"]


@pytest.fixture
def world(source: EmbeddedCluster, creating: EmbeddedCluster, tmp_path: Path) -> World:
    return World(
        source,
        creating,
        tmp_path,
        extra={"offset-syncs.topic.location": "target", "offset.storage.partitions": "2"},
    )


def shape(cluster: EmbeddedCluster, topic: str) -> tuple[int, str] | None:
    """Partitions and cleanup.policy of a topic, None if it is not there; asked in ways that create nothing."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.list_topics(timeout=60).topics.get(topic)
    if found is None:
        return None
    resource = ConfigResource(ResourceType.TOPIC, topic)
    policy = admin.describe_configs([resource])[resource].result()["cleanup.policy"].value
    return len(found.partitions), str(policy)


def create(cluster: EmbeddedCluster, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result()


def test_deleted_topics_do_not_come_back_with_the_brokers_defaults(world: World, creating: EmbeddedCluster) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"%d" % number for number in range(10)])
    member = Consumer({"bootstrap.servers": world.source.bootstrap_servers, "group.id": topic})
    member.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
    member.close()
    world.write_settings(groups=topic)
    world.copy_to_the_end()
    flow = world.place().load()
    beats, syncs, checkpoints = heartbeats_topic(flow).name, offset_syncs_topic(flow), checkpoints_topic(flow).name
    key = SourcePartition(world.source_alias, topic, 0).progress_key()
    heartbeats, writer = Heartbeats(flow), SyncWriter(syncs)
    progress_writer = ProgressWriter(topic=world.progress_topic, cluster=flow.target)
    with closing(Checkpoints(flow)) as passes:
        heartbeats.beat([flow], timestamp_ms=1)
        assert passes.emit().emitted == 1
        progress_writer.write(key, Progress(last_offset=9).to_bytes())
        assert progress_writer.flush(30)
        for name in (beats, syncs.name, checkpoints, world.progress_topic):
            delete(creating, name)
        until = time.monotonic() + 60
        number = 10
        while writer.error is None or progress_writer.error is None:
            assert time.monotonic() < until
            number += 1
            heartbeats.beat([flow], timestamp_ms=number)
            writer.write([OffsetSync(topic=topic, partition=0, last_upstream=number, last_downstream=number)])
            progress_writer.write(key, Progress(last_offset=number).to_bytes())
            time.sleep(0.2)
        report = passes.emit()
    assert (report.emitted, report.troubles) == (1, [])
    assert shape(creating, beats) == (1, "compact")
    assert shape(creating, checkpoints) == (1, "compact")
    # What only topic discovery creates is reported as missing, in a line.
    assert shape(creating, syncs.name) is shape(creating, world.progress_topic) is None
    missing = "the topic does not exist; topic discovery recreates it"
    assert (writer.error or "").endswith(f"writing an offset sync to {syncs.name} failed: {missing}")
    assert (progress_writer.error or "").endswith(missing)
    world.discover()
    assert shape(creating, syncs.name) == (1, "compact")
    assert shape(creating, world.progress_topic) == (2, "compact")
    writer.write([OffsetSync(topic=topic, partition=0, last_upstream=99, last_downstream=99)])
    assert writer.flush(30)


def test_progress_that_was_deleted_under_a_copy_is_written_again(world: World, creating: EmbeddedCluster) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % number for number in range(100)), partitions=2)
    world.copy_to_the_end()
    flow = world.place().load()
    with closing(LeasePlanner(flow, bounded=False)) as planner:
        planner.plan(flow)
        delete(creating, world.progress_topic)
        fill(world.source, topic, [b"new"])  # partition 1 has nothing new, and nothing else says where it is
        piles = planner.plan(flow)
        assert f"{world.progress_topic} on {world.target_alias} was deleted and recreated" in planner.waiting
        assert "the progress of 2 partitions was written to it again" in planner.waiting
        planner.plan(flow)
        assert planner.waiting == ""
    assert shape(creating, world.progress_topic) == (2, "compact")
    assert {row.last_offset for pile in piles for row in pile} == {49}
    run_lease(world.place(), [row for pile in piles for row in pile], control=Control(), lease=1, slot=0)
    reports = world.copy()  # by another process, which knows what the topic says and nothing else
    assert not [report.error for report in reports if report.error]
    assert world.assert_equal(topic) == 101


def test_a_copy_without_progress_names_the_cause_and_continues_behind_its_last_offset_sync(
    world: World, creating: EmbeddedCluster
) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.copy_to_the_end()
    delete(creating, world.progress_topic)
    fill(world.source, topic, [b"new"])
    (report,) = world.copy()
    assert report.state == "halted"
    error = report.error or ""
    assert "does not announce; the topic was probably deleted, or emptied by retention" in error
    assert "cleanup.policy must be compact" in error
    assert "to restart the topic" not in error
    syncs = offset_syncs_topic(world.place().load())
    with closing(Replay(topic=syncs.name, cluster=syncs.cluster, admin=Admin(syncs.cluster))) as replay:
        found = [OffsetSync.parse(entry.key, entry.value) for entry in replay.read()]
    last = max(one.last_upstream for one in found if isinstance(one, OffsetSync) and one.topic == topic)
    command = [str(world.file), "--topic", topic, "--partition", "0", "--offset", str(last + 1), "--yes"]
    done = CliRunner().invoke(reset, command)
    assert done.exit_code == 0, done.output
    world.copy_to_the_end()
    assert values(read(creating, world.remote(topic))[0]) == values(read(world.source, topic)[0])


def test_a_progress_topic_that_is_not_compacted_is_refused_with_the_command_that_fixes_it(
    world: World, creating: EmbeddedCluster
) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"one"])
    for policy in ("delete", "compact,delete"):
        create(creating, world.progress_topic, cleanup_policy=policy)
        fix = (
            f"kafka-configs.sh --bootstrap-server {creating.bootstrap_servers} --alter --entity-type topics "
            f"--entity-name {world.progress_topic} --add-config cleanup.policy=compact"
        )
        (problem,) = world.discover().problems
        assert problem.topic == world.progress_topic
        assert problem.reason.startswith(f"cleanup.policy={policy}: ")
        assert problem.reason.endswith(fix)
        flow = world.place().load()
        with closing(LeasePlanner(flow, bounded=False)) as planner, pytest.raises(ClusterError) as raised:
            planner.plan(flow)
        assert str(raised.value).endswith(fix)
        assert not raised.value.retriable
        assert fix in CliRunner().invoke(plan, [str(world.file)]).stdout
        asked = CliRunner().invoke(status, [str(world.file)])
        assert (asked.exit_code, fix in asked.stderr) == (1, True)
        delete(creating, world.progress_topic)
    world.copy_to_the_end()
    assert world.assert_equal(topic) == 1


def test_other_topics_that_are_not_compacted_are_reported(world: World, creating: EmbeddedCluster) -> None:
    world.topic()
    name = offset_syncs_topic(world.place().load()).name
    create(creating, name, cleanup_policy="delete")
    found = world.discover()
    assert found.problems == ()
    (note,) = found.notes
    assert note.startswith(f"{name} on {world.target_alias} has cleanup.policy=delete: ")
    assert f"--entity-name {name} --add-config cleanup.policy=compact" in note


def test_heartbeats_are_not_written_into_what_is_not_theirs(world: World, creating: EmbeddedCluster) -> None:
    world.topic()
    flow = world.place().load()
    name = heartbeats_topic(flow).name
    if shape(creating, name) is not None:
        delete(creating, name)
    create(creating, name, cleanup_policy="delete")
    refused = Heartbeats(flow).refused or ""
    assert f"{name} on {world.target_alias} has cleanup.policy=delete; no heartbeats are written to it" in refused
    assert f"--entity-name {name} --add-config cleanup.policy=compact" in refused
    delete(creating, name)
    create(creating, name, cleanup_policy="compact")
    Heartbeats(flow).beat([flow], timestamp_ms=1)
    assert Heartbeats(flow).refused is None
    client = producer(creating)
    for number in range(48):
        client.produce(name, key=b"sensor-%d" % number, value=b"up")
    assert client.flush(30) == 0
    assert (Heartbeats(flow).refused or "").startswith(
        f"{name} on {world.target_alias} is used for something else: 10 of its last 10 records are not heartbeats"
    )
    (failed,) = [one for one in examine(flow, [Function.HEARTBEAT]) if one.check == On.HEARTBEATS]
    assert failed.status is Status.FAILED
    assert failed.text.startswith(f"{name} is used for something else: 10 of its last 10 records are not heartbeats")
    found = look(flow.target, name, count=100)
    assert (found.records, found.foreign, found.last and found.last.timestamp_ms) == (49, 48, 1)
    delete(creating, name)
