"""The progress of a flow whose engines report one after the other, in a folder each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.engines.control import Control
from mirrorless.local.progress_view import ProgressView
from tests.support.reports import report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def controls(tmp_path: Path) -> tuple[Control, Control]:
    for name in ("spark", "functions"):
        (tmp_path / name).mkdir()
    return Control(str(tmp_path / "spark")), Control(str(tmp_path / "functions"))


def test_what_both_engines_copied_is_added_up_and_the_latest_report_is_shown(
    controls: tuple[Control, Control],
) -> None:
    spark, functions = controls
    view = ProgressView(spark, functions)
    functions.publish(lease=1, slot=0, reports=[report(records=5, copied_bytes=50, state="copying", lag_records=9)])
    functions.publish(lease=2, slot=0, reports=[report(records=2, copied_bytes=20, state="copying", lag_records=8)])
    (topic,) = view.look()
    assert (topic.records, topic.copied_bytes, topic.state, topic.lag_records) == (7, 70, "copying", 8)
    # A lease of Spark may have a smaller number.
    spark.publish(lease=1, slot=0, reports=[report(records=100, copied_bytes=1_000, lag_records=1)])
    spark.publish(lease=1, slot=1, reports=[report(partition=1, records=3, copied_bytes=30, state="copying")])
    for _ in range(2):
        (topic,) = view.look()
        assert (topic.partitions, topic.records, topic.copied_bytes, topic.lag_records) == (2, 110, 1_100, 1)
        assert topic.state == "copying"
    functions.publish(lease=3, slot=0, reports=[report(records=1, copied_bytes=10, state="halted", error="a gap")])
    (topic,) = view.look()
    assert (topic.records, topic.state, topic.error) == (111, "halted", "a gap")


def test_a_complaint_of_either_engine_is_shown(controls: tuple[Control, Control]) -> None:
    view = ProgressView(*controls)
    assert view.complaint == ""
    controls[1].complain("cluster A does not answer")
    assert view.complaint == "cluster A does not answer"
    controls[1].complain("")
    controls[0].complain("the flow is PAUSED")
    assert view.complaint == "the flow is PAUSED"
