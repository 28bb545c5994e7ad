"""`mirrorless verify` as a whole process: what it prints, writes and exits with, and its page in a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import boto3
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.local.jars import SPARK_KAFKA, class_path
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import NOT_COMPARED
from mirrorless.verify.report_file import write as write_report
from tests.support.aws import aws_server
from tests.support.planted import plant, record, write
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from mirrorless.local.embedded_kafka import EmbeddedCluster

ROOT = Path(__file__).parents[3]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        cwd=ROOT,
        env=os.environ | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1", **environment},
    )


@pytest.fixture(scope="module")
def different(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> World:
    """One topic that is as it should be, and one that lacks a record and has another changed."""
    world = World(source, target, tmp_path_factory.mktemp("command"))
    right, wrong = world.topic(partitions=2), world.topic()
    for partition in range(2):
        write(world.source, right, map(record, range(500)), partition=partition)
    write(world.source, wrong, map(record, range(100)))
    world.copy()
    plant(
        world,
        wrong,
        100,
        50,
        lambda records: [*records[:9], *records[10:20], records[20]._replace(value=b"other"), *records[21:]],
    )
    return world


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with aws_server() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        client = boto3.client("s3")
        client.create_bucket(Bucket="reports")
        yield client


def test_differences_are_exit_status_1_and_in_every_report(different: World, tmp_path: Path) -> None:
    outputs = [tmp_path / "r.json", tmp_path / "r.html", tmp_path / "p.parquet"]
    reports = [argument for one in outputs for argument in ("--output", str(one))]
    ended = run("-m", "mirrorless", "verify", str(different.file), *reports, "--repair-plan")
    assert ended.returncode == 1, ended.stderr
    wrong = different.topics[-1]
    lines = [line for line in ended.stdout.splitlines() if f"{wrong}-0" in line]
    assert "109" in lines[0]
    assert "missing: 1 record" in lines[0]
    assert "120" in lines[1]
    assert "119" in lines[1]
    assert "changed in value" in lines[1]
    assert "into a new topic" in ended.stdout
    (flow,) = json.loads((tmp_path / "r.json").read_text())["flows"]
    assert [(one["kind"], one["upstream"], one["downstream"]) for one in flow["differences"]] == [
        ("missing", 109, 109),
        ("changed", 120, 119),
    ]
    windows = pq.read_table(tmp_path / "p.parquet" / "windows.parquet").to_pylist()
    assert sum(one["records"] for one in windows) == 1_150
    seen = run("-m", "tests.support.browser", str(tmp_path / "r.html"), str(tmp_path / "page.png"))
    assert seen.returncode == 0, seen.stderr
    page = json.loads(seen.stdout.splitlines()[-1])
    assert page["title"] == "mirrorless verify"
    assert page["verdicts"] == ["differences"]
    assert {"missing: 1 record", "changed in value", "109", "120", "119"} <= set(page["cells"])
    assert len([width for width in page["bars"] if width > 1]) >= 6
    assert not page["wide"]
    assert page["loaded"] == []
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_the_glue_job_reports_metrics_and_ends_well_although_there_are_differences(
    different: World,
    s3: Any,  # noqa: ANN401 -- boto3's client
) -> None:
    jars = class_path(SPARK_KAFKA).replace(os.pathsep, ",")
    ended = run(
        *("glue_jobs/verify_copy.py", "--MIRRORLESS_CONFIG", str(different.file)),
        *("--MIRRORLESS_FLOW", different.flow, "--MIRRORLESS_METRICS", "Mirrorless/test"),
        *("--report", "s3://reports/verify", "--JOB_NAME", "verify"),
        PYSPARK_SUBMIT_ARGS=f"--master local[2] --jars {jars} pyspark-shell",
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
    )
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert lines[-1]["event"] == "Verified"
    assert (lines[-1]["records-compared"], lines[-1]["differences"], lines[-1]["not-compared"]) == (1_149, 2, 0)
    written = [PurePosixPath(one["Key"]) for one in s3.list_objects_v2(Bucket="reports")["Contents"]]
    assert {one.parts[:2] for one in written} == {("verify", different.flow.replace("->", "-"))}
    assert {one.name for one in written} == {
        "result.json",
        "result.html",
        "partitions.parquet",
        "differences.parquet",
        "windows.parquet",
    }
    cloudwatch = boto3.client("cloudwatch")
    dimensions = [
        {"Name": "source", "Value": different.source_alias},
        {"Name": "target", "Value": different.target_alias},
    ]
    now = datetime.now(UTC)
    for name, value in (("records-compared", 1_149), ("differences", 2), ("not-compared", 0)):
        (point,) = cloudwatch.get_metric_statistics(
            Namespace="Mirrorless/test",
            MetricName=name,
            Dimensions=dimensions,
            StartTime=now - timedelta(minutes=10),
            EndTime=now + timedelta(minutes=1),
            Period=3600,
            Statistics=["Sum"],
        )["Datapoints"]
        assert (point["Sum"], point["Unit"]) == (value, "Count")


def test_a_report_that_cannot_be_written_is_told_in_one_line(s3: Any) -> None:  # noqa: ANN401
    assert s3 is not None
    with pytest.raises(OSError, match=r"^writing s3://no-such-bucket/a failed: s3 answered NoSuchBucket"):
        write_report("s3://no-such-bucket/a", b"")


@pytest.mark.nightly
def test_a_cluster_that_does_not_answer_cannot_be_compared(
    different: World, spark: SparkSession, tmp_path: Path
) -> None:
    world = World(different.source, different.target, tmp_path)
    world.topics = ["any"]
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": "127.0.0.1:1"})
    verdict, _ = verify_flow(spark, world.place().load(), ComparisonTerms(), say=lambda _: None)
    assert verdict.status == NOT_COMPARED
    (trouble,) = verdict.troubles
    assert trouble.startswith(f"cluster {world.target_alias}: no answer from 127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--topics", "("), "--topics=("),
        (("--since", "yesterday"), "--since"),
        (("--flow", "x->y"), "no such flow"),
    ],
)
def test_what_cannot_be_asked_for_is_one_line_and_exit_status_2(
    different: World, arguments: tuple[str, ...], says: str
) -> None:
    ended = CliRunner().invoke(root, ["verify", str(different.file), *arguments])
    assert ended.exit_code == NOT_COMPARED
    (line,) = ended.stderr.splitlines()
    assert line.startswith("error: ")
    assert says in line
