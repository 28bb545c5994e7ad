"""What a terminal says behind a lease."""

from __future__ import annotations

import io

from rich.console import Console

from mirrorless.copy.rows import Report
from mirrorless.local.display import LiveTable


def said(**fields: object) -> str:
    known = {
        "topic": "t",
        "partition": 0,
        "remote_topic": "a.t",
        "state": "copying",
        "records": 0,
        "copied_bytes": 0,
        "first_offset": None,
        "next_offset": None,
        "lag_records": 0,
        "latency_ms": None,
        "began_ms": None,
        "ended_ms": None,
    }
    out = io.StringIO()
    LiveTable(Console(file=out, width=200)).leased("a->b", [Report(**(known | fields))])  # type: ignore[arg-type]
    return out.getvalue()


def test_a_quota_that_held_the_copy_up_is_named() -> None:
    assert said(fetch_throttle_ms=41_200) == "a->b: a quota on the source had the copy wait for 41 s in this lease\n"
    assert said(produce_throttle_ms=2_600) == "a->b: a quota on the target had the copy wait for 3 s in this lease\n"


def test_a_wait_that_nobody_notices_is_not_worth_a_line() -> None:
    assert not said(fetch_throttle_ms=400, produce_throttle_ms=30)


def test_what_was_passed_over_has_a_line_each() -> None:
    assert said(events="a gap\na record left out") == "a->b: a gap\na->b: a record left out\n"
