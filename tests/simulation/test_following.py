"""No offset of a group on the target is ahead of the copied records, or of what the group has read."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.simulation import planting

SCHEDULES = os.environ.get("MIRRORLESS_FOLLOWING", "2")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation.following", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=planting.ROOT)


def test_schedules_hold() -> None:
    ended = run("--schedules", SCHEDULES)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 0


def test_an_offset_that_is_one_too_far_is_found() -> None:
    ended = run("--schedules", "1", "--one-too-far")
    assert ended.returncode != 0
    assert "Violation: " in ended.stderr
    assert "is committed at" in ended.stderr
