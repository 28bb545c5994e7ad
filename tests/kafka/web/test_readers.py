"""What the page knows about real clusters, whichever process copies."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from openapi_schema_validator import OAS31Validator

from mirrorless.cli import root
from mirrorless.clusters.target_state import TargetState
from mirrorless.settings import load
from mirrorless.web.server import ServerTerms, served
from tests.support.pages import ask, wait_until_read
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.web.server import WebServer

TOKEN = "a-token-that-is-long-enough"  # noqa: S105 -- of this test alone
BEARER = {"Authorization": f"Bearer {TOKEN}"}
RECORDS = 120


@pytest.fixture(scope="module")
def world(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A flow that was copied completely, with a group in its middle."""
    made = World(source, target, tmp_path_factory.mktemp("web"))
    topic = made.topic(partitions=3, name="web-orders")
    fill(source, topic, (b"%d" % number for number in range(RECORDS)), partitions=3)
    made.copy_to_the_end()
    consumer = Consumer({"bootstrap.servers": source.bootstrap_servers, "group.id": "<script>alert(1)</script>"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 15)], asynchronous=False)
    consumer.close()
    made.write_settings(groups="<script>.*", **{"mirrorless.drill.reports": str(made.folder / "drills")})
    return made


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[WebServer]:
    settings = load(str(world.file))
    with served(settings, ServerTerms(token=TOKEN, actions=True), every_s=0.3) as made:
        yield made


def rows(server: WebServer, name: str) -> list[dict[str, Any]]:
    answer = ask(server, f"/api/{name}", **BEARER)
    found: list[dict[str, Any]] = answer.json()[name] if answer.status == 200 else []
    return found


