"""What ends the lease of a run of the functions engine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.copy.engines.functions import run_watch
from mirrorless.copy.engines.functions.run_watch import IdleTime, RunWatch
from mirrorless.copy.engines.work_meter import WorkMeter
from mirrorless.progress.run_marks import RunMark
from mirrorless.settings import Cluster, Flow
from tests.support.reports import report

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))


class Order:
    """The place of the run, as the test says."""

    def __init__(self) -> None:
        self.next: RunMark | None = None
        self.is_stale = False
        self.waits = 0

    def wait(self, seconds: float) -> None:
        assert seconds == 0
        self.waits += 1

    def successor(self) -> RunMark | None:
        return self.next


class Slot:
    """The run's control."""

    def __init__(self) -> None:
        self.stop = False
        self.seen: list[list[Report]] = []

    def stopping(self) -> bool:
        return self.stop

    def observe(self, reports: list[Report]) -> None:
        self.seen.append(reports)


class Watched:
    """A watch, with all that it asks; a step is a tenth of a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, idle: bool = False) -> None:
        self.now = 100.0
        monkeypatch.setattr(run_watch, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.order, self.slot, self.time_left = Order(), Slot(), SimpleNamespace(left_s=60.0)
        self.landed: list[list[Report]] = []
        self.idle = IdleTime() if idle else None
        self.is_dealt = False
        self.meter = WorkMeter()
        self.watch = self.another()

    def another(self) -> RunWatch:
        """Return the watch of the run's next lease."""
        self.watch = RunWatch(
            FLOW,
            order=cast("Any", self.order),
            time_left=self.time_left,
            meter=self.meter,
            slot=cast("Any", self.slot),
            leased=self.landed.append,
            idle=self.idle,
            dealt=lambda: self.is_dealt,
        )
        return self.watch

    def step(self, seconds: float = 0.1) -> str:
        self.now += seconds
        assert self.watch.stopping() is bool(self.watch.ended)
        return self.watch.ended


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def successor(engine: str) -> RunMark:
    return RunMark(
        "next",
        "topics",
        claim=9,
        renewed_ms=0,
        valid_ms=1,
        engine="functions" if engine == "functions" else "spark",
    )


@pytest.mark.parametrize(
    ("engine", "reason"),
    [("functions", "the next invocation takes over"), ("spark", "the copy job takes over")],
)
def test_a_run_that_is_ready_ends_it(watched: Watched, engine: str, reason: str) -> None:
    assert watched.step() == ""
    watched.order.next = successor(engine)
    assert watched.step() == reason


def test_a_stop_request_ends_it(watched: Watched) -> None:
    watched.slot.stop = True
    assert watched.step() == "a stop was requested"


def test_the_end_of_its_time_ends_it(watched: Watched) -> None:
    watched.time_left.left_s = 0.0
    assert watched.step() == "its time is over"


def test_a_mark_that_cannot_be_renewed_ends_it(watched: Watched) -> None:
    watched.order.is_stale = True
    assert watched.step() == "its mark in the progress topic could not be renewed"


def test_a_deal_ends_it_unless_the_run_is_to_end(watched: Watched) -> None:
    watched.is_dealt = True
    watched.order.next = successor("functions")
    assert watched.step() == "the next invocation takes over"
    watched.another()
    watched.order.next = None
    assert watched.step() == run_watch.DEALT


def test_the_first_reason_remains(watched: Watched) -> None:
    watched.order.next = successor("functions")
    assert watched.step() == "the next invocation takes over"
    watched.order.next, watched.slot.stop = None, True
    assert watched.step() == "the next invocation takes over"


def test_it_looks_at_marks_twenty_times_a_second_however_often_it_is_asked(watched: Watched) -> None:
    for _ in range(1_000):
        watched.step(0.001)
    assert watched.order.waits in (20, 21)


def test_reports_are_measured_and_shown(watched: Watched) -> None:
    assert watched.watch.watched
    reports = [report(lag_records=7)]
    watched.watch.observe(reports)
    assert watched.slot.seen == [reports]
    assert watched.meter.work is not None
    assert watched.meter.work.lag_records == 7
    watched.watch.landed(reports)
    assert watched.landed == [reports]


def test_only_a_flow_that_may_be_idle_ends_when_nothing_arrives(watched: Watched) -> None:
    watched.watch.observe([report(next_offset=5)])
    assert watched.step(3_600) == ""


def test_five_seconds_with_heartbeats_only_end_an_idle_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, idle=True)
    for second in range(5):
        watched.watch.observe([report(next_offset=5), report("heartbeats", next_offset=second, lag_records=1)])
        assert watched.step(0.9) == ""
    watched.now = 104.95
    assert watched.step(0.0) == ""
    assert watched.step(0.06) == "nothing arrives"


@pytest.mark.parametrize("news", [report(next_offset=6), report(next_offset=5, lag_records=1)])
def test_a_record_or_an_open_transaction_keeps_an_idle_flow_running(
    monkeypatch: pytest.MonkeyPatch, news: Report
) -> None:
    watched = Watched(monkeypatch, idle=True)
    watched.watch.observe([report(next_offset=5)])
    assert watched.step(4) == ""
    watched.watch.observe([news])
    assert watched.step(4) == ""
    assert watched.step(1.1) == "nothing arrives"


def test_what_is_halted_keeps_no_flow_running(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, idle=True)
    halted = report("u", state="halted", next_offset=3, lag_records=900)
    for _ in range(5):
        watched.watch.observe([report(next_offset=5), halted])
        watched.step(1.01)
    assert watched.watch.ended == "nothing arrives"


def test_leases_and_plans_do_not_begin_the_five_seconds_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow without a topic has a plan every two seconds, and no lease."""
    watched = Watched(monkeypatch, idle=True)
    for _ in range(2):
        assert watched.step(2.1) == ""
        watched.another()
    assert watched.step(2.1) == "nothing arrives"
