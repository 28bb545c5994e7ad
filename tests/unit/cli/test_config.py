"""`mirrorless config` says what a file means, in text and in JSON, and its exit status says whether it can be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from mirrorless.cli.config import group

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
A -> B.topics = orders
Tasks.Max = 4
B.ssl.key.password = swordfish
B.producer.client.id = me
offset.flush.interval.ms = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def config(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments)


def row(output: str, key: str) -> list[str]:
    return next(line.split() for line in output.splitlines() if line.split()[:1] == [key])


def test_check_shows_flows_and_where_each_setting_comes_from(file: Path) -> None:
    result = config("check", str(file))

    assert result.exit_code == 0
    assert result.output.startswith("flow A->B\n")
    assert row(result.output, "topics") == ["topics", "orders", f"{file}:5", "(A->B.topics)"]
    assert row(result.output, "tasks.max") == ["tasks.max", "4", f"{file}:6", "(Tasks.Max)"]
    assert "replication.factor" not in result.output
    assert " settings with their defaults: --all shows them\n" in result.output
    complete = config("check", "--all", str(file)).output
    assert row(complete, "replication.factor") == ["replication.factor", "2", "default"]
    assert row(result.output, "producer.client.id")[1:3] == ["me", f"{file}:8"]
    assert f"warning: {file}:6: Tasks.Max=4: read as tasks.max" in result.output.splitlines()
    assert f"note: {file}:9: offset.flush.interval.ms=5: " in result.output
    assert result.output.endswith("1 flow, 0 errors, 1 warning\n")


def test_check_shows_no_secret(file: Path) -> None:
    for arguments in ((), ("--json",)):
        result = config("check", *arguments, str(file))
        assert "swordfish" not in result.output
        assert "ssl.key.password" in result.output


def test_check_as_json(file: Path) -> None:
    found: dict[str, Any] = json.loads(config("check", "--json", str(file)).output)

    (flow,) = found["flows"]
    settings = {one["key"]: one for one in flow["settings"]}
    assert settings["topics"] == {
        "key": "topics",
        "value": "orders",
        "origin": f"{file}:5",
        "written": "A->B.topics",
    }
    assert flow["target"]["alias"] == "B"
    assert (len(found["warnings"]), found["errors"]) == (1, [])


def test_check_names_every_error_and_fails(file: Path) -> None:
    file.write_text(
        FILE
        + "replication.factor = many\nA->B.groups = (\nA->C.topics = x\nB.bootstrap.servers = b\nmirrorless.x = 1\n"
    )
    result = config("check", str(file))

    errors = [line for line in result.output.splitlines() if line.startswith("error: ")]
    assert result.exit_code == 1
    assert len(errors) == 4
    assert all(line.startswith(f"error: {file}:") for line in errors)
    assert json.loads(config("check", "--json", str(file)).output)["errors"] == [
        line.removeprefix("error: ") for line in errors
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("replication.policy.class = my.Policy", "Java classes are not loaded"),
        ("A.security.protocol = TLS", "A.security.protocol=TLS: TLS is not supported"),
        (
            "A->B.source.consumer.interceptor.classes = x",
            "A.consumer.interceptor.classes: this setting is not supported",
        ),
    ],
)
def test_check_names_what_would_be_refused_before_the_first_connection(file: Path, line: str, error: str) -> None:
    file.write_text(FILE + line)
    result = config("check", str(file))

    assert result.exit_code == 1
    assert error in result.output


def test_check_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = config("check", str(tmp_path / "none"))

    assert result.exit_code == 1
    assert "none: cannot be read: No such file or directory" in result.output
    assert "Traceback" not in result.output


def test_explain_says_type_default_and_meaning() -> None:
    lines = config("explain", "replication.factor").output.splitlines()

    assert lines[:3] == ["replication.factor", "  type     whole number, 1 or more, or -1", "  default  2"]
    assert "Replicas of new remote topics" in lines[-1]
    assert json.loads(config("explain", "--json", "replication.factor").output)["default"] == "2"


def test_explain_takes_any_spelling() -> None:
    cases: list[tuple[str, str]] = [
        ("A->B.topics", "topics"),
        ("A -> B.topics", "topics"),
        ("topics.blacklist", "topics.exclude"),
        ("Replication.Factor", "replication.factor"),
        ("B.offset.storage.topic", "offset.storage.topic"),
        ("A.consumer.auto.offset.reset", "<source>.consumer.auto.offset.reset"),
        ("A->B.source.consumer.auto.offset.reset", "<source>.consumer.auto.offset.reset"),
        ("A.bootstrap.servers", "<alias>.bootstrap.servers"),
        ("A->B.enabled", "<source>-><target>.enabled"),
        ("A.security.protocol", "security.protocol"),
        ("A->B.target.producer.client.id", "client.id"),
        ("A.consumer.fetch.max.bytes", "fetch.max.bytes"),
        ("plugin.path", "plugin.path"),
        ("A->B.transforms", "transforms"),
    ]
    assert [(written, config("explain", written).output.splitlines()[0]) for written, _ in cases] == cases


def test_explain_of_an_unknown_key_names_the_nearest() -> None:
    result = config("explain", "replicaton.factor")

    assert result.exit_code == 1
    assert "did you mean replication.factor?" in str(result.exception)


def test_explain_without_a_key_lists_all() -> None:
    listed = json.loads(config("explain", "--json").output)

    assert {"clusters", "topics", "offset.storage.topic", "security.protocol"} <= {one["key"] for one in listed}
    assert config("explain").exit_code == 0


BOTH_WAYS = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
B->A.enabled = true
replication.policy.class = IdentityReplicationPolicy
"""


def test_check_refuses_a_topic_that_both_directions_name(file: Path) -> None:
    file.write_text(BOTH_WAYS + "topics = orders\n")
    result = config("check", str(file))

    assert result.exit_code == 1
    for one, other in (("A->B", "B->A"), ("B->A", "A->B")):
        assert f"error: flow {one}: topic orders would be replicated in a loop by {one}, {other}, " in result.output


@pytest.mark.parametrize(
    ("lines", "warnings"),
    [("", 1), ("B->A.topics = b-.*, c", 1), ("A->B.topics = a-.*\nB->A.topics = b-.*", 0)],
)
def test_check_warns_of_patterns_that_both_directions_may_match(file: Path, lines: str, *, warnings: int) -> None:
    file.write_text(BOTH_WAYS + lines)
    result = config("check", str(file))

    assert result.exit_code == (1 if ", c" in lines else 0)
    told = [line for line in result.output.splitlines() if line.startswith("warning: ") and "in a loop" in line]
    assert [line.partition(": these flows")[0] for line in told] == [f"warning: {file}: A->B, B->A"] * warnings
