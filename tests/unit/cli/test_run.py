"""`mirrorless run` names what is missing in one line before it begins with anything."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:1
backup.bootstrap.servers = 127.0.0.1:2
primary->backup.enabled = true
mirrorless.engine = spark
"""


def test_without_the_java_that_a_flow_needs_no_cluster_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE)
    ended = subprocess.run(
        [sys.executable, "-m", "mirrorless", "run", "--engine", "spark", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"error: JAVA_HOME is {tmp_path}, which has no bin/java: ")
