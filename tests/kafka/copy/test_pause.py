"""`mirrorless pause`, `resume` and `status`: Connect's record in the configs topic, obeyed by whoever copies."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic

from mirrorless.cli import root
from mirrorless.clusters.target_state import TargetState, TargetStates, key
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.spark.lease_source import LeaseReader
from mirrorless.errors import FlowPaused
from mirrorless.heartbeats import Heartbeats
from mirrorless.progress.records import CONNECTOR
from tests.support.world import fill, read

if TYPE_CHECKING:
    from click.testing import Result

    from tests.support.world import World


def call(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def state_of(world: World) -> dict[str, Any]:
    result = call("status", str(world.file), "--json")
    fields: dict[str, Any] = json.loads(result.stdout)["flows"][world.flow]
    return fields


def begun(world: World) -> tuple[LeaseReader, Control]:
    """Plan a first lease."""
    world.topic()
    world.discover()
    control = Control(str(world.folder))
    reader = LeaseReader(world.place(bounded=False), control)
    assert len(reader.partitions({"lease": 0}, {"lease": 1})) == 1
    return reader, control


def test_a_paused_flow_has_no_leases_until_it_is_resumed(world: World) -> None:
    reader, control = begun(world)

    topic = f"mm2-configs.{world.source_alias}.internal"
    result = call("pause", str(world.file))
    assert result.output == f"{world.flow}: PAUSED ({topic} on {world.target_alias})\n"
    assert reader.partitions({"lease": 1}, {"lease": 2}) == []
    assert control.complaint() == (
        f"flow {world.flow} is paused, according to topic {topic}; run `mirrorless resume FILE --flow '{world.flow}'` "
        "to resume replication"
    )
    assert [seen.key for seen in read(world.target, topic)[0]] == [key(CONNECTOR)]

    assert call("resume", str(world.file), "--flow", world.flow).exit_code == 0
    assert len(reader.partitions({"lease": 2}, {"lease": 3})) == 1
    assert control.complaint() == ""
    reader.stop()


def test_a_flow_that_the_file_pauses_stays_paused_whatever_the_record_says(world: World) -> None:
    reader, control = begun(world)
    assert call("resume", str(world.file)).exit_code == 0
    world.write_settings(**{"mirrorless.paused": "true"})

    assert reader.partitions({"lease": 1}, {"lease": 2}) == []
    assert "is paused by the configuration file" in control.complaint()
    result = call("resume", str(world.file))
    assert (result.exit_code, "remove mirrorless.paused" in result.output) == (2, True)
    assert state_of(world)["state"] == "paused"
    world.write_settings(**{"mirrorless.paused": "false"})
    assert len(reader.partitions({"lease": 2}, {"lease": 3})) == 1
    reader.stop()


def test_a_copy_with_an_end_says_that_it_is_paused(world: World) -> None:
    world.topic()
    world.discover()
    call("pause", str(world.file))
    reader = LeaseReader(world.place(bounded=True), Control(None))
    with pytest.raises(FlowPaused, match="is paused, according to topic mm2-configs"):
        reader.partitions({"lease": 0}, {"lease": 1})
    reader.stop()


def test_a_flow_that_the_file_switches_off_has_no_leases(world: World) -> None:
    reader, control = begun(world)
    back = f"{world.target_alias}->{world.source_alias}"
    world.write_settings(**{f"{world.flow}.enabled": "false", f"{back}.enabled": "true"})
    assert reader.partitions({"lease": 1}, {"lease": 2}) == []
    assert f"{world.flow}.enabled" in control.complaint()
    assert "this flow is not enabled" in control.complaint()

    world.write_settings(**{f"{world.flow}.enabled": "yes please"})  # a mistake stops nothing
    assert len(reader.partitions({"lease": 2}, {"lease": 3})) == 1
    assert "yes please" in control.complaint()
    world.write_settings(**{f"{world.flow}.enabled": "true"})
    assert len(reader.partitions({"lease": 3}, {"lease": 4})) == 1
    assert control.complaint() == ""
    reader.stop()


def test_status_tells_lag_pause_and_heartbeats(world: World) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % number for number in range(100)), partitions=2)
    before = state_of(world)
    assert before == {
        "state": "running",
        "engine": {"chosen": "auto", "reason": "mirrorless.engine is auto", "runs": []},
        "topics": 1,
        "partitions": 2,
        "begun": 0,
        "lag_records": 100,
        "lag_at_least": 100,
        "last_heartbeat_ms": None,
        "halted": [],
        "lacking": [],
        "created_again": [],
        "gone": [],
        "unknown": [],
        "problems": [],
        "fences": [],
        "skipped_share": None,
    }
    world.copy()
    fill(world.source, topic, (b"%d" % number for number in range(7)))
    assert (state_of(world)["lag_records"], state_of(world)["begun"]) == (7, 2)

    flow = world.place().load()
    call("pause", str(world.file))
    assert state_of(world)["state"] == "paused"
    heading, values = (
        [cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")]
        for line in call("status", str(world.file)).stdout.splitlines()
        if world.flow in line or "heartbeat" in line
    )
    shown = dict(zip(heading, values, strict=True))
    assert (shown["flow"], shown["state"], shown["lag"], shown["halted"]) == (world.flow, "paused", "7", "0")

    back = flow.model_copy(update={"source": flow.target, "target": flow.source})
    world.write_settings(**{"heartbeats.replication.enabled": "true"})
    Heartbeats(back).beat([back], timestamp_ms=1_700_000_000_000)
    call("resume", str(world.file))
    world.copy()
    # Not equal: all tests share that topic of the source.
    assert state_of(world)["last_heartbeat_ms"] >= 1_700_000_000_000


def test_status_names_what_is_halted_at_a_gap(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(50)))
    world.copy()
    _create_again(world, topic)
    fill(world.source, topic, (b"new" for _ in range(5)))
    (report,) = world.copy()
    assert (report.state, report.lag_records) == ("halted", 5)  # of the new topic nothing was copied
    assert state_of(world)["lag_records"] == 5
    result = call("status", str(world.file))
    assert result.exit_code == 1
    assert f"{topic} was deleted and recreated on {world.source_alias} " in result.stdout
    (halted,) = state_of(world)["halted"]
    assert (halted["topic"], halted["gap"]) == (topic, "the source topic was created again")


def test_what_status_cannot_tell_is_one_line(world: World) -> None:
    world.topic()
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": world.source.bootstrap_servers})
    result = call("status", str(world.file))
    assert result.exit_code == 2
    (line,) = result.output.splitlines()
    assert line.startswith(f"{world.flow}: flow {world.flow}: source and target are the same cluster (id ")


def _create_again(world: World, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    while topic in admin.list_topics(timeout=60).topics:
        time.sleep(0.1)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()


def test_a_pause_is_kept_under_the_connector_s_own_name(world: World) -> None:
    world.topic()
    plain = world.place().load()
    world.write_settings(**{"mirrorless.connector.name": "orders"})
    named = world.place().load()
    TargetStates(named).write(TargetState.PAUSED)
    (seen,) = read(world.target, f"mm2-configs.{world.source_alias}.internal")[0]
    assert seen.key == key("orders")
    assert TargetStates(named).read() is TargetState.PAUSED
    assert TargetStates(plain).read() is TargetState.STARTED
