"""The metrics as Prometheus text."""

from __future__ import annotations

import re
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mirrorless.errors import PrerequisiteError
from mirrorless.publishing.lease_meter import Values
from mirrorless.publishing.prometheus import Prometheus
from tests.support.reports import report
from tests.unit.publishing.test_lease_meter import copied

LABELS = {"source": "a", "target": "b"}


def scrape(prometheus: Prometheus) -> dict[tuple[str, str], float]:
    """Values by name and topic."""
    with urllib.request.urlopen(f"http://127.0.0.1:{prometheus.port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {
        (sample.name, sample.labels.get("topic", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if {name: sample.labels.get(name) for name in LABELS} == LABELS
    }


def test_totals_run_and_gauges_are_the_last_value() -> None:
    with Prometheus(0, address="127.0.0.1") as prometheus:
        prometheus.lease_ended("a->b", [copied("t", lag_records=3), report("u", state="halted", lag_records=5)])
        prometheus.lease_ended("a->b", [copied("t"), report("u", state="halted", lag_records=6)])
        found = scrape(prometheus)
    assert found["mirrorless_record_count_total", "a.t"] == 600
    assert found["mirrorless_byte_count_total", "a.t"] == 12_000
    assert found["mirrorless_lag_records", "a.t"] == 0
    assert found["mirrorless_lag_records", "a.u"] == 6
    assert found["mirrorless_partitions_halted", ""] == 1
    spread = [found[f"mirrorless_replication_latency_ms{suffix}", "a.t"] for suffix in ("", "_min", "_max", "_avg")]
    assert spread == [20, 10, 40, 25]
    # A sum over topics is the flow: it would be twice as much if the flow had a series of its own.
    assert ("mirrorless_record_count_total", "") not in found


def test_functions_numbers_are_the_flows() -> None:
    with Prometheus(0, address="127.0.0.1") as prometheus:
        prometheus.measure("a->b", "checkpoint-count", 2)
        prometheus.measure("a->b", "checkpoint-count", 3)
        prometheus.measure("a->b", "checkpoint-latency-ms", Values(last=5, least=1, greatest=9, total=15, count=3))
        found = scrape(prometheus)
    assert found["mirrorless_checkpoint_count_total", ""] == 5
    assert found["mirrorless_checkpoint_latency_ms_avg", ""] == 5


def test_a_port_that_is_taken_is_one_line() -> None:
    with Prometheus(0, address="127.0.0.1") as first:
        expected = f"cannot listen on port {first.port} for metrics: Address already in use; use another port"
        with pytest.raises(PrerequisiteError, match=f"^{re.escape(expected)}$"):
            Prometheus(first.port, address="127.0.0.1")
