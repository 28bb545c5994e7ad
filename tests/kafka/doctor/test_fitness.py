"""What the doctor says of clusters that can be entered: whether the flow's topics, limits and clocks fit."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli.doctor import doctor
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import ConfigChange, alter_topic_configs
from mirrorless.doctor.checks import examine
from mirrorless.doctor.clocks import clock_agrees
from mirrorless.doctor.findings import Status
from mirrorless.doctor.probes import Probes
from mirrorless.local.broker import free_ports
from mirrorless.rights import Function
from mirrorless.settings import Cluster, load
from tests.support.offsets import commit
from tests.support.world import World, producer

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.doctor.findings import Finding
    from mirrorless.local.embedded_kafka import EmbeddedCluster

HOUR_MS = 3_600_000
BEFORE_AN_HOUR = {"message_timestamp_before_max_ms": str(HOUR_MS)}


def findings(world: World, **settings: str) -> dict[tuple[str | None, str], Finding]:
    """The doctor's findings by cluster and check."""
    flow = load(world.write_settings(**settings)).flow(world.flow)
    return {(one.cluster, one.check): one for one in examine(flow)}


def make(cluster: EmbeddedCluster, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(30)


def contents(cluster: EmbeddedCluster) -> dict[tuple[str, int], tuple[int, int]]:
    """First and next offset of every partition of every topic."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "looks-on"})
    topics = consumer.list_topics(timeout=60).topics
    found = {
        (name, number): consumer.get_watermark_offsets(TopicPartition(name, number), timeout=10)
        for name, topic in topics.items()
        for number in topic.partitions
        if not name.startswith("__")
    }
    consumer.close()
    return found


def test_nothing_is_written_and_without_an_authorizer_every_right_is_there(world: World) -> None:
    topic = world.topic(partitions=2)
    commit(world.source, f"{topic}-reader", {(topic, 0): 0})  # a group that can be asked about
    make(world.target, "heartbeats-of-nobody")
    before = contents(world.source), contents(world.target)

    found = findings(world, **{"emit.heartbeats.enabled": "true"})

    assert {check: one.text for check, one in found.items() if one.status is not Status.OK} == {}
    assert (contents(world.source), contents(world.target)) == before


def test_one_cluster_at_both_ends(source: EmbeddedCluster, tmp_path: Path) -> None:
    world = World(source, source, tmp_path)
    found = findings(world)

    failed = found[None, "cluster ids"]
    assert failed.status is Status.FAILED
    assert failed.text == f"source and target are the same cluster ({source.cluster_id})"
    assert (world.target_alias, "progress topic") not in found


def test_a_cluster_that_is_down_leaves_checks_undone(world: World) -> None:
    (port,) = free_ports(1)
    world.topic()
    found = findings(world, **{f"{world.target_alias}.bootstrap.servers": f"127.0.0.1:{port}"})

    for check in ("rights", "internal topics", "replication factors", "clock", "message size", "MirrorMaker 2"):
        undone = found[world.target_alias, check]
        assert undone.status is Status.NOT_CHECKED
        assert undone.text == f"{world.target_alias} is unreachable"
    assert found[None, "cluster ids"].status is Status.NOT_CHECKED
    assert found[world.source_alias, "READ on replicated topics"].status is Status.OK


def test_more_replicas_than_brokers(world: World) -> None:
    found = findings(world, **{"replication.factor": "2", "offset.storage.replication.factor": "3"})

    failed = found[world.target_alias, "replication factors"]
    assert failed.status is Status.FAILED
    assert failed.text == (
        f"replication.factor=2, offset.storage.replication.factor=3; {world.target_alias} has 1 broker"
    )
    assert failed.fix == (
        "set replication.factor, offset.storage.replication.factor to 1, or to -1 for the default of "
        f"{world.target_alias}"
    )
    assert found[world.target_alias, "progress topic"].status is Status.NOT_CHECKED
    assert found[world.source_alias, "replication factors"].status is Status.OK


def test_a_progress_topic_that_forgets(world: World) -> None:
    make(world.target, world.progress_topic, cleanup_policy="delete")

    failed = findings(world)[world.target_alias, "progress topic"]
    assert failed.status is Status.FAILED
    assert failed.text.startswith(f"{world.progress_topic} has cleanup.policy=delete")
    assert failed.fix == (
        f"kafka-configs.sh --bootstrap-server {world.target.bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {world.progress_topic} --add-config cleanup.policy=compact"
    )


@pytest.mark.parametrize("there", [False, True], ids=["to be created", "there"])
def test_records_that_are_too_large_for_the_target(world: World, there: bool) -> None:
    topic = world.topic(max_message_bytes="2000000")
    if there:
        make(world.target, world.remote(topic))

    assert findings(world)[world.target_alias, "message size"].status is Status.OK
    failed = findings(world, **{"config.properties.exclude": "max.message.bytes"})[world.target_alias, "message size"]

    assert failed.status is Status.FAILED
    assert failed.text == f"{world.remote(topic)} accepts 1,048,588 bytes, {topic} 2,000,000"
    assert failed.fix is not None
    assert failed.fix.endswith("to 2000000")


def test_the_fence_of_an_operation_is_not_to_be_removed_by_hand(world: World) -> None:
    topic = world.topic()
    make(world.target, world.remote(topic), **{"max.message.bytes": "78"})

    found = findings(world)[world.target_alias, "message size"]

    assert found.status is Status.WARNING
    assert found.text == f"the fence of an operation is up (max.message.bytes=78): {world.remote(topic)}"
    assert "operation FILE close" in (found.fix or "")


def test_records_that_are_too_old_for_the_target(world: World) -> None:
    topic = world.topic(partitions=2)
    for partition, hours in enumerate((-50, 0)):
        send(world, topic, hours=hours, partition=partition)
    assert findings(world)[world.target_alias, "timestamps"].status is Status.OK
    make(world.target, world.remote(topic), message_timestamp_before_max_ms=str(HOUR_MS))
    assert findings(world)[world.target_alias, "timestamps"].status is Status.OK  # the config sync lifts the limit

    failed = findings(world, **{"sync.topic.configs.enabled": "false"})[world.target_alias, "timestamps"]

    assert failed.status is Status.FAILED
    assert failed.text == (
        f"{topic} has a record 50 h old, which {world.remote(topic)} refuses "
        f"(message.timestamp.before.max.ms={HOUR_MS})"
    )


def test_records_that_are_too_far_ahead_for_the_target(world: World) -> None:
    topic = world.topic(partitions=2, message_timestamp_after_max_ms=str(100 * HOUR_MS))
    own = {"config.properties.exclude": "message.timestamp.after.max.ms"}
    fine = findings(world, **own)[world.target_alias, "timestamps"]
    assert fine.status is Status.OK
    assert fine.text.endswith("; the target accepts records at most 60 min ahead of now")
    for partition, hours in enumerate((50.1, 0)):
        send(world, topic, hours=hours, partition=partition)

    failed = findings(world, **own)[world.target_alias, "timestamps"]

    assert failed.status is Status.FAILED
    assert failed.text.startswith(f"{topic} has a record 50 h ahead of now, which {world.remote(topic)} refuses")


def test_a_topic_that_is_named_and_not_there(world: World) -> None:
    world.topic()
    world.topics.append("misspelt")

    warned = findings(world)[world.source_alias, "topics"]
    assert warned.status is Status.WARNING
    assert warned.text == "topics not visible and not replicated: misspelt"


def test_a_target_that_replaces_timestamps(world: World) -> None:
    topic = world.topic()
    make(world.target, world.remote(topic), message_timestamp_type="LogAppendTime")

    warned = findings(world)[world.target_alias, "timestamps"]
    assert warned.status is Status.WARNING
    assert world.remote(topic) in warned.text


def test_a_topic_that_replaces_timestamps_hides_no_failed_check_of_another(world: World) -> None:
    replaced, kept = world.topic(), world.topic()
    make(world.target, world.remote(replaced), message_timestamp_type="LogAppendTime", **BEFORE_AN_HOUR)
    make(world.target, world.remote(kept), **BEFORE_AN_HOUR)
    for topic in (replaced, kept):
        send(world, topic, hours=-50, partition=0)
    world.write_settings(**{"sync.topic.configs.enabled": "false"})

    found = [one for one in examine(load(world.file).flow(world.flow)) if one.check == "timestamps"]

    assert [one.status for one in found] == [Status.WARNING, Status.FAILED]
    warned, failed = (one.text for one in found)
    assert world.remote(replaced) in warned
    assert world.remote(kept) not in warned
    assert failed.startswith(f"{kept} has a record 50 h old, which {world.remote(kept)} refuses")
    assert replaced not in failed
    assert CliRunner().invoke(doctor, [str(world.file)]).exit_code == 1


def test_a_topic_that_would_not_be_created_hides_no_failed_check_of_another(world: World) -> None:
    kept = world.topic(max_message_bytes="2000000")
    make(world.target, world.remote(kept))
    refused = f"{kept}-".ljust(249, "x")  # as long as a name can be, so that no remote topic can have it
    make(world.source, refused)
    world.topics.insert(0, refused)

    failed = findings(world, **{"config.properties.exclude": "max.message.bytes"})[world.target_alias, "message size"]

    assert failed.status is Status.FAILED
    assert failed.text.startswith(f"{world.remote(kept)} accepts 1,048,588 bytes, {kept} 2,000,000; not checked: ")
    assert f"{world.remote(refused)} would not be created" in failed.text


@pytest.mark.parametrize("there", [False, True], ids=["to be created", "there"])
def test_fewer_replicas_than_in_sync_ones_are_asked_for(world: World, there: bool) -> None:
    topic = world.topic(min_insync_replicas="2")
    assert findings(world)[world.target_alias, "in-sync replicas"].status is Status.OK
    if there:
        make(world.target, world.remote(topic), min_insync_replicas="2")

    failed = findings(world, **{"config.properties.exclude": "none"})[world.target_alias, "in-sync replicas"]

    assert failed.status is Status.FAILED
    assert failed.text == (
        f"old brokers (2.8) refuse every append to {world.remote(topic)} with replication factor 1 and "
        "min.insync.replicas=2"
    )
    raising = (
        "add replicas to the existing topics (kafka-reassign-partitions)"
        if there
        else "set replication.factor to 2 or more"
    )
    assert failed.fix == (
        f"{raising}; or lower min.insync.replicas of these topics, or of {world.target_alias}'s brokers, to 1"
    )


def test_an_internal_topic_with_fewer_replicas_than_in_sync_ones_are_asked_for(world: World) -> None:
    world.topic()
    make(world.target, world.progress_topic, cleanup_policy="compact", min_insync_replicas="2")

    failed = findings(world)[world.target_alias, "progress topic"]

    assert failed.status is Status.FAILED
    assert f"{world.progress_topic} with replication factor 1 and min.insync.replicas=2" in failed.text


@pytest.mark.parametrize("there", [False, True], ids=["to be created", "there"])
def test_retention_that_is_shorter_on_the_target(world: World, there: bool) -> None:
    short, longer = world.topic(retention_ms="604800000"), world.topic()
    assert findings(world)[world.target_alias, "retention"].status is Status.OK
    if there:
        make(world.target, world.remote(short), retention_ms="60000")
        make(world.target, world.remote(longer), retention_ms="-1")
    else:
        alter(world.source, short, retention_ms="-1")

    warned = findings(world, **{"config.properties.exclude": "retention.ms"})[world.target_alias, "retention"]

    assert warned.status is Status.WARNING
    kept = (
        f"{world.remote(short)} 1 minute ({short}: 7 days)"
        if there
        else f"{world.remote(short)} 7 days ({short}: no limit)"
    )
    assert warned.text == (
        f"retention of 1 of 2 topics is shorter on {world.target_alias} than on {world.source_alias}, so their records "
        f"are deleted sooner: {kept}"
    )
    assert warned.fix == (
        f"set retention.ms on the remote topics, or raise log.retention.ms of {world.target_alias}'s brokers"
    )
    assert findings(world, **{"config.properties.exclude": "none"})[world.target_alias, "retention"].status is Status.OK


def alter(cluster: EmbeddedCluster, topic: str, **config: str) -> None:
    changes = [ConfigChange(key.replace("_", "."), value) for key, value in config.items()]
    admin = Admin(Cluster(alias="any", bootstrap_servers=cluster.bootstrap_servers))
    assert alter_topic_configs(admin, {topic: changes}) == {topic: None}


def send(world: World, topic: str, *, hours: float, partition: int) -> None:
    client = producer(world.source)
    client.produce(topic, b"value", partition=partition, timestamp=int(time.time() * 1000 + hours * HOUR_MS))
    assert client.flush(30) == 0


@pytest.mark.parametrize(("ahead_ms", "status"), [(0, Status.OK), (30_000, Status.WARNING), (-600_000, Status.FAILED)])
def test_clocks_are_compared(target: EmbeddedCluster, ahead_ms: int, status: Status) -> None:
    with Probes(Cluster(alias="B", bootstrap_servers=target.bootstrap_servers)) as probes:
        found = clock_agrees(probes, "B", now_ms=lambda: time.time() * 1000 + ahead_ms)

    assert found.status is status
    if ahead_ms:
        assert ("behind" if ahead_ms > 0 else "ahead") in found.text


def test_the_command(world: World) -> None:
    world.topic()
    good, bad = str(world.write_settings()), str(world.folder / "bad.properties")
    (world.folder / "bad.properties").write_text(f"{world.file.read_text()}replication.factor = 9\n")

    fine = CliRunner().invoke(doctor, [good])
    unfit = CliRunner().invoke(doctor, [bad, "--json"])
    part = CliRunner().invoke(doctor, [bad, "--json", "--function", Function.CONFIG_SYNC])

    assert fine.exit_code == 0
    assert fine.output.startswith(world.flow)
    assert "0 failed" in fine.output.splitlines()[-1]
    assert unfit.exit_code == 1
    (found,) = json.loads(unfit.stdout)["flows"].values()
    assert [one["check"] for one in found if one["status"] == "failed"] == ["replication factors"]
    assert part.exit_code == 0
    (found,) = json.loads(part.stdout)["flows"].values()
    assert {one["check"] for one in found if " on " in one["check"]} == {
        "DESCRIBE on replicated topics",
        "DESCRIBE_CONFIGS on replicated topics",
        "DESCRIBE on remote topics",
        "ALTER_CONFIGS on remote topics",
        "READ on progress topic",
        "READ on operations topic",
    }
    text = CliRunner().invoke(doctor, [bad]).output
    assert "  -> set replication.factor to 1, or to -1" in text


def test_a_function_that_needs_nothing_is_well(world: World) -> None:
    world.topic()
    file = str(world.write_settings(**{"emit.heartbeats.enabled": "false"}))
    found = CliRunner().invoke(doctor, [file, "--function", Function.HEARTBEAT])
    assert found.exit_code == 0, found.output
    assert "0 failed" in found.output.splitlines()[-1]


def test_heartbeats_of_the_way_back_are_looked_at_too(world: World) -> None:
    world.topic()
    file = str(world.write_settings(**{"emit.heartbeats.enabled": "true"}))

    flows = json.loads(CliRunner().invoke(doctor, [file, "--json"]).stdout)["flows"]

    back = flows[f"{world.target_alias}->{world.source_alias} (heartbeats only)"]
    assert {one["cluster"] for one in back} == {world.source_alias}
    assert {one["check"] for one in back if " on " in one["check"]} == {
        "CREATE on heartbeats topic",
        "WRITE on heartbeats topic",
    }
