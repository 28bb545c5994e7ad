"""A drill finds each planted fault by name, finds nothing where nothing is wrong, and changes neither cluster."""

from __future__ import annotations

import itertools
import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AclBindingFilter, AdminClient, NewPartitions, OffsetSpec, ResourceType

from mirrorless.cli import root
from mirrorless.clusters.acls import Acl, NoAcls, create_acls, delete_acls, topic_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.groups import GroupOffsets, list_groups
from mirrorless.clusters.internal_topics import checkpoints_topic, offset_syncs_topic
from mirrorless.formats import Checkpoint, OffsetSync
from mirrorless.metadata.planning import Part
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.offsets.translation_service import Translator
from mirrorless.settings import Cluster, load
from tests.support.metadata import sync_acls, sync_configs
from tests.support.offsets import commit, committed_records, downstream_of, flow_of, transactions
from tests.support.secured import eventually
from tests.support.world import fill, producer

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.settings import Flow
    from tests.support.world import World

READ, WRITE = "READ", "WRITE"


def acl(topic: str, operation: str) -> Acl:
    """An ACL of an application."""
    return Acl(topic=topic, pattern="LITERAL", principal="User:app", host="*", operation=operation, permission="ALLOW")


def plain(cluster: EmbeddedCluster) -> Cluster:
    return Cluster(alias=cluster.name, bootstrap_servers=cluster.bootstrap_servers)


def grant(cluster: EmbeddedCluster, *acls: Acl) -> None:
    assert set(create_acls(Admin(plain(cluster)), acls).values()) == {None}
    eventually(lambda: set(acls) <= acls_of_topics(cluster))


def revoke(cluster: EmbeddedCluster, one: Acl) -> None:
    assert set(delete_acls(Admin(plain(cluster)), [one]).values()) == {None}
    eventually(lambda: one not in acls_of_topics(cluster))


def acls_of_topics(cluster: EmbeddedCluster) -> frozenset[Acl]:
    found = topic_acls(plain(cluster))
    assert not isinstance(found, NoAcls)
    return found


def emit_checkpoints(flow: Flow) -> None:
    with closing(Checkpoints(flow)) as passes:
        passes.emit()


def dump(cluster: EmbeddedCluster) -> dict[str, Any]:
    """Topics, configs, ends of logs, ACLs and group offsets; what a drill might have changed."""
    admin, groups = Admin(plain(cluster)), GroupOffsets(plain(cluster))
    topics = {name: len(one.partitions) for name, one in admin.metadata().topics.items()}
    places = {
        TopicPartition(name, number): OffsetSpec.latest()
        for name, count in topics.items()
        for number in range(count)
        if name != "__consumer_offsets"
    }
    ends = {(one.topic, one.partition): each for one, each in admin.client.list_offsets(places).items()}
    anything = AclBindingFilter(ResourceType.ANY, None, "ANY", None, None, "ANY", "ANY")  # type: ignore[arg-type]
    configs, failed = topic_configs(admin, topics)
    assert not failed
    with closing(groups):
        return {
            "topics": topics,
            "configs": configs,
            "ends": {place: future.result().offset for place, future in ends.items()},
            "acls": sorted(map(str, admin.client.describe_acls(anything).result(30))),
            "groups": dict(groups.committed(sorted(list_groups(admin)[0]))),
        }


def drill(world: World, *options: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, Any]]:
    """The exit status, the checks by their names, and the whole report."""
    result = CliRunner().invoke(root, ["drill", str(world.file), "--to", world.target_alias, "--json", *options])
    assert result.stdout, result.output
    report: dict[str, Any] = json.loads(result.stdout)["flows"][world.flow]
    return result.exit_code, {one["check"]: one for one in report["checks"]}, report


def failed(checks: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, one in checks.items() if one["status"] == "failed"}


