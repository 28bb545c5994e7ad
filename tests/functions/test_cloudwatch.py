"""The copy's metrics reach CloudWatch, and nothing waits for it."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest

from mirrorless.publishing.cloudwatch import CloudWatch
from tests.support.world import fill

if TYPE_CHECKING:
    from tests.functions.conftest import Aws
    from tests.support.world import World

NAMESPACE: Final = "Mirrorless/test"


@pytest.fixture
def _environment(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_environment")
def test_a_lease_is_published_per_flow_and_for_a_topic_that_fails(world: World, aws: Aws) -> None:
    topic = world.topic(partitions=2)
    fill(world.source, topic, (b"%d" % number for number in range(1000)), partitions=2)
    reports = world.copy()
    with CloudWatch(world.flow, namespace=NAMESPACE) as metrics:
        metrics.lease_ended(reports)

    flow = [{"Name": "source", "Value": world.source_alias}, {"Name": "target", "Value": world.target_alias}]
    by_topic = [*flow, {"Name": "topic", "Value": world.remote(topic)}]
    cloudwatch = aws.client("cloudwatch")
    # CloudWatch is paid for each metric that is sent.
    assert not cloudwatch.list_metrics(Namespace=NAMESPACE, Dimensions=by_topic)["Metrics"]
    with CloudWatch(world.flow, namespace=NAMESPACE) as metrics:
        metrics.lease_ended([replace(report, error="refused") for report in reports])
    now = datetime.now(UTC)
    (point,) = cloudwatch.get_metric_statistics(
        Namespace=NAMESPACE,
        MetricName="record-count",
        Dimensions=by_topic,
        StartTime=now - timedelta(minutes=10),
        EndTime=now + timedelta(minutes=1),
        Period=3600,
        Statistics=["Sum"],
    )["Datapoints"]
    assert (point["Sum"], point["Unit"]) == (1000, "Count")
    of_flow = [one for one in cloudwatch.list_metrics(Dimensions=flow)["Metrics"] if one["Dimensions"] == flow]
    assert {"record-count", "lag-seconds", "partitions-halted"} <= {one["MetricName"] for one in of_flow}
    listed = cloudwatch.list_metrics(Namespace=NAMESPACE, Dimensions=by_topic)["Metrics"]
    assert {one["MetricName"] for one in listed} == {
        "record-count",
        "byte-count",
        "lag-records",
        "lag-seconds",
    }


@pytest.mark.filterwarnings("default")
@pytest.mark.usefixtures("_environment")
def test_a_cloudwatch_that_does_not_answer_holds_nothing_up(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    metrics = CloudWatch(world.flow)
    before = time.monotonic()
    for _ in range(3):
        metrics.lease_ended([])
    assert time.monotonic() - before < 1
    metrics.close()
    (line,) = [record.getMessage() for record in caplog.records if "publishing metrics failed" in record.getMessage()]
    assert line.startswith(f"{world.flow}: publishing metrics failed: cloudwatch is not reachable: ")