def wait_for(server: WebServer, name: str, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the first row of a table that is as wanted."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for row in rows(server, name):
            if wanted(row):
                return row
        time.sleep(0.05)
    raise AssertionError(f"{rows(server, name)}")


def test_a_flow_that_was_copied_is_caught_up(server: WebServer, world: World) -> None:
    flow = wait_for(server, "flows", lambda row: row["started"] == 3 and row["read_ms"] and row["lag_s"] is not None)
    assert (flow["name"], flow["state"], flow["lag_records"], flow["topics"], flow["partitions"]) == (
        world.flow,
        "running",
        0,
        1,
        3,
    )
    assert flow["error"] is None
    topic = wait_for(server, "topics", lambda row: row["state"] == "caught up")
    assert (topic["topic"], topic["remote_topic"]) == ("web-orders", world.remote("web-orders"))
    states = {row["alias"]: row["state"] for row in rows(server, "clusters")}
    assert states == {world.source_alias: "available", world.target_alias: "available"}
    assert ask(server, "/readyz").status == 200


def test_partitions_of_a_topic(server: WebServer, world: World) -> None:
    path = f"/api/partitions?flow={world.flow.replace('>', '%3E')}&topic=web-orders"
    found = ask(server, path, **BEARER).json()["partitions"]
    assert [(row["partition"], row["next_offset"], row["source_end"]) for row in found] == [
        (number, RECORDS // 3, RECORDS // 3) for number in range(3)
    ]


def test_a_group_and_what_it_would_read_again(server: WebServer, world: World) -> None:
    group = wait_for(server, "groups", lambda row: row["lag_records"] is not None)
    assert (group["group"], group["partitions"], group["lag_records"]) == ("<script>alert(1)</script>", 1, 25)
    assert (group["untranslated"], group["read_again"]) == (0, 0)
    path = f"/api/positions?flow={world.flow.replace('>', '%3E')}&group=%3Cscript%3Ealert(1)%3C/script%3E"
    (position,) = ask(server, path, **BEARER).json()["positions"]
    assert (position["source_offset"], position["target_offset"], position["source_lag"]) == (15, 15, 25)


def test_every_answer_is_as_described(server: WebServer) -> None:
    described = ask(server, "/api/openapi.json").json()
    for name in (
        "snapshot",
        "clusters",
        "flows",
        "topics",
        "halted",
        "problems",
        "applications",
        "fences",
        "readings",
        "groups",
        "operations",
        "drills",
        "events",
        "settings",
    ):
        answer = ask(server, f"/api/{name}", **BEARER)
        responses = described["paths"][f"/api/{name}"]["get"]["responses"]
        schema = responses["200"]["content"]["application/json"]["schema"]
        OAS31Validator({**schema, "components": described["components"]}).validate(answer.json())


def test_a_drill_is_listed_with_its_report(server: WebServer, world: World) -> None:
    assert rows(server, "drills") == []
    drilled = CliRunner().invoke(root, ["drill", str(world.file), "--to", world.target_alias, "--json"])
    found = json.loads(drilled.stdout)["flows"][world.flow]
    row = wait_for(server, "drills", lambda one: one["began_ms"] == found["began_ms"])
    assert (row["flow"], row["status"], row["rpo_records"]) == (world.flow, found["status"], 0)
    assert row["rto_seconds"] == found["rto"]["seconds"]
    not_ok = [(one["status"], one["check"]) for one in found["checks"] if one["status"] != "ok"]
    assert [(one["status"], one["check"]) for one in row["problems"]] == not_ok
    assert ("warning", "without the source") in not_ok
    path = f"/api/drill?flow={world.flow.replace('>', '%3E')}&began_ms={row['began_ms']}"
    assert ask(server, path, **BEARER).json()["flows"] == {world.flow: found}
    page = ask(server, f"{path}&form=html", **BEARER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert b"<h1>mirrorless drill</h1>" in page.body
    assert ask(server, path).status == 401
    assert f"report of {world.flow}: {world.folder / 'drills'}/" in drilled.stderr
    wait_for(server, "events", lambda event: event["kind"] == "drill")


def test_records_that_are_not_copied_are_lag_until_they_are(server: WebServer, world: World) -> None:
    fill(world.source, "web-orders", [b"new"] * 9, partitions=3)
    topic = wait_for(server, "topics", lambda row: row["lag_records"] == 9)
    assert topic["state"] == "copying"
    world.copy_to_the_end()
    topic = wait_for(server, "topics", lambda row: row["lag_records"] == 0)
    assert topic["state"] == "caught up"


def _is(row: dict[str, Any], *, state: str) -> bool:
    return bool(row["state"] == state)


def test_a_flow_is_paused_and_resumed_with_the_token_only(server: WebServer, world: World) -> None:
    body = {"flow": world.flow}
    assert ask(server, "/api/flows/pause", method="POST", body=body).status == 401
    for action, state in (("pause", TargetState.PAUSED), ("resume", TargetState.STARTED)):
        answer = ask(server, f"/api/flows/{action}", method="POST", body=body, **BEARER)
        assert (answer.status, answer.json()) == (200, {"flow": world.flow, "state": state})
        shown = "paused" if action == "pause" else "running"
        wait_for(server, "flows", partial(_is, state=shown))
    texts = [event["text"] for event in rows(server, "events")]
    assert "pause was requested on the page" in texts


def test_a_fence_that_no_operation_explains_is_shown_until_it_is_removed(server: WebServer, world: World) -> None:
    (place,) = rows(server, "applications")
    assert (place["is_known"], place["cluster"]) == (True, None)
    assert place["text"] == "no operation has moved applications between these clusters"
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})

    def alter(kind: AlterConfigOpType) -> None:
        entry = ConfigEntry("max.message.bytes", "78", incremental_operation=kind)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "web-orders", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result()

    alter(AlterConfigOpType.SET)
    fence = wait_for(server, "fences", lambda row: row["operation"] is None)
    assert (fence["cluster"], fence["topics"], fence["count"]) == (world.source_alias, ["web-orders"], 1)
    assert "--delete-config max.message.bytes" in fence["fix"]["command"]
    assert wait_for(server, "problems", lambda row: row["kind"] == "unexplained fence")["level"] == "error"
    alter(AlterConfigOpType.DELETE)
    until = time.monotonic() + 30
    while rows(server, "fences"):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_gap_is_shown_with_the_command_that_fixes_it_until_it_is_fixed(server: WebServer, world: World) -> None:
    fill(world.source, "web-orders", [b"lost"] * 30, partitions=3)
    admin = AdminClient({"bootstrap.servers": world.source.bootstrap_servers})
    place = TopicPartition("web-orders", 1, RECORDS // 3 + 10)
    admin.delete_records([place])[place].result()
    world.copy()
    gap = wait_for(server, "halted", lambda row: row["gap"])
    assert (gap["topic"], gap["partition"], gap["gap"], gap["offset"]) == ("web-orders", 1, "RETENTION", 43)
    reset = f"mirrorless offsets reset {world.file} --flow '{world.flow}' --topic web-orders --partition 1"
    problem = wait_for(server, "problems", lambda row: row["kind"] == "gap")
    assert (problem["topic"], problem["level"]) == ("web-orders", "error")
    assert [fix["command"] for fix in problem["fixes"]] == ["mirrorless.on.gap=continue", reset]
    assert wait_for(server, "topics", lambda row: row["state"] == "halted")["halted"] == 1
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    world.copy_to_the_end()
    wait_for(server, "topics", lambda row: row["state"] == "caught up")
    assert rows(server, "halted") == []
    kinds = [event["kind"] for event in rows(server, "events")]
    assert kinds.index("gap") < kinds.index("resumed")


def test_a_cluster_that_does_not_answer_hides_nothing_of_the_other(world: World, tmp_path: Any) -> None:  # noqa: ANN401
    away = tmp_path / "away.properties"
    away.write_text(world.file.read_text().replace(world.source.bootstrap_servers, "127.0.0.1:1"))
    with served(load(str(away)), ServerTerms(), every_s=0.3) as server:
        wait_until_read(server)
        found = wait_for(server, "clusters", lambda row: row["state"] == "unavailable")
        assert found["alias"] == world.source_alias
        assert "127.0.0.1:1" in found["error"]
        flow = wait_for(server, "flows", lambda row: row["state"] == "running" and row["error"])
        assert "127.0.0.1:1" in flow["error"]
        values = ("topics", "partitions", "halted", "lag_records", "lag_s", "records_per_s", "catch_up_s")
        assert {name: flow[name] for name in values} == dict.fromkeys(values)
        problem = wait_for(server, "problems", lambda row: row["kind"] == "cluster unavailable")
        assert (problem["subject"], problem["rank"]) == (world.source_alias, 0)
        assert [row["level"] for row in rows(server, "problems")].count("error") == 1
        assert ask(server, "/readyz").status == 503
        assert ask(server, "/healthz").status == 200
