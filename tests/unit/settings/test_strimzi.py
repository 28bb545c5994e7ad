"""Strimzi's resources are read as Strimzi itself makes connectors of them; secrets stay references."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import load
from mirrorless.settings.load import understand
from mirrorless.settings.references import resolve

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  target:
    alias: B
    bootstrapServers: b:1
    offsetStorageTopic: offsets
  mirrors:
    - source:
        alias: A
        bootstrapServers: a:1
        authentication:
          type: plain
          username: u
          passwordSecret: {secretName: login, password: pass}
      sourceConnector:
        config:
          topics: orders
"""
LOGIN = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\ndata:\n  pass: c3dvcmRmaXNo\n"


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load(*write(folder, text))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_the_connector_has_the_name_and_the_offsets_topic_that_a_takeover_needs(tmp_path: Path) -> None:
    flow = load(*write(tmp_path, SPEC)).flow("A->B")

    assert (flow.connector_name, flow.offset_storage_topic) == ("A->B.MirrorSourceConnector", "offsets")


def test_a_secret_beside_it_is_referred_to_and_resolved_when_it_is_needed(tmp_path: Path) -> None:
    spec, secret = write(tmp_path, SPEC, LOGIN)
    settings = load(spec, secret)
    login = settings.flow("A->B").source.client["sasl.jaas.config"]

    assert login.endswith(f'username="u" password="${{secret:{secret}:login/pass}}";')
    assert resolve(login, key="sasl.jaas.config").endswith('password="swordfish";')
    assert "swordfish" not in repr(understand(spec, secret))
    assert settings.warnings == ()


def test_the_same_in_one_file_and_as_kubectl_prints_it(tmp_path: Path) -> None:
    (path,) = write(tmp_path, f"{LOGIN}---{SPEC}")
    client = load(path).flow("A->B").source.client

    assert f"${{secret:{path}:login/pass}}" in client["sasl.jaas.config"]


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("kind: Secret\nmetadata: {name: other}\n", "has no Secret login with the key pass"),
        (LOGIN.replace("c3dvcmRmaXNo", "=swordfish="), "Secret login: pass is not text in base64"),
        ("swordfish: [", "is not YAML at line 1"),
    ],
)
def test_a_secret_that_cannot_be_read(tmp_path: Path, secret: str, reason: str) -> None:
    (path,) = write(tmp_path, secret)
    with pytest.raises(ConfigurationError) as raised:
        resolve(f"${{secret:{path}:login/pass}}", key="x")

    assert reason in str(raised.value)
    assert "swordfish" not in str(raised.value)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("bootstrapServers: a:1", "", "spec.mirrors[0].source.bootstrapServers: is missing"),
        ("alias: A", "alias: A B", "source.cluster.alias=A B: must be one word without -> and commas"),
        ("type: plain", "type: kerberos", "spec.mirrors[0].source.authentication.type: must be one of plain, "),
        (
            "{secretName: login, password: pass}",
            "swordfish",
            "authentication.passwordSecret: needs secretName and password; a secret itself is not accepted here",
        ),
        ("topics: orders", "topics: [orders]", "sourceConnector.config.topics: must be a string, a number, true or"),
        ("topics: orders", "tasks.max: many", "spec.mirrors[0].sourceConnector.config.tasks.max"),
        ("  mirrors:", "  mirrors: []\n  x:", "spec.mirrors: is missing; list the sources to replicate"),
        ("spec:", "spec: [", "is not YAML at line "),
        ("spec:", "spec: *swordfish", "is not YAML at line "),
        ("kind: KafkaMirrorMaker2", "kind: SecretList", "has no resource of kind KafkaMirrorMaker2 or KafkaConnector"),
        (
            "topics: orders",
            "topics: orders\n          topics: a",
            "topics: lines 21 and 22 set this key",
        ),
    ],
)
def test_one_line_with_the_path(tmp_path: Path, before: str, after: str, line: str) -> None:
    text = SPEC.replace(before, after)
    assert text != SPEC
    told = refusal(tmp_path, text)
    assert line in told
    assert "swordfish" not in told


def test_what_aliases_expand_to_is_limited(tmp_path: Path) -> None:
    bomb = "\n".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 8))
    told = refusal(tmp_path, SPEC + "\nx:\n  l0: &l0 [a, b]\n" + bomb)

    assert told.endswith("is not YAML that can be read: too deep or too large")


def test_a_flow_without_source_connector_is_left_out(tmp_path: Path) -> None:
    told = refusal(tmp_path, SPEC.replace("sourceConnector", "checkpointConnector"))

    assert "MirrorCheckpointConnector does not copy records; add the MirrorSourceConnector of A->B" in told


def test_a_source_that_is_in_no_cluster(tmp_path: Path) -> None:
    text = "kind: KafkaMirrorMaker2\nspec:\n  connectCluster: b\n  clusters: [{alias: b, bootstrapServers: 'b:1'}]\n"
    told = refusal(tmp_path, text + "  mirrors: [{sourceCluster: a, sourceConnector: {}}]\n")

    assert told.endswith("spec.mirrors[0].sourceCluster=a: names no cluster of spec.clusters")


def test_errors_of_values_have_the_path(tmp_path: Path) -> None:
    told = refusal(tmp_path, SPEC.replace("topics: orders", "topics: '('"))

    assert re.search(
        r"0\.yaml:\d+: spec\.mirrors\[0\]\.sourceConnector\.config\.topics=\(: pattern '\(' does not", told
    )


def test_a_value_is_its_text(tmp_path: Path) -> None:
    config = "topics: 0123\n          sync.topic.acls.enabled: False\n          groups: null\n          tasks.max: 0x10"
    told = refusal(tmp_path, SPEC.replace("topics: orders", config))
    assert "tasks.max=0x10: must be a whole number" in told

    flow = load(*write(tmp_path, SPEC.replace("topics: orders", config.replace("0x10", "7")))).flow("A->B")
    assert (flow.topics, flow.sync_topic_acls_enabled, flow.groups, flow.tasks_max) == (("0123",), False, (".*",), 7)


def test_the_same_as_json(tmp_path: Path) -> None:
    path = tmp_path / "resource.json"
    mirror = {"source": {"alias": "A", "bootstrapServers": "a:1"}, "sourceConnector": {"tasksMax": 2}}
    spec = {"target": {"alias": "B", "bootstrapServers": "b:1"}, "mirrors": [mirror]}
    path.write_text(json.dumps({"kind": "KafkaMirrorMaker2", "metadata": {"name": "m"}, "spec": spec}))

    assert load(path).flow("A->B").tasks_max == 2


def test_a_character_that_is_escaped_as_two_halves_is_one(tmp_path: Path) -> None:
    """As in JSON, which YAML is a superset of."""
    (path,) = write(tmp_path, SPEC.replace("topics: orders", r'topics: "\ud83d\ude00"'))
    assert load(str(path)).flows[0].topics == ("\U0001f600",)


def test_half_of_a_character_is_an_error_of_one_line(tmp_path: Path) -> None:
    text = SPEC.replace("alias: B", r'alias: "\ud800"')
    assert refusal(tmp_path, text).endswith("line 8: has half of a character")
