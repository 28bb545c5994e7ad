"""The Java originals: MirrorMaker 2 in dedicated mode, and small programs against its client library."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Final

from mirrorless.local.jars import JarSet, class_path
from mirrorless.local.java import java_executable

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MIRRORMAKER: Final = JarSet(
    name="connect-mirror-4.3.0",
    title="MirrorMaker 2 4.3.0",
    modules=("org.apache.kafka:connect-mirror:4.3.0", "org.slf4j:slf4j-simple:1.7.36"),
)
_STOP_S: Final = 20


class MirrorMaker:
    """A running MirrorMaker 2 in dedicated mode; leaving the context stops it."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        file = folder / f"peer-{time.monotonic_ns()}.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        self.log = file.with_suffix(".log")
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    java_executable(),
                    "-Xmx512m",
                    "-cp",
                    class_path(MIRRORMAKER),
                    "org.apache.kafka.connect.mirror.MirrorMaker",
                    str(file),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )

    def __enter__(self) -> MirrorMaker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Fail with the end of its log if it does not run any more."""
        assert self._process.poll() is None, self.log.read_text()[-3000:]

    def stop(self) -> None:
        """Stop it in an orderly way."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def run_java(program: Path, *arguments: str) -> str:
    """Run a program of one source file (JEP 330) with MirrorMaker 2 on its class path; return what it prints."""
    ended = subprocess.run(
        [
            java_executable(),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp",
            class_path(MIRRORMAKER),
            str(program),
            *arguments,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
        env=os.environ,
    )
    assert ended.returncode == 0, ended.stderr.decode()[-3000:]
    return ended.stdout.decode()