def test_a_pair_without_faults_passes_and_is_not_changed(world: World) -> None:
    orders, events = world.topic(2), world.topic()
    transactions(world.source, orders, 60, records=2, aborted_every=7)
    fill(world.source, orders, [b"%d" % number for number in range(300)], partitions=2)
    fill(world.source, events, [b"%d" % number for number in range(200)])
    grant(world.source, acl(orders, READ), acl(orders, WRITE))
    flow = flow_of(world, groups=f"{orders}.*", **{"mirrorless.rpo.seconds": "60", "mirrorless.rto.seconds": "300"})
    world.copy_to_the_end()
    records = committed_records(world.source, orders)
    # In the middle, at a marker, before an aborted transaction, and at the end; one only has a part of the topics.
    commit(world.source, f"{orders}-a", {(orders, 0): 31, (orders, 1): 10, (events, 0): 77})
    commit(world.source, f"{orders}-b", {(orders, 0): records[0][5] + 1, (orders, 1): records[1][-1] + 1})
    commit(world.source, f"{orders}-c", {(orders, 0): records[0][-1] + 1, (events, 0): 0})
    emit_checkpoints(flow)
    sync_configs(flow)
    sync_acls(flow)
    eventually(lambda: acl(world.remote(orders), READ) in acls_of_topics(world.target))
    before = dump(world.source), dump(world.target)

    status, checks, report = drill(world)

    assert failed(checks) == set(), checks
    assert status == 0, checks
    assert (dump(world.source), dump(world.target)) == before
    assert checks["positions of groups"]["text"] == "7 positions compared, all the same"
    assert checks["records"]["text"].endswith("3 of 3 partitions compared, all the same")
    assert checks["rights of principals"]["lines"] == [
        f"User:app lacks WRITE on {world.remote(orders)}: added by a switchover"
    ]
    assert checks["lag"]["text"] == "everything is copied"
    assert report["rpo"] == {"records": 0, "exact": True, "seconds": None, "partition": None, "limit_seconds": 60}
    assert 0 < report["rto"]["seconds"] < 300


@pytest.mark.nightly
def test_the_canary_moves_there_and_back_and_nothing_else_changes(world: World) -> None:
    orders, back = world.topic(2), f"{world.target_alias}->{world.source_alias}"
    fill(world.source, orders, [b"%d" % number for number in range(300)], partitions=2)
    both = {f"{world.flow}.topics": f"{orders}, mirrorless-canary", "groups": f"{orders}.*, mirrorless-canary"}
    flow_of(world, **both, **{f"{back}.enabled": "true", f"{back}.topics": "mirrorless-canary"})
    world.copy_to_the_end()
    one_pass(load(str(world.file)).flow(back), [Part.TOPICS])
    commit(world.source, orders, {(orders, 0): 31})
    drill(world)  # creates the checkpoints topics
    before = dump(world.source), dump(world.target)
    for _ in range(2):
        _, checks, _ = drill(world, "--canary")
        assert checks["canary"]["status"] == "ok", checks["canary"]
        assert checks["canary"]["text"].startswith("100 records and a group moved there and back in ")
    assert [others(one) for one in before] == [others(dump(one)) for one in (world.source, world.target)]


def others(dumped: dict[str, Any]) -> dict[str, list[str]]:
    """What a dump has beside the canary and internal topics."""
    own = ("mirrorless-canary", ".internal", "heartbeats", "__consumer_offsets")
    found = {}
    for kind, some in dumped.items():
        lines = map(str, some.items() if isinstance(some, dict) else some)
        found[kind] = sorted(line for line in lines if not any(name in line for name in own))
    return found


