"""The flows and settings read from files are those that MirrorMaker 2's own classes read; differences are listed.

One Java process reads all files of `tests/unit/settings/files` that MirrorMaker 2 or Connect can read: mm2.properties,
and connectors in JSON and properties.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mirrorless.settings.load import understand
from mirrorless.settings.model import FLOW_KEYS, Flow
from mirrorless.settings.patterns import split_list
from mirrorless.settings.properties import parse
from tests.support.peer import run_java
from tests.support.understood import cases, files_of

PROGRAM = Path(__file__).with_name("Understood.java")
PROPERTIES = [case for case in cases() if case.name.startswith("properties-")]
CONNECTORS = [case for case in cases() if case.name.startswith(("json-", "standalone-"))]

# Differences on purpose: what Java gets instead of the file, so that both read the same.
# - Java reads a comment after a value as a part of the value.
# - Java refuses an empty number; here it is not set.
COMMENT = re.compile(r"[ \t]+(?:#|//).*$", re.MULTILINE)
PASSWORDS = "/run/secrets/kafka.properties"
# The names that earlier releases had are no settings of MirrorMaker 2 4.3.
RENAMED = {"properties-first-releases": {"topics.exclude": "topics.blacklist", "groups.exclude": "groups.blacklist"}}
LISTS = ("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude")


def connectors_of(case: Path) -> list[dict[str, Any]]:
    """The settings of a case's connectors, as Connect gets them."""
    found: list[dict[str, Any]] = []
    for path in files_of(case):
        if path.suffix == ".properties":
            found.append({key: entry.value for key, entry in parse(path.read_text()).items()})
            continue
        value = json.loads(path.read_text())
        if isinstance(value, list):
            parts = value
        elif "connector.class" in value or "config" in value:
            parts = [value]
        else:
            parts = [one["info"] for one in value.values()]
        found.extend(part.get("config", part) for part in parts)
    found = [one for one in found if "mirror" in one.get("connector.class", "")]
    return [{key: value for key, value in one.items() if value != ""} for one in found]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("files")
    asked: list[tuple[str, str, object]] = []
    (folder / "password").write_text("password = x\n")
    for case in PROPERTIES:
        text = (case / "mm2.properties").read_text().replace(PASSWORDS, str(folder / "password"))
        path = folder / case.name
        path.write_text(COMMENT.sub("", text) if "comments" in case.name else text)
        asked.append((case.name, "mm2", str(path)))
    for case in CONNECTORS:
        asked += [(f"{case.name} {number}", "connector", one) for number, one in enumerate(connectors_of(case))]
    (folder / "asked.json").write_text(json.dumps(asked))
    found: dict[str, Any] = json.loads(run_java(PROGRAM, str(folder / "asked.json")))
    return found


def text_of(flow: Flow, key: str) -> str | None:
    value = getattr(flow, FLOW_KEYS[key])
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def alike(key: str, ours: str | None, theirs: str | None) -> bool:
    if key == "config.properties.exclude":  # the default's dots are not escaped everywhere in Java
        ours, theirs = (text.replace("\\", "") for text in (ours or "", theirs or ""))
    if key in LISTS:
        return split_list(ours or "") == split_list(theirs or "")
    if key == "replication.policy.class":
        return (ours or "").rpartition(".")[2] == (theirs or "").rpartition(".")[2]
    return ours == theirs


def differences(flow: Flow, theirs: dict[str, Any], case: str) -> list[str]:
    renamed = RENAMED.get(case, {})
    found = []
    for key in FLOW_KEYS:
        name = renamed.get(key, key)
        if name in theirs and not alike(key, text_of(flow, key), theirs[name]):
            found.append(f"{key}: {text_of(flow, key)} here, {theirs[name]} in Java")
    for side, cluster in (("source", flow.source), ("target", flow.target)):
        if split_list(cluster.bootstrap_servers) != split_list(theirs[f"{side} servers"] or ""):
            found.append(f"{side}: {cluster.bootstrap_servers} here, {theirs[f'{side} servers']} in Java")
        if cluster.client.get("security.protocol") != theirs[f"{side} protocol"]:
            found.append(
                f"{side}: {cluster.client.get('security.protocol')} here, {theirs[f'{side} protocol']} in Java"
            )
    return found


@pytest.mark.parametrize("case", PROPERTIES, ids=lambda case: case.name)
def test_the_flows_of_a_file(case: Path, java: dict[str, Any]) -> None:
    settings = understand(*files_of(case)).settings
    assert settings is not None
    enabled = {name: values for name, values in java[case.name].items() if values["enabled"].lower() == "true"}

    assert sorted(flow.name for flow in settings.flows) == sorted(enabled)
    for flow in settings.flows:
        assert differences(flow, enabled[flow.name], case.name) == []
        assert flow.offset_storage_topic == enabled[flow.name]["offset.storage.topic"]
    beats = {name for name, values in java[case.name].items() if values["emit.heartbeats.enabled"] == "true"}
    assert {pair.name for pair in settings.heartbeats} == beats


def _is_of(kind: str, key: str) -> bool:
    """Whether a connector of a class reads a setting."""
    if kind == "MirrorSource":
        return not key.startswith(("groups", "emit.checkpoints", "emit.heartbeats", "sync.group"))
    if kind == "MirrorCheckpoint":
        return key.startswith(("groups", "emit.checkpoints", "sync.group", "checkpoints"))
    return key.startswith(("emit.heartbeats", "heartbeats.topic"))


@pytest.mark.parametrize("case", CONNECTORS, ids=lambda case: case.name)
def test_the_settings_of_connectors(case: Path, java: dict[str, Any]) -> None:
    settings = understand(*files_of(case)).settings
    assert settings is not None
    for number, connector in enumerate(connectors_of(case)):
        ((kind, theirs),) = java[f"{case.name} {number}"].items()
        flow = settings.flow(f"{connector['source.cluster.alias']}->{connector['target.cluster.alias']}")
        compared = {key: value for key, value in theirs.items() if " " in key or _is_of(kind, key)}
        if kind == "MirrorHeartbeat":
            assert flow.emit_heartbeats_enabled
        assert differences(flow, compared, case.name) == []
