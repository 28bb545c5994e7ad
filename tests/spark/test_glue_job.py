"""The Glue job's script, run by a local Spark as Glue runs it on its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.world import fill

if TYPE_CHECKING:
    from tests.support.world import World

SCRIPT = Path(__file__).parents[2] / "glue_jobs" / "partition_copy.py"


def test_the_job_copies_what_is_there_and_ends(world: World, tmp_path: Path) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % n for n in range(10_000)), partitions=2)
    world.discover()
    arguments = ["--settings", str(world.file), "--flow", world.flow, "--checkpoint", str(tmp_path / "checkpoint")]
    ended = subprocess.run(
        # Glue adds arguments of its own.
        [sys.executable, str(SCRIPT), *arguments, "--available-now", "--JOB_NAME", "copy"],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert ended.returncode == 0, ended.stderr
    leases = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert sum(lease["records"] for lease in leases) == 10_000
    assert leases[-1]["over"]
    assert world.assert_equal(topic) == 10_000
