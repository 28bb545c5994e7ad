"""Settings that cancel each other out, with which MirrorMaker 2 does not start, are told; the flow runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
NO_CHECKPOINTS = (
    "A->B: emit.offset-syncs.enabled=false: no offset can be translated, so no checkpoints are written; "
    "set emit.checkpoints.enabled=false too if that is meant"
)


def no_effect(reason: str) -> str:
    return f"A->B: sync.group.offsets.enabled=true commits checkpoints: no effect with {reason}"


@pytest.mark.parametrize(
    ("lines", "warnings"),
    [
        ("sync.group.offsets.enabled=true", []),
        ("emit.checkpoints.enabled=false", []),
        ("emit.checkpoints.enabled=false\nemit.offset-syncs.enabled=false", []),
        ("emit.offset-syncs.enabled=false", [NO_CHECKPOINTS]),
        (
            "emit.offset-syncs.enabled=false\nsync.group.offsets.enabled=true",
            [NO_CHECKPOINTS, no_effect("emit.offset-syncs.enabled=false")],
        ),
        (
            "A->B.emit.checkpoints.enabled=false\nsync.group.offsets.enabled=true",
            [no_effect("emit.checkpoints.enabled=false")],
        ),
    ],
)
def test_what_cancels_out(tmp_path: Path, lines: str, warnings: list[str]) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(BASE + lines)
    assert list(load(file).warnings) == [f"{file}: {line}" for line in warnings]
