"""What commands print with `--json`: one document, and the same facts as their text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from mirrorless.cli import apply, pause
from mirrorless.clusters.identity import Ends
from mirrorless.errors import ClusterUnavailable
from mirrorless.metadata.actions import GrowTopic
from mirrorless.metadata.apply import Applied
from mirrorless.metadata.sync_pass import SyncPass

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from mirrorless.clusters.target_state import TargetState
    from mirrorless.settings import Flow

FILE = """\
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
B->A.enabled = true
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    written = tmp_path / "mm2.properties"
    written.write_text(FILE)
    return str(written)


def document(command: click.Command, *arguments: str, status: int) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*arguments, "--json"])
    assert (result.exit_code, result.stderr) == (status, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_apply_lists_what_was_done_and_what_was_not(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def applied(flow: Flow) -> SyncPass:
        if flow.name == "B->A":
            raise ClusterUnavailable("no answer", cluster="A")
        done = Applied(GrowTopic(topic="A.t", partitions=3, reason="t has 3"), error=None)
        return SyncPass(
            ends=Ends(source_id="1", target_id="2"), applied=(done,), left_out=(), problems=(), notes=("n",)
        )

    monkeypatch.setattr(apply, "_applied", applied)
    action = {"action": "GrowTopic", "topic": "A.t", "partitions": 3, "reason": "t has 3", "error": None, "note": None}
    assert document(apply.apply, file, status=2) == {
        "flows": {
            "A->B": {"actions": [action], "problems": [], "notes": ["n"], "warnings": []},
            "B->A": {"error": "cluster A: no answer"},
        },
        "warnings": [],
    }


def test_pause_says_where_the_state_is_written(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def write(flow: Flow, state: TargetState) -> TargetState:
        written.append(f"{flow.name} {state}")
        return state

    monkeypatch.setattr(pause, "set_target_state", write)
    assert document(pause.pause, file, "--flow", "A->B", status=0) == {
        "flows": {"A->B": {"state": "PAUSED", "topic": "mm2-configs.A.internal", "cluster": "B"}}
    }
    assert written == ["A->B PAUSED"]
