"""The doctor warns of a MirrorMaker 2 that still runs for the flow, and of progress that nobody takes over."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.doctor import mirrormaker2
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.doctor.probes import NotSaid, Probes
from mirrorless.errors import ClusterUnavailable
from mirrorless.progress.records import Progress, SourcePartition
from mirrorless.rights import Function
from mirrorless.settings import load
from tests.support.secured import eventually

if TYPE_CHECKING:
    import pytest

    from mirrorless.doctor.findings import Finding
    from mirrorless.settings import Flow
    from tests.support.world import World

THEIRS = Progress(last_offset=7)
OURS = Progress(last_offset=8, sequence=9, epoch=0, last_downstream=8)


def found(world: World) -> dict[str, Finding]:
    flow = load(world.write_settings()).flow(world.flow)
    return {one.check: one for one in examine(flow, [Function.PARTITION_COPY]) if one.cluster == world.target_alias}


def write(world: World, topic: str, key: bytes, value: bytes, *, seconds_ago: float = 0) -> None:
    client = Producer({"bootstrap.servers": world.target.bootstrap_servers, "partitioner": "murmur2"})
    client.produce(topic, key=key, value=value, timestamp=int((time.time() - seconds_ago) * 1000))
    assert client.flush(30) == 0


def progress(world: World, said: Progress, *, seconds_ago: float = 0) -> None:
    key = SourcePartition(world.source_alias, world.topics[0], 0).progress_key()
    write(world, world.progress_topic, key, said.to_bytes(), seconds_ago=seconds_ago)


def test_no_sign(world: World) -> None:
    world.topic()
    world.discover()

    assert found(world)["MirrorMaker 2"].status is Status.OK


def test_progress_that_is_newer_than_ours(world: World) -> None:
    world.topic()
    world.discover()
    progress(world, OURS, seconds_ago=60)
    progress(world, THEIRS, seconds_ago=20)

    warned = found(world)["MirrorMaker 2"]
    assert warned.status is Status.WARNING
    assert warned.text.startswith("MirrorMaker 2 wrote progress 2")
    assert warned.fix == "stop MirrorMaker 2 before this flow runs: otherwise both copy every record"


def test_progress_that_we_went_on_from_or_that_is_old(world: World) -> None:
    world.topic()
    world.discover()
    progress(world, THEIRS, seconds_ago=7_200)
    assert found(world)["MirrorMaker 2"].status is Status.OK

    progress(world, THEIRS, seconds_ago=20)
    progress(world, OURS, seconds_ago=5)
    assert found(world)["MirrorMaker 2"].status is Status.OK


def test_progress_between_ours_of_the_same_partition(world: World) -> None:
    world.topic()
    world.discover()
    for said, seconds_ago in ((OURS, 40), (THEIRS, 20), (OURS, 1)):
        progress(world, said, seconds_ago=seconds_ago)

    warned = found(world)["MirrorMaker 2"]
    assert warned.status is Status.WARNING
    assert warned.text.startswith("MirrorMaker 2 wrote progress 2")


def test_a_broker_that_does_not_say_who_is_in_the_group(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic()
    world.discover()
    progress(world, THEIRS, seconds_ago=20)

    def breaks(_: Flow) -> bool:
        raise ClusterUnavailable("connection reset", cluster=world.target_alias)

    monkeypatch.setattr(mirrormaker2, "nodes_run", breaks)
    assert found(world)["MirrorMaker 2"].text.startswith("MirrorMaker 2 wrote progress 2")

    def says_nothing(*_: object) -> list[str]:
        raise NotSaid("connection reset")

    monkeypatch.setattr(Probes, "refused_groups", says_nothing)
    assert found(world)["MirrorMaker 2"].text.startswith("MirrorMaker 2 wrote progress 2")

    progress(world, OURS)
    group = f"{world.source_alias}-mm2"
    assert found(world)["MirrorMaker 2"].text == (
        f"no sign of MirrorMaker 2; could not read group {group} (connection reset)"
    )


def test_members_of_its_group(world: World) -> None:
    topic = world.topic()
    world.discover()
    member = Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": f"{world.source_alias}-mm2"})
    member.subscribe([world.remote(topic)])
    eventually(lambda: member.poll(0.1) is not None or bool(member.assignment()))
    try:
        warned = found(world)["MirrorMaker 2"]
    finally:
        member.close()

    assert warned.status is Status.WARNING
    assert warned.text == f"group {world.source_alias}-mm2 has members"
    assert found(world)["MirrorMaker 2"].status is Status.OK


def test_a_task_that_says_it_runs(world: World) -> None:
    world.topic()
    world.discover()
    status = f"mm2-status.{world.source_alias}.internal"
    make(world, status)
    running = json.dumps({"state": "RUNNING", "worker_id": "here:8083", "generation": 3}).encode()
    write(world, status, b"status-task-MirrorSourceConnector-0", running)

    assert f"{status} has status RUNNING, written" in found(world)["MirrorMaker 2"].text


def make(world: World, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": world.target.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def test_progress_under_another_connector_s_name(world: World) -> None:
    world.topic()
    world.discover()
    key = json.dumps(
        ["orders-mirror", {"cluster": world.source_alias, "partition": 0, "topic": world.topics[0]}],
        separators=(",", ":"),
    ).encode()
    write(world, world.progress_topic, key, b'{"offset":41}')

    warned = found(world)["progress to take over"]
    assert warned.status is Status.WARNING
    assert warned.text == "1 offsets belong to connector orders-mirror and are not taken over"
    assert found(world)["MirrorMaker 2"].status is Status.OK
