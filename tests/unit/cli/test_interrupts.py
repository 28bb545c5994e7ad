"""The first failed connection is shown at once, and Ctrl-C ends a command that waits for a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_LONGEST_S = 8.0
"""Five seconds are promised; the machine may be busy."""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = primary, backup\nprimary.bootstrap.servers = 127.0.0.1:1\nbackup.bootstrap.servers = 127.0.0.1:2\n"
        "primary->backup.enabled = true\n"
    )
    return str(path)


@pytest.mark.parametrize("words", [("run",), ("status",)])
def test_a_failed_connection_is_shown_and_one_interrupt_ends_the_command(words: tuple[str, ...], file: str) -> None:
    command = [sys.executable, "-m", "mirrorless", words[0], file, *words[1:]]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if "Connection refused" in line)
        assert "trying again" in line
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        process.stdout.read()
        process.wait(60)
        assert time.monotonic() - began < _LONGEST_S


def test_the_page_ends_too(file: str) -> None:
    command = [sys.executable, "-m", "mirrorless", "web", file, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert any("the page is at " in line for line in iter(process.stdout.readline, ""))
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(60) == 0
        assert time.monotonic() - began < _LONGEST_S
