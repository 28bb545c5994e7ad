"""`--verbose` shows the client libraries' logs on stderr (tests/unit/test_client_logs.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from mirrorless import client_logs
from mirrorless.cli import root

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("command", ["run", "doctor", "verify", "plan", "apply"])
def test_commands_that_connect_have_it(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(client_logs, "show", lambda: shown.append(command))
    missing = str(tmp_path / "missing.properties")
    CliRunner().invoke(root, [command, missing])
    assert not shown
    CliRunner().invoke(root, [command, "--verbose", missing])
    assert shown == [command]
