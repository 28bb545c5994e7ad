"""An archive in a configuration: flows into it, and flows from it while it is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.settings.archives import SERVED_VARIABLE
from mirrorless.settings.load import load, understand

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TEXT = """
clusters = primary, vault, restored
primary.bootstrap.servers = one:9092
restored.bootstrap.servers = two:9092
vault.archive = s3://bucket/prefix
primary->vault.enabled = true
primary->vault.topics = orders
vault->restored.enabled = true
"""


def file(folder: Path, text: str = TEXT) -> str:
    path = folder / "mm2.properties"
    path.write_text(text)
    return str(path)


def test_flows_into_an_archive_are_not_among_the_flows(tmp_path: Path) -> None:
    settings = load(file(tmp_path))
    assert settings.flows == ()
    assert [one.name for one in settings.archived] == ["primary->vault"]
    assert settings.archives == (("vault", "s3://bucket/prefix"),)
    assert [one.alias for one in settings.clusters] == ["primary", "restored"]
    assert settings.archived[0].topics == ("orders",)
    assert not understand(file(tmp_path)).warnings


def test_a_flow_from_an_archive_is_there_while_it_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVED_VARIABLE, "vault=127.0.0.1:4000")
    (flow,) = load(file(tmp_path)).flows
    assert (flow.name, flow.source.bootstrap_servers) == ("vault->restored", "127.0.0.1:4000")
    assert (flow.offset_syncs_topic_location, flow.sync_group_offsets_enabled) == ("target", True)
    text = f"{TEXT}sync.group.offsets.enabled = false\n"
    assert not load(file(tmp_path, text)).flows[0].sync_group_offsets_enabled
