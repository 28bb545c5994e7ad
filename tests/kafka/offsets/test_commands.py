"""What an operator calls: consume, offsets show and translate, failover-plan; and the client behind them."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli import root
from mirrorless.client import NOT_REACHABLE, MirrorClient
from mirrorless.formats import Checkpoint
from mirrorless.heartbeats import Heartbeats
from mirrorless.offsets.checkpoint_pass import Checkpoints
from tests.support.offsets import commit, committed_records, downstream_of, flow_of, plant_syncs, transactions
from tests.support.world import fill, producer

if TYPE_CHECKING:
    from tests.support.world import World


def call(*arguments: str, fails: bool = False) -> str:
    result = CliRunner().invoke(root, arguments)
    if not fails and result.exception is not None:
        raise result.exception
    assert (result.exit_code != 0) == fails, result.output
    return result.stdout


def document(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(*arguments, "--json"))
    return found


def test_a_group_from_its_offset_to_the_plan(world: World) -> None:
    topic = world.topic()
    transactions(world.source, topic, 40, records=2)
    world.copy()
    transactions(world.source, topic, 5, records=2)  # not copied
    flow = flow_of(world, groups=f"{topic}.*", **{"mirrorless.sync.index.records": "50"})
    records = committed_records(world.source, topic)[0]
    plant_syncs(flow, {(topic, 0): records[:80]})
    commit(world.source, f"{topic}-g", {(topic, 0): 31}, metadata="hello")
    commit(world.source, f"{topic}-h", {(topic, 0): records[-1] + 2})
    passes = Checkpoints(flow)
    passes.emit()
    passes.close()
    file, remote = str(world.file), world.remote(topic)

    there = downstream_of(records, 31)
    lines = call("consume", "checkpoints", file).splitlines()
    assert (
        f"Checkpoint{{consumerGroupId={topic}-g, topicPartition={remote}-0, upstreamOffset=31, "
        f"downstreamOffset={there}, metadata=hello}}" in lines
    )
    syncs = document("consume", "offset-syncs", file)["records"]
    assert {one["block"] for one in syncs} == {None, 0, 1, 2}
    assert all(records[one["last_downstream"]] == one["last_upstream"] for one in syncs)

    arguments = ("offsets", "translate", file, "--from", world.source_alias, "--group")
    assert document(*arguments, f"{topic}-g")["offsets"] == [
        {"group": f"{topic}-g", "topic": remote, "partition": 0, "offset": there, "metadata": "hello"}
    ]
    assert f"{topic}-g" in call(*arguments, f"{topic}-g")
    assert call(*arguments, "nobody", fails=True) == ""

    (shown,) = document("offsets", "show", file)["flows"][world.flow]
    assert (shown["topic"], shown["target_end"], shown["downstream"]) == (topic, 80, 80)
    assert topic in call("offsets", "show", file)

    groups = document("failover-plan", file, "--to", world.target_alias)["flows"][world.flow]["groups"]
    plan = {one["group"]: one for one in groups}
    first, second = plan[f"{topic}-g"], plan[f"{topic}-h"]
    assert (first["source_offset"], first["target_offset"], first["read_again"]) == (31, there, 0)
    assert (first["checkpoint_offset"], first["not_copied"], first["not_copied_exact"]) == (there, 10, True)
    assert 0 <= first["newest_age_ms"] < 600_000
    assert (second["target_offset"], second["how"], second["read_again"]) == (80, "beyond", 0)
    assert "not copied" in call("failover-plan", file, "--to", world.target_alias)


def test_a_plan_where_the_source_is_dead_is_made_of_checkpoints(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, [b"1", b"2", b"3"])
    world.copy()
    flow = flow_of(world, groups=topic)
    plant_syncs(flow, {(topic, 0): [0, 1, 2]})
    commit(world.source, topic, {(topic, 0): 2})
    passes = Checkpoints(flow)
    passes.emit()
    passes.close()
    world.write_settings(**{f"{world.source_alias}.bootstrap.servers": "127.0.0.1:1"})
    result = CliRunner().invoke(root, ["failover-plan", str(world.file), "--to", world.target_alias, "--json"])
    (line,) = json.loads(result.stdout)["flows"][world.flow]["groups"]
    assert (line["how"], line["target_offset"], line["not_copied"]) == ("checkpoint", 2, None)
    assert "no answer from 127.0.0.1:1" in result.stderr
    assert CliRunner().invoke(root, ["failover-plan", str(world.file), "--to", "nowhere"]).exit_code != 0


def test_heartbeats_tell_who_is_upstream(world: World) -> None:
    flow = flow_of(world)
    beats = Heartbeats(flow)
    now_ms = int(time.time() * 1000)
    beats.beat([flow], timestamp_ms=now_ms)
    more = 2
    for number in range(1, more + 1):
        Heartbeats(flow).beat([flow], timestamp_ms=now_ms + number)
    line = (
        f"Heartbeat{{sourceClusterAlias={world.source_alias}, targetClusterAlias={world.target_alias}, "
        f"timestamp={now_ms}}}"
    )
    lines = call("consume", "heartbeats", str(world.file)).splitlines()
    assert line in lines
    assert sum(f"sourceClusterAlias={world.source_alias}," in one for one in lines) == 1 + more
    a, b = world.source_alias, world.target_alias
    topics = [f"{a}.heartbeats", f"{a}.{b}x.heartbeats", f"{a}.t", f"{b}x.{a}.t"]
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        future.result()
    with MirrorClient(flow.target) as client:
        assert client.replication_hops(a) == 1
        assert client.replication_hops(f"{b}x") == 2
        assert client.replication_hops("nobody") == NOT_REACHABLE
        assert {a, f"{b}x"} <= client.upstream_clusters()
        assert {"heartbeats", topics[0], topics[1]} <= client.heartbeat_topics()
        assert client.remote_topics(f"{b}x") == {f"{b}x.{a}.t"}
        assert set(topics) <= client.remote_topics()


def test_the_client_skips_and_counts_what_makes_no_sense(world: World) -> None:
    flow = flow_of(world)
    topic = f"{world.source_alias}.checkpoints.internal"
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    write = producer(world.target)
    for group, downstream in [("a-1", 5), ("a-2", 6), ("b", 7), ("a-1", 8)]:
        one = Checkpoint(group=group, topic="t", partition=0, upstream=9, downstream=downstream, metadata="m")
        write.produce(topic, key=one.key(), value=one.value(), partition=0)
    write.produce(topic, key=b"nonsense", value=b"nonsense", partition=0)
    assert write.flush(30) == 0
    client = MirrorClient(flow.target)
    assert topic in client.checkpoint_topics()
    assert client.translate_offsets(world.source_alias, "a-1") == {("t", 0): (8, "m")}
    assert client.malformed == 1
    assert client.translate_offsets(world.source_alias, "c") == {}
    assert client.translate_offsets_of(world.source_alias, re.compile("a-.*")) == {
        "a-1": {("t", 0): (8, "m")},
        "a-2": {("t", 0): (6, "m")},
    }
    result = CliRunner().invoke(root, ["consume", "checkpoints", str(world.file)])
    assert "1 malformed record skipped: not checkpoints" in result.stderr


@pytest.mark.parametrize("arguments", [("offsets", "--help"), ("consume", "--help"), ("failover-plan", "--help")])
def test_every_command_helps(arguments: tuple[str, ...]) -> None:
    assert "Usage" in call(*arguments)