def test_each_planted_fault_is_found(world: World) -> None:
    early, late, right, halts = world.topic(), world.topic(), world.topic(), world.topic()
    for topic in (early, late):
        transactions(world.source, topic, 40, records=2)
    fill(world.source, right, [b"%d" % number for number in range(50)])
    fill(world.source, halts, [b"%d" % number for number in range(50)])
    grant(world.source, acl(right, READ))
    flow = flow_of(world, groups=f"{early}.*")
    world.copy_to_the_end()
    sync_configs(flow)
    sync_acls(flow)
    eventually(lambda: acl(world.remote(right), READ) in acls_of_topics(world.target))
    records = committed_records(world.source, early)[0]
    commit(world.source, f"{early}-g", {(early, 0): 31, (late, 0): 31, (right, 0): 20})
    emit_checkpoints(flow)

    # A translation that is one record too early: an offset sync that maps a part of the log to one record before.
    syncs, group = offset_syncs_topic(flow), f"{early}-g"
    there = downstream_of(records, 31)
    sync = OffsetSync(topic=early, partition=0, last_upstream=32, last_downstream=there, run=2)
    write(world.source, syncs.name, sync.key(), sync.value())
    # A checkpoint that is one record too late.
    ahead = Checkpoint(
        group=group, topic=world.remote(late), partition=0, upstream=31, downstream=there + 1, metadata=""
    )
    write(world.target, checkpoints_topic(flow).name, ahead.key(), ahead.value())
    # A missing ACL.
    revoke(world.target, acl(world.remote(right), READ))
    # A topic with fewer partitions on the target.
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    admin.create_partitions([NewPartitions(right, 2)])[right].result()
    eventually(lambda: len(admin.list_topics(right, timeout=10).topics[right].partitions) == 2)
    # A halted partition: retention overtook the copy.
    fill(world.source, halts, [b"more %d" % number for number in range(50)])
    for future in admin.delete_records([TopicPartition(halts, 0, 75)]).values():
        future.result()
    world.topics.remove(right)  # the copy must not give it the missing partition
    world.write_settings()
    world.copy()
    world.topics.append(right)
    # Lag above the limit.
    fill(world.source, late, [b"late"])
    time.sleep(0.2)
    world.write_settings(**{"mirrorless.rpo.seconds": "0.1"})

    status, checks, report = drill(world)

    assert status == 1
    assert failed(checks) - {"records"} == {
        *("replication", "lag", "positions of groups", "topics and partitions", "topic ACLs", "rights of principals")
    }, checks
    # A random window may begin where the translation is wrong, and then it has to say so.
    if "records" in failed(checks):
        assert checks["records"]["lines"][0].startswith((f"{early}-0 at 31 ", f"{early}-0 at 32 ")), checks["records"]
    assert checks["replication"]["lines"][0].startswith(f"{halts}-0 is halted at offset ")
    assert any(line.startswith(f"{late}-0: 1 record not copied") for line in checks["lag"]["lines"])
    assert report["rpo"]["seconds"] > 0.1
    positions = checks["positions of groups"]["lines"]
    assert any(f"group {group}, translation (run)" in line and f"{early}-0 at 31" in line for line in positions)
    assert any("1 record too early" in line and early in line for line in positions), positions
    assert any("1 record too late" in line and f"group {group}, checkpoint" in line for line in positions), positions
    assert not any(right in line for line in positions)
    assert checks["topics and partitions"]["lines"] == [f"{right} has 2 partitions, {world.remote(right)} has 1"]
    assert checks["rights of principals"]["lines"] == [f"User:app lacks READ on {world.remote(right)}: not synced yet"]


def test_records_that_are_copied_during_a_drill_are_compared_with_their_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target's ends are read before the progress: what was copied in between is beyond them."""
    topic = world.topic()
    flow = flow_of(world, groups=f"{topic}.*")
    fill(world.source, topic, [b"%d" % number for number in range(100)])
    world.copy_to_the_end()
    fill(world.source, topic, [b"%d" % number for number in range(100, 3_000)])
    commit(world.source, topic, {(topic, 0): 2_000})
    emit_checkpoints(flow)  # at the end that the copy has, 1,900 records before the group
    world.copy_to_the_end()
    commit(world.source, topic, {(topic, 0): 2_500})
    read_progress, number = Translator._read_progress, itertools.count(100)

    def copied_before_it(*arguments: Any) -> bool:  # noqa: ANN401 -- those of the method
        if (first := next(number)) < 103:
            fill(world.source, topic, [b"%d-%d" % (first, one) for one in range(70)])
            world.copy_to_the_end()
        return read_progress(*arguments)

    monkeypatch.setattr(Translator, "_read_progress", copied_before_it)
    _, checks, _ = drill(world)
    assert failed(checks) == set(), checks
    assert checks["records"]["text"].endswith("1 of 1 partition compared, all the same")


def test_a_record_that_the_copy_left_out_is_no_fault(world: World) -> None:
    topic = world.topic(max_message_bytes="2000000")
    fill(world.source, topic, [b"%d" % number for number in range(50)])
    flow = flow_of(world, groups=topic, **{"errors.tolerance": "all", "config.properties.exclude": "max.message.bytes"})
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    world.copy_to_the_end()
    fill(world.source, topic, [b"x" * 1_500_000], message_max_bytes=2_000_000)
    fill(world.source, topic, [b"after %d" % number for number in range(30)])
    world.copy_to_the_end()
    assert admin.list_topics(world.remote(topic), timeout=10).topics
    left_out = 50
    commit(world.source, topic, {(topic, 0): left_out})
    emit_checkpoints(flow)

    status, checks, _ = drill(world)

    assert failed(checks) == set(), checks
    assert status == 0
    positions = checks["positions of groups"]
    assert (positions["status"], positions["text"]) == (
        "warning",
        "1 position compared: 1 after records that the copy skipped on purpose",
    )
    assert positions["lines"][0].endswith(f"the copy skipped records before the source's {left_out + 1} on purpose")


def write(cluster: EmbeddedCluster, topic: str, key: bytes, value: bytes) -> None:
    client = producer(cluster)
    client.produce(topic, key=key, value=value, partition=0)
    assert client.flush(30) == 0
