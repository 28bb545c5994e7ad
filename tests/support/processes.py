"""Whole `mirrorless` processes, as people start them, and everything below them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType


class Mirrorless:
    """A running `mirrorless run FILE`; leaving the context kills what is left of it. `prefix` begins the command.

    `arguments` are options, and more files.
    """

    def __init__(self, file: Path, *arguments: str | Path, prefix: Sequence[str] = ()) -> None:
        self.output = file.with_suffix(f".{time.monotonic_ns()}.out")
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "mirrorless", "run", str(file), *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # What a killed process leaves behind goes with the test's own folder.
                env=os.environ | {"TMPDIR": str(file.parent), "PYTHONFAULTHANDLER": "1"},
            )
        self._root = psutil.Process(self.process.pid)
        self._family: dict[int, psutil.Process] = {}

    def __enter__(self) -> Mirrorless:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.process.wait()

    def family(self) -> list[psutil.Process]:
        """Every process that this one started, directly or not, as far as it was seen, and that still runs."""
        with suppress(psutil.NoSuchProcess):
            for child in self._root.children(recursive=True):
                self._family[child.pid] = child
        return [child for child in self._family.values() if _lives(child)]

    def kill(self) -> None:
        """SIGKILL for the process and everything below it, at once."""
        family = self.family()
        for process in (self._root, *family):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def wait(self, seconds: float = 240) -> int:
        """Wait for the end and return the exit status; one that comes too late tells where its threads stand."""
        until = time.monotonic() + seconds
        while self.process.poll() is None:
            self.family()
            if time.monotonic() >= until:
                self.process.send_signal(signal.SIGABRT)
                self.process.wait()
                pytest.fail(f"still running after {seconds} s:\n{self.text()}")
            time.sleep(0.02)
        return self.process.returncode

    def text(self) -> str:
        """What it printed so far."""
        return self.output.read_text()

    def strays(self) -> list[str]:
        """What it printed that is none of its JSON lines: somebody else's complaints."""
        return [line for line in self.text().splitlines() if not line.startswith("{")]

    def errors(self) -> list[str]:
        """The JSON lines at level error."""
        return [
            line for line in self.text().splitlines() if line.startswith("{") and json.loads(line)["level"] == "error"
        ]

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The JSON lines of one kind."""
        found = [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
