"""The metrics of a lease in the embedded metric format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.functions.powertools import Powertools
from mirrorless.publishing.lease_meter import Sample, Values
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Sequence

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
LATENCY = "replication-latency-ms"


def emitted(capsys: pytest.CaptureFixture[str], samples: Sequence[Sample]) -> list[dict[str, Any]]:
    Powertools().leased(FLOW, samples)
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line]


def values(capsys: pytest.CaptureFixture[str], measured: Values) -> list[float]:
    """Every value of the metric, in however many objects."""
    objects = emitted(capsys, [Sample(metric=LATENCY, value=measured)])
    return [value for one in objects for value in one.get(LATENCY, ())]


def test_the_flow_and_each_topic_have_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    samples = [
        Sample(metric="record-count", value=7),
        Sample(metric="lag-seconds", value=2.5),
        Sample(metric="record-count", value=7, topic="A.t"),
        Sample(metric=LATENCY, value=7, topic="A.t"),  # of the flow only
    ]
    flow, topic = emitted(capsys, samples)
    assert (flow["record-count"], flow["lag-seconds"]) == ([7], [2.5])
    assert (flow["source"], flow["target"]) == ("A", "B")
    assert flow["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["source", "target"]]
    assert topic["record-count"] == [7]
    assert LATENCY not in topic
    assert topic["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["source", "target", "topic"]]
    assert topic["topic"] == "A.t"


def test_without_a_sample_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert emitted(capsys, []) == []


@pytest.mark.parametrize(
    "measured",
    [
        Values(last=5, least=5, greatest=5, total=5, count=1),
        Values(last=5, least=2, greatest=5, total=7, count=2),
        Values(last=5, least=2, greatest=9, total=20, count=4),
        Values(last=5, least=0, greatest=100, total=3_000, count=100),
        Values(last=5, least=1, greatest=400, total=40_000, count=1_000),
        Values(last=5, least=3, greatest=3, total=3_000, count=1_000),
    ],
)
def test_least_greatest_and_average_are_kept(capsys: pytest.CaptureFixture[str], measured: Values) -> None:
    found = values(capsys, measured)
    assert len(found) == min(measured.count, 100)
    assert (min(found), max(found)) == (measured.least, measured.greatest)
    assert sum(found) / len(found) == pytest.approx(measured.total / measured.count)


def test_one_value_among_thousands_remains_the_greatest(capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred values cannot have this average and this maximum."""
    found = values(capsys, Values(last=1, least=1, greatest=60_000, total=70_000, count=10_000))
    assert (min(found), max(found)) == (1, 60_000)
    assert sorted(found)[:-1] == [1] * 99
