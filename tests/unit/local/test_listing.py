"""No table shortens a number, however narrow the terminal, and none is wrapped where there is no terminal."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import pytest
from rich.console import Console

from mirrorless.cli import demo, failover_plan, status, verify_text
from mirrorless.cli.offsets import reset, show, translate
from mirrorless.copy.partition.lease_rows import Report
from mirrorless.copy.resume.reset import Reset
from mirrorless.local import listing
from mirrorless.local.demo.comparison import DemoComparison
from mirrorless.local.demo.workload import DEMO_TOPICS
from mirrorless.local.display import LiveTable, ProgressBar
from mirrorless.local.listing import Listing, output_console
from mirrorless.local.progress_view import TopicView
from mirrorless.offsets.failover_plan import FailoverPlan, Forecast
from mirrorless.verify.findings import Difference, DifferenceKind, Method, PartitionResult, VerificationResult
from mirrorless.verify.repair import Step

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC: Final = "a.topic-with-a-name.that-is-longer-than-a-narrow-terminal-is-wide"
GROUP: Final = "[a-group] with brackets"


def print_status() -> None:
    fields = {"state": "running", "topics": 1_234, "partitions": 56_789, "begun": 56_788, "lag_records": 12_345_678_901}
    more: dict[str, object] = {
        "halted": [],
        "created_again": [],
        "gone": [],
        "unknown": [],
        "problems": [],
        "lacking": [],
        "fences": [],
        "skipped_share": None,
        "last_heartbeat_ms": None,
        "engine": {"chosen": "auto", "reason": "", "runs": [{"engine": "functions"}]},
    }
    status._print({"primary->backup": fields | more}, "mm2.properties")


def print_reset() -> None:
    one = Reset(
        topic=TOPIC,
        partition=1_023,
        remote_topic=TOPIC,
        position=9_876_543_210,
        start=1_500_000,
        end=98_765_432_100,
        remote_begin=0,
        remote_end=2_600_000,
        epoch=17,
        topic_id=None,
    )
    reset._show([one])


def print_offsets() -> None:
    show._print(
        "primary->backup", [(TOPIC, 1_023, 1_500_000, 98_765_432_100, 98_765_000_000, 98_765_000_001, 42, None)]
    )


def print_translation() -> None:
    translate._print([(GROUP, TOPIC, 1_023, 98_765_432_100, "")])


def print_forecast() -> None:
    one = Forecast(
        group=GROUP,
        topic=TOPIC,
        remote_topic=TOPIC,
        partition=7,
        source_offset=98_765_432_100,
        target_offset=98_765_000_000,
        how="run",
        early_by=1_500_000,
        committed=None,
        has_members=False,
        continues_at=0,
        read_again=1_500_000,
        skipped=0,
        checkpoint_offset=None,
        checkpoint_source_offset=None,
        not_copied=2_600_000,
        not_copied_exact=True,
        newest_ms=None,
    )
    plan = FailoverPlan(flow="primary->backup", source_answers=True, forecasts=(one,), troubles=())
    failover_plan._print(plan, 0)


def print_verification() -> None:
    partition = PartitionResult(
        topic=TOPIC, partition=0, remote_topic=TOPIC, method=Method.WINDOWS, records=1_500_000, windows=1_234
    )
    difference = Difference(
        kind=DifferenceKind.MISSING,
        topic=TOPIC,
        remote_topic=TOPIC,
        partition=0,
        upstream=98_765_432_100,
        downstream=98_765_000,
    )
    result = VerificationResult(
        flow="primary->backup", began_ms=0, ended_ms=1, partitions=(partition,), differences=(difference,)
    )
    verify_text.show(result)


def print_repair_plan() -> None:
    verify_text.show_plan([Step("orders-0", "missing", "copy it again")])


def report(topic: str) -> Report:
    return Report(
        topic=topic,
        partition=0,
        remote_topic=topic,
        state="caught up",
        records=1_500_000,
        copied_bytes=72_700_000,
        first_offset=0,
        next_offset=1,
        lag_records=0,
        latency_ms=None,
        began_ms=0,
        ended_ms=4_290,
    )


def print_demo() -> None:
    found = [DemoComparison(topic=one.name, partitions=1, records=1_500_000) for one in DEMO_TOPICS]
    demo._print_table(listing.output_console(), found, [report(one.name) for one in DEMO_TOPICS])


PRINTED: Final[list[tuple[Callable[[], None], str]]] = [
    (print_status, "1,234 56,789 56,788 12,345,678,901"),
    (print_reset, "1023 9,876,543,210 1,500,000 98,765,432,100 2,600,000 17"),
    (print_offsets, "1,023 1,500,000 98,765,432,100 98,765,000,000 98,765,000,001 42"),
    (print_translation, "1023 98,765,432,100"),
    (print_forecast, "98,765,432,100 98,765,000,000 1,500,000 2,600,000"),
    (print_verification, "1,500,000 1,234 98,765,432,100 98,765,000"),
    (print_repair_plan, ""),
    (print_demo, "1,500,000 72.7 4.29 10,000"),
]


def words(text: str) -> set[str]:
    return {word.strip("│┃") for word in text.split()}


@pytest.mark.parametrize(("shown", "numbers"), PRINTED, ids=lambda one: getattr(one, "__name__", ""))
def test_numbers_are_whole_in_a_terminal_of_any_width(
    monkeypatch: pytest.MonkeyPatch, shown: Callable[[], None], numbers: str
) -> None:
    for width in (20, 40, 80, 200):
        out = io.StringIO()
        console = Console(file=out, width=width, force_terminal=True, color_system=None)
        monkeypatch.setattr(listing, "output_console", lambda console=console: console)
        shown()
        assert "…" not in out.getvalue(), width
        assert words(numbers) <= words(out.getvalue()), width


@pytest.mark.parametrize(("shown", "numbers"), PRINTED, ids=lambda one: getattr(one, "__name__", ""))
def test_rows_are_one_line_each_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shown: Callable[[], None], numbers: str
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown()
    out = capsys.readouterr().out
    assert "…" not in out
    assert words(numbers) <= words(out)
    assert TOPIC in out or shown in (print_status, print_reset, print_repair_plan, print_demo)
    assert GROUP in out or shown not in (print_translation, print_forecast)


def view(topic: str) -> TopicView:
    return TopicView(
        topic=topic,
        partitions=12_345,
        records=1_500_000_000,
        copied_bytes=1,
        records_per_s=2_226_382,
        bytes_per_s=123_456_789,
        lag_records=98_765_432_100,
        latency_ms=12_345,
        state="copying",
        error=None,
    )


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_live_table_leaves_columns_out_before_it_shortens_a_number(width: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, height=30, force_terminal=True, color_system=None)
    table = LiveTable(console)
    console.print(table._table("primary->backup", [view(TOPIC), view("orders")]))
    assert "…" not in out.getvalue()
    assert {"98,765,432,100", "copying", "orders"} <= words(out.getvalue())
    assert max(map(len, out.getvalue().splitlines())) <= width
    assert ("12,345" in words(out.getvalue())) == (width == 120)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_progress_bar_has_whole_numbers(width: int) -> None:
    out = io.StringIO()
    bar = ProgressBar(Console(file=out, width=width, force_terminal=True, color_system=None))
    bar.show("primary->backup", [view("orders")])
    bar.console.print(bar._progress.get_renderable())
    assert "…" not in out.getvalue()
    assert {"1,500,000,000", "98,765,432,100"} <= words(out.getvalue())


def test_headings_of_numbers_are_broken_before_rows_are_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(listing, "output_console", lambda: console)
    print_demo()
    assert "│ impressions │" in out.getvalue()
    assert "copied in s" not in out.getvalue()


def test_a_row_needs_a_cell_for_each_column() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Listing("a", "b").add("1")


def test_brackets_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table = Listing("what", title="[title]")
    table.add("[bold]compact[/]")
    table.print(output_console())
    assert {"[title]", "[bold]compact[/]"} <= words(capsys.readouterr().out)
