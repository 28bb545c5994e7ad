"""The log says which version of the configuration a function works with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mirrorless.functions import environment as variables
from mirrorless.functions import invocation
from mirrorless.functions.invocation import FunctionHandler

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


class Sink:
    """Remembers the versions that are logged."""

    def __init__(self) -> None:
        self.versions: list[object] = []

    def tell(self, _level: str, _text: str, **fields: object) -> None:
        self.versions.append(fields["configuration_version"])


def test_each_version_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n")
    monkeypatch.setattr(variables, "_of_process", lambda model: variables.parse(model, os.environ))
    monkeypatch.setenv("MIRRORLESS_CONFIG", str(file))
    monkeypatch.setenv("MIRRORLESS_FLOW", "A->B")
    monkeypatch.setattr(invocation, "_FRESH_S", 0.0)
    handler = FunctionHandler("heartbeat", lambda _: {})
    sink: Any = Sink()
    for version in (None, "v1", "v1", "v2", None):
        monkeypatch.setattr(invocation, "version_of", lambda _location, found=version: found)
        handler._load(sink)
    assert sink.versions == ["v1", "v2"]
