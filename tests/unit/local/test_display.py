"""What a terminal says behind a lease."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console

from mirrorless.local.display import LiveTable
from tests.support.reports import report

if TYPE_CHECKING:
    from mirrorless.copy.rows import Report


def said(one: Report) -> str:
    out = io.StringIO()
    LiveTable(Console(file=out, width=200)).leased("a->b", [one])
    return out.getvalue()


def test_a_quota_that_held_the_copy_up_is_named() -> None:
    assert (
        said(report(fetch_throttle_ms=41_200))
        == "a->b: a quota on the source had the copy wait for 41 s in this lease\n"
    )
    assert (
        said(report(produce_throttle_ms=2_600))
        == "a->b: a quota on the target had the copy wait for 3 s in this lease\n"
    )


def test_a_wait_that_nobody_notices_is_not_worth_a_line() -> None:
    assert not said(report(fetch_throttle_ms=400, produce_throttle_ms=30))


def test_what_was_passed_over_has_a_line_each() -> None:
    assert said(report(events="a gap\na record left out")) == "a->b: a gap\na->b: a record left out\n"
