"""The Glue job's script, run by a local Spark as Glue runs it on its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from tests.support.aws import aws_server
from tests.support.world import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.world import World

SCRIPT = Path(__file__).parents[2] / "glue_jobs" / "partition_copy.py"


@pytest.fixture
def cloudwatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the job's metrics, and questions about them, go to a CloudWatch on this machine."""
    with aws_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


def command(world: World, *more: str) -> tuple[list[str], dict[str, str]]:
    """The job's command and environment; Glue adds arguments of its own, before and behind."""
    own = [
        "--MIRRORLESS_CONFIG",
        str(world.file),
        "--MIRRORLESS_FLOW",
        world.flow,
        "--MIRRORLESS_METRICS",
        "Mirrorless/test",
    ]
    return (
        [sys.executable, str(SCRIPT), "--job-language", "python", *own, *more, "--JOB_NAME", "copy"],
        os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def points(statistic: str, metric: str, world: World, **more: str) -> list[float]:
    """One statistic of a metric, minute by minute."""
    now = datetime.now(UTC)
    # moto adds up whatever has these dimensions among others: with topics, a flow's own series cannot be asked for.
    named = {"source": world.source_alias, "target": world.target_alias, **more}
    found = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="Mirrorless/test",
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in named.items()],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
        Period=60,
        Statistics=[statistic],
    )
    return [point[statistic] for point in found["Datapoints"]]


@pytest.mark.usefixtures("cloudwatch")
def test_the_job_copies_what_is_there_says_how_much_and_ends(world: World) -> None:
    topic, unnamed = world.topic(partitions=2), world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(10_000)), partitions=2)
    fill(world.source, unnamed, [b"0"])
    world.discover()
    arguments, environment = command(world, "--available-now", "--MIRRORLESS_RELEASE", "r1")
    ended = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False, timeout=400)
    assert ended.returncode == 0, ended.stderr
    started, *leases = lines(ended.stdout)
    assert (started["event"], started["release"]) == ("Start", "r1")
    assert sum(lease["records"] for lease in leases) == 10_001
    assert leases[-1]["over"]
    assert world.assert_equal(topic) == 10_000
    assert sum(points("Sum", "record-count", world)) == 10_001
    # A topic that neither lags nor fails has none of its own.
    assert points("Sum", "record-count", world, topic=world.remote(topic)) == []


@pytest.mark.nightly
@pytest.mark.usefixtures("cloudwatch")
def test_a_cluster_that_is_away_is_in_the_log_and_in_the_metrics_and_the_copy_goes_on_when_it_is_back(
    world: World, tmp_path: Path
) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % n for n in range(100)), partitions=2)
    world.write_settings(**{"mirrorless.lease.seconds": "2"})
    world.discover()
    arguments, environment = command(world)
    log = tmp_path / "job.log"

    def wait_for(condition: Callable[[], bool]) -> None:
        until = time.monotonic() + 150
        while not condition():
            assert job.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.2)

    def told(event: str) -> list[dict[str, Any]]:
        return [line for line in lines(log.read_text()) if line["event"] == event]

    with (
        log.open("wb") as output,
        subprocess.Popen(arguments, env=environment, stdout=output, stderr=subprocess.STDOUT) as job,
    ):
        wait_for(lambda: sum(lease["records"] for lease in told("Lease")) == 100)
        assert told("Trouble") == []
        world.target.stop_broker(1)
        wait_for(lambda: any(line["errors"] and line["partitions"] == 2 for line in told("Lease")))
        wait_for(lambda: bool(told("Trouble")))
        away = time.monotonic()
        wait_for(lambda: max(points("Maximum", "lag-seconds", world), default=0.0) >= time.monotonic() - away > 5)
        world.target.start_broker(1)
        fill(world.source, topic, (b"%d" % n for n in range(100, 150)), partitions=2)
        wait_for(lambda: sum(lease["records"] for lease in told("Lease")) == 150)
        job.send_signal(signal.SIGTERM)
    (trouble, *_) = told("Trouble")
    assert world.target_alias in trouble["error"]
    assert told("Lease")[-1]["errors"] == []
    assert world.assert_equal(topic) == 150
    assert max(points("Maximum", "partitions-unreachable", world)) == 2
