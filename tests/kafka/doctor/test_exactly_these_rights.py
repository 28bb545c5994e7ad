"""Users with exactly the rights of the table replicate, verify and drill, and the doctor does not complain."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AclBinding, NewTopic, ResourceType

from mirrorless.cli import root
from mirrorless.cli.doctor import doctor
from mirrorless.clusters.acls import Acl, topic_acls
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.groups import GroupOffsets
from mirrorless.clusters.topics import partition_counts
from mirrorless.formats import Heartbeat
from mirrorless.rights import Function, Side, When, needed
from tests.support.guarded import BY_CERTIFICATE, GuardedWorld, connected
from tests.support.processes import Mirrorless
from tests.support.secured import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.guarded import Guarded

RECORDS, COMMITTED = 2_000, 321


def fill(world: GuardedWorld) -> None:
    """Records, and a group in the midst of them."""
    source = world.guarded.by_admin(Side.SOURCE)
    producer = Producer(connected(source))
    for number in range(RECORDS):
        producer.produce(world.topic, key=b"%d" % number, value=b"v%d" % number, partition=number % 2)
    assert producer.flush(30) == 0
    member = Consumer(connected(source, group_id=world.group, enable_auto_commit=False))
    member.commit(offsets=[TopicPartition(world.topic, 0, COMMITTED)], asynchronous=False)
    member.close()


def read(guarded: Guarded, side: Side, topic: str) -> dict[int, list[tuple[bytes | None, bytes | None, int]]]:
    """Every record of a topic by partition: key, value, timestamp."""
    settings = connected(guarded.by_admin(side), group_id="reader", enable_partition_eof=True)
    consumer = Consumer(settings)
    partitions = range(partition_counts(guarded.admin(side).metadata())[topic])
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: dict[int, list[tuple[bytes | None, bytes | None, int]]] = {number: [] for number in partitions}
    missing = set(partitions)
    while missing:
        message = consumer.poll(20)
        assert message is not None
        error = message.error()
        if error is None:
            found[message.partition() or 0].append((message.key(), message.value(), message.timestamp()[1]))
        else:
            assert error.code() == KafkaError._PARTITION_EOF
            missing.discard(message.partition() or 0)
    consumer.close()
    return found


def test_the_whole_flow(guarded: Guarded, tmp_path: Path) -> None:
    world = GuardedWorld(guarded, tmp_path, extra={"emit.heartbeats.interval.seconds": "1"})
    guarded.add_users([world.mark])
    world.clients = {Side.SOURCE: guarded.login(Side.SOURCE, world.mark), Side.TARGET: guarded.certificate()}
    world.make_topic(2, retention_ms="123456789000")
    fill(world)
    reader = AclBinding(ResourceType.TOPIC, world.topic, "LITERAL", "User:reader", "*", "READ", "ALLOW")
    guarded.grant({Side.SOURCE: [reader]})
    granted = (When.PAUSE, When.RIVAL, When.EXPIRY, When.AT_ONCE)
    rows = [row for row in needed(world.flow()) if row.required or row.when in granted]
    guarded.grant(world.acls(rows, {Side.SOURCE: world.mark, Side.TARGET: BY_CERTIFICATE}))

    before = CliRunner().invoke(doctor, [str(world.write()), "--json"])
    with Mirrorless(world.file, "--available-now") as process:
        assert process.wait() == 0, process.text()
    after = CliRunner().invoke(doctor, [str(world.file), "--json"])

    for one in (before, after):
        (findings,) = json.loads(one.stdout)["flows"].values()
        assert not wrong(findings), one.stdout
        assert one.exit_code == 0
    target = guarded.admin(Side.TARGET)
    assert read(guarded, Side.TARGET, world.remote) == read(guarded, Side.SOURCE, world.topic)
    assert topic_configs(target, [world.remote])[0][world.remote]["retention.ms"].value == "123456789000"
    copied = Acl(
        topic=world.remote,
        pattern="LITERAL",
        principal="User:reader",
        host="*",
        operation="READ",
        permission="ALLOW",
    )
    assert copied in topic_acls(guarded.by_admin(Side.TARGET))  # type: ignore[operator]
    for side, topic in (
        (Side.SOURCE, f"mm2-offset-syncs.{world.aliases[Side.TARGET]}.internal"),
        (Side.TARGET, f"{world.aliases[Side.SOURCE]}.checkpoints.internal"),
        (Side.TARGET, f"mm2-offsets.{world.aliases[Side.SOURCE]}.internal"),
        (Side.TARGET, "heartbeats"),
    ):
        assert any(read(guarded, side, topic).values()), topic
    groups = GroupOffsets(guarded.by_admin(Side.TARGET))
    ((_, offsets),) = groups.committed([world.group])
    groups.close()
    assert not isinstance(offsets, str)
    assert offsets[world.remote, 0].offset == COMMITTED
    verify(world)
    drill(world)


def wrong(findings: list[dict[str, str]]) -> list[dict[str, str]]:
    """What is not as it should be; the configs of internal topics take a right that nothing else needs."""
    return [one for one in findings if one["status"] != "ok" and "DESCRIBE_CONFIGS is needed" not in one["text"]]


def as_another_user(world: GuardedWorld, function: Function) -> None:
    """Have the flow log in as a user with exactly the rights of one function, of whom the doctor has no complaint."""
    user = f"{world.mark}-{function}"
    world.guarded.add_users([user])
    world.clients = {side: world.guarded.login(side, user) for side in Side}
    world.guarded.grant(world.acls(needed(world.flow(), [function]), user))
    asked = CliRunner().invoke(doctor, [str(world.write()), "--json", "--function", function])
    (findings,) = json.loads(asked.stdout)["flows"].values()
    assert not wrong(findings), asked.stdout


def verify(world: GuardedWorld) -> None:
    """Another user, who may not write anything, compares both sides."""
    as_another_user(world, Function.VERIFY_COPY)
    command = [sys.executable, "-m", "mirrorless", "verify", str(world.file), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=170)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    (found,) = json.loads(ended.stdout)["flows"]
    assert (found["records-compared"], found["troubles"]) == (RECORDS, [])
    assert all(note.startswith("not moved: ") for note in found["notes"]), found["notes"]  # rights of these users


def drill(world: GuardedWorld) -> None:
    """Another one, who may not write anything either, rehearses a failover: every check is done, and none fails."""
    beat(world)
    as_another_user(world, Function.DRILL)
    ended = CliRunner().invoke(root, ["drill", str(world.file), "--to", world.aliases[Side.TARGET], "--json"])
    assert ended.exit_code == 0, ended.output
    (report,) = json.loads(ended.stdout)["flows"].values()
    checks = {one["check"]: one for one in report["checks"]}
    assert {one["status"] for one in checks.values()} <= {"ok", "warning"}
    assert checks["positions of groups"]["text"] == "1 position compared, all the same"
    assert checks["heartbeats"]["text"].startswith("the newest is")
    assert report["rpo"]["records"] == 0


def beat(world: GuardedWorld) -> None:
    """A heartbeat of the source that was replicated to the target."""
    target, topic = world.guarded.by_admin(Side.TARGET), f"{world.aliases[Side.SOURCE]}.heartbeats"
    admin = world.guarded.admin(Side.TARGET)
    admin.client.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    eventually(lambda: topic in admin.metadata().topics)
    one = Heartbeat(source="any", target=world.aliases[Side.SOURCE], timestamp_ms=int(time.time() * 1000))
    producer = Producer(connected(target))
    producer.produce(topic, key=one.key(), value=one.value())
    assert producer.flush(30) == 0
