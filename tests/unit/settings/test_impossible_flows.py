"""Keys of flows that cannot exist are ignored with a warning, as MirrorMaker 2 ignores them silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import FlowNotEnabled
from mirrorless.settings import Settings, load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = cloud, source
cloud.bootstrap.servers = c:1
source.bootstrap.servers = s:1
source->cloud.enabled = true
"""


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "mm2.properties"
    path.write_text(text)
    return load(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("source->target.emit.heartbeats.enabled = false", "cluster target is not in clusters = cloud, source"),
        ("onprem->cloud.enabled = true", "cluster onprem is not in clusters = cloud, source"),
        ("cloud->cloud.enabled = true", "source and target are the same cluster; remove these keys"),
        ("source->target.transforms = mask", "cluster target is not in clusters = cloud, source"),
    ],
)
def test_they_are_ignored_with_a_warning(tmp_path: Path, line: str, reason: str) -> None:
    settings = loaded(tmp_path, BASE + line)

    assert settings.flows == loaded(tmp_path, BASE).flows
    (warning,) = loaded(tmp_path, BASE + line).warnings
    flow = line.partition(".")[0]
    assert f": keys of {flow} have no effect, nor in MirrorMaker 2: {reason}" in warning


def test_one_warning_for_each_flow(tmp_path: Path) -> None:
    text = "source->target.enabled = true\nsource->target.topics = x\nsource->target.transforms = mask\n"

    assert len(loaded(tmp_path, BASE + text).warnings) == 1


def test_without_another_flow_no_flow_is_enabled(tmp_path: Path) -> None:
    with pytest.raises(FlowNotEnabled):
        loaded(tmp_path, BASE.replace("source->cloud", "source->target"))


@pytest.mark.parametrize(
    "key",
    ["source->target.source.consumer.sasl.jaas.config", "source->x.ssl.keystore.key", "cloud->cloud.sasl.jaas.config"],
)
def test_their_secrets_are_not_shown(tmp_path: Path, key: str) -> None:
    (warning,) = loaded(tmp_path, f"{BASE}{key} = swordfish").warnings

    assert f"{key}=***: " in warning
    assert "swordfish" not in warning


@pytest.mark.parametrize(
    ("servers", "address"),
    [
        ("c:1", "c:1"),
        ("x:1, C:1", "c:1"),
        ("SASL_SSL://c:1", "c:1"),
        ("c:2", None),
        ("${env:SERVERS}", None),
    ],
)
def test_two_aliases_with_the_same_address_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: str, address: str | None
) -> None:
    monkeypatch.setenv("SERVERS", "c:1")
    text = BASE.replace("clusters = cloud, source", "clusters = cloud, source, old")
    settings = loaded(tmp_path, f"{text}old.bootstrap.servers = {servers}\nold->cloud.enabled = true\n")

    found = [line for line in settings.warnings if "have the same address" in line]
    assert [f"aliases cloud and old have the same address {address};" in line for line in found] == (
        [True] if address else []
    )
