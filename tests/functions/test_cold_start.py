"""A cold start is light: what a function does not need it does not import."""

from __future__ import annotations

import pytest

from bench.cold_start import imported, names

HEAVY = {"pyspark", "py4j", "pandas", "numpy", "pyarrow", "boto3", "click", "rich", "prometheus_client"}
WITHOUT_KAFKA_PYTHON = {"heartbeat", "heartbeat_monitor", "job_supervisor"}
LARGEST_MB = 80


@pytest.mark.parametrize("name", names())
def test_a_function_imports_what_it_needs(name: str) -> None:
    found = imported(name)
    modules = set(found["modules"])
    assert modules & HEAVY == set()
    assert ("kafka" in modules) == (name not in WITHOUT_KAFKA_PYTHON)
    assert found["peak_mb"] < LARGEST_MB


def test_there_are_nine() -> None:
    assert len(names()) == 9
