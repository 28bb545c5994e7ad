"""A configuration in any form becomes one file with the same flows; converting that again changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from mirrorless.cli.config import group
from mirrorless.settings.converting import MARK, _escaped, _meaning, is_plain_secret, to_json, to_properties
from mirrorless.settings.load import understand
from mirrorless.settings.properties import parse
from tests.support.understood import cases, files_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("to", [to_properties, to_json])
def test_the_same_flows_and_the_same_text_again(subtests: pytest.Subtests, tmp_path: Path, to: object) -> None:
    convert = to_properties if to is to_properties else to_json
    for case in cases():
        with subtests.test(case.name):
            understood = understand(*files_of(case))
            converted = convert(understood)
            path = tmp_path / case.name
            path.write_text(converted.text)
            again = understand(path)

            assert _meaning(again) == _meaning(understood)
            assert convert(again).text == converted.text
            assert again.errors == ()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
        'A.sasl.jaas.config = M required username="u" password="swordfish";\n'
        "B.ssl.key.password = swordfish\nB.ssl.keystore.password = ${file:/x:y}\n"
        "A->B.enabled = true\nTopics = orders # all\nA->C.topics = x\nwibble = 1\nkey.converter = x\n"
        "B->A.emit.heartbeats.interval.seconds = 7\nA.consumer.fetch.max.bytes = 5\n"
    )
    return path


def convert(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, ["convert", *map(str, arguments)])


def test_it_is_clean_and_names_origins(file: Path) -> None:
    result = convert(file)

    assert result.exit_code == 0
    assert result.stdout == (
        f"{MARK}\nclusters = A, B\n\n# {file}:2\nA.bootstrap.servers = a:1\n# {file}:4\n"
        "A.sasl.jaas.config = ${env:A_SASL_JAAS_CONFIG}\n"
        f"# {file}:13\nA.consumer.fetch.max.bytes = 5\n\n# {file}:3\nB.bootstrap.servers = b:1\n# {file}:5\n"
        "B.ssl.key.password = ${env:B_SSL_KEY_PASSWORD}\n"
        f"# {file}:6\nB.ssl.keystore.password = ${{file:/x:y}}\n\n# {file}:8 Topics\ntopics = orders\n\n"
        f"A->B.enabled = true\n\n# {file}:12\nB->A.emit.heartbeats.interval.seconds = 7\n"
    )
    assert "set the environment variable A_SASL_JAAS_CONFIG to it" in result.stderr
    assert "swordfish" not in result.output


def test_as_json_without_secrets(file: Path) -> None:
    result = convert(file, "--format", "json")

    found = json.loads(result.stdout)
    assert [one["name"] for one in found] == [
        "MirrorSourceConnector",
        "A->B.checkpoint",
        "A->B.heartbeat",
        "B->A.heartbeat",
    ]
    assert found[0]["config"]["source.cluster.sasl.jaas.config"] == "${env:A_SASL_JAAS_CONFIG}"
    assert "swordfish" not in result.output


def test_errors_are_not_converted(file: Path) -> None:
    file.write_text(file.read_text() + "tasks.max = many\n")
    result = convert(file)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "tasks.max=many: must be a whole number" in result.stderr


def test_what_is_a_secret() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("A.ssl.key.password", "x", True),
        ("A.ssl.key.password", "${env:X}", False),
        ("A.ssl.key.password", "${env:X}x", True),
        ("A.ssl.key.password", "", False),
        ("A.sasl.jaas.config", "software.amazon.msk.auth.iam.IAMLoginModule required;", False),
        ("A.sasl.jaas.config", 'MLoginModule required username="u" password="${env:X}";', False),
        ("A.sasl.jaas.config", 'MLoginModule required username="${env:U}" password="x";', True),
        ("A.sasl.jaas.config", "MLoginModule required username=u password=x;", True),
        ("A.sasl.jaas.config", "MLoginModule required username= ${env:U}swordfish", True),
        ("A.sasl.jaas.config", 'MLoginModule required clientId="u" clientSecret="x";', True),
        ("A.sasl.jaas.config", "swordfish", True),
        ("A.sasl.jaas.config", 'MLoginModule required password swordfish" x="";', True),
        ("A.sasl.jaas.config", 'MLoginModule required username="u"swordfish;', True),
        ("A.ssl.keystore.location", "/x", False),
        ("A.client.id", "password=x", True),
    ]
    assert [(key, value, is_plain_secret(key, value)) for key, value, _ in cases] == cases


@pytest.mark.parametrize("value", [r"a\.b", " a", "a\tb\n", "\u00e9\U0001f600", "a # b", "#", "a: b = c"])
def test_values_are_escaped_as_java_reads_them(value: str) -> None:
    assert parse(f"key = {_escaped(value)}")["key"].value == value
