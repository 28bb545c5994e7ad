"""What a terminal and a log say: behind a lease, and while nothing is copied yet."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from mirrorless.local.display import LiveTable, LogLines, ProgressBar
from tests.support.reports import report

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report


def said(one: Report) -> str:
    out = io.StringIO()
    LiveTable(Console(file=out, width=200)).leased("a->b", [one], faulty=False)
    return out.getvalue()


def test_a_quota_that_held_the_copy_up_is_named() -> None:
    assert said(report(fetch_throttle_ms=41_200)) == "a->b: a quota on the source delayed this lease by 41 s\n"
    assert said(report(produce_throttle_ms=2_600)) == "a->b: a quota on the target delayed this lease by 3 s\n"


def test_a_wait_that_nobody_notices_is_not_worth_a_line() -> None:
    assert not said(report(fetch_throttle_ms=400, produce_throttle_ms=30))


def test_what_was_passed_over_has_a_line_each() -> None:
    assert said(report(events="a gap\na record left out")) == "a->b: a gap\na->b: a record left out\n"


@pytest.mark.parametrize("kind", [LiveTable, ProgressBar])
def test_a_terminal_shows_what_a_flow_waits_for_until_there_is_something_to_show(
    kind: type[LiveTable | ProgressBar],
) -> None:
    out = io.StringIO()
    with kind(Console(file=out, width=100, force_terminal=True)) as display:
        for text in ("starting Spark", "planning the first lease", ""):
            display.show("a->b", [])
            display.waiting("a->b", text)
    shown = out.getvalue()
    assert "a->b: starting Spark" in shown
    assert "a->b: planning the first lease" in shown
    assert kind is not LiveTable or "partitions" not in shown  # a table without a row
    assert "planning" not in shown.splitlines()[-1]


def test_a_log_says_what_a_flow_waits_for_whenever_it_changes() -> None:
    out = io.StringIO()
    log = LogLines(out)
    for text in ("starting Spark", "starting Spark", "planning the first lease", "", "", "finishing what is in flight"):
        log.waiting("a->b", text)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert {(line["level"], line["flow"], line["event"]) for line in lines} == {("info", "a->b", "Waiting")}
    waited = [line["waiting"] for line in lines]
    assert waited == ["starting Spark", "planning the first lease", "finishing what is in flight"]
