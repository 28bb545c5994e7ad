"""The Glue job's script, run by a local Spark as Glue runs it on its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from tests.support.aws import aws_server
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.world import World

SCRIPT = Path(__file__).parents[2] / "glue_jobs" / "partition_copy.py"


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the job's metrics, and questions about them, go to a CloudWatch on this machine."""
    with aws_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.usefixtures("cloudwatch")
def test_the_job_copies_what_is_there_says_how_much_and_ends(world: World) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % n for n in range(10_000)), partitions=2)
    world.discover()
    arguments = [
        "--MIRRORLESS_CONFIG",
        str(world.file),
        "--MIRRORLESS_FLOW",
        world.flow,
        "--MIRRORLESS_METRICS",
        "cloudwatch",
    ]
    ended = subprocess.run(
        # Glue adds arguments of its own, before and behind.
        [sys.executable, str(SCRIPT), "--job-language", "python", *arguments, "--available-now", "--JOB_NAME", "copy"],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert ended.returncode == 0, ended.stderr
    leases = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert sum(lease["records"] for lease in leases) == 10_000
    assert leases[-1]["over"]
    assert world.assert_equal(topic) == 10_000
    source, _, target = world.flow.partition("->")
    now = datetime.now(UTC)
    counted = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="Mirrorless",
        MetricName="record-count",
        # moto adds up whatever has these dimensions among others, so that the flow's own series cannot be asked for.
        Dimensions=[
            {"Name": name, "Value": value}
            for name, value in (("source", source), ("target", target), ("topic", f"{source}.{topic}"))
        ],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
        Period=60,
        Statistics=["Sum"],
    )
    assert sum(point["Sum"] for point in counted["Datapoints"]) == 10_000
