"""The order of events in a run of the functions engine: plan, be ready, wait for the turn, copy."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters import outages
from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.functions import engine as engine_module
from mirrorless.copy.engines.functions import run_watch
from mirrorless.copy.engines.functions.engine import FunctionsEngine, _CurrentRun
from mirrorless.copy.engines.functions.run_result import RunResult
from mirrorless.copy.flow.memory_limits import SPARK_WORKER
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.errors import ClusterUnavailable, FlowPaused
from mirrorless.progress.run_marks import RunMark
from mirrorless.settings import Cluster, Flow
from tests.support.reports import report

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
ROW = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=9)
BEFORE = RunMark("before", "topics", claim=1, renewed_ms=0, valid_ms=1, engine="functions")
SPARK = replace(BEFORE, run="spark", engine="spark")


@dataclass
class Run:
    """One run; `log` has what it did, `plans` what planning returns, `earlier` the marks at each look."""

    plans: list[list[LeaseRow] | None]
    earlier: list[list[RunMark]]
    later: list[RunMark] = field(default_factory=list)
    idle: str = ""
    bounded: bool = False
    log: list[str] = field(default_factory=list)
    time_left: Any = field(default_factory=lambda: SimpleNamespace(left_s=60.0))
    leases: list[list[Report]] = field(default_factory=lambda: [[report(records=3, copied_bytes=30)]])
    look: int = 0

    def run(self) -> RunResult:
        order = SimpleNamespace(
            earlier=lambda: self.earlier[min(self.look, len(self.earlier) - 1)],
            later=lambda: self.later,
            be_ready=lambda: self.log.append("ready"),
            wait=self._wait,
        )
        one = _CurrentRun(cast("Any", self), FLOW, cast("Any", order), self.time_left, lambda _: None)
        return one.result(lambda: self.log.append("begins"))

    def _wait(self, _: float) -> None:
        self.look += 1
        self.log.append("waits")

    def rows(self, _: object) -> list[LeaseRow] | None:
        self.log.append("plans")
        return self.plans.pop(0)

    def deal_again(self, _: object) -> None:
        pass

    def refuse_paused(self) -> None:
        self.log.append("looks")

    def connect(self, rows: list[LeaseRow]) -> None:
        self.log.append(f"connects {len(rows)}")

    def planned_again(self, rows: list[LeaseRow]) -> list[LeaseRow]:
        self.log.append("reads")
        return rows

    def measure_again(self) -> None:
        self.log.append("measures")

    def watch(self, *_: object) -> Any:  # noqa: ANN401 -- a watch that ends the lease
        return SimpleNamespace(stopping=lambda: True, ended="the next invocation takes over")

    def lease(self, *_: object) -> list[Report]:
        self.log.append("copies")
        return self.leases.pop(0)

    def is_stopping(self) -> bool:
        return False


def test_the_first_run_copies_at_once() -> None:
    one = Run(plans=[[ROW]], earlier=[[]])
    result = one.run()
    assert one.log == ["plans", "connects 1", "ready", "looks", "begins", "measures", "copies"]
    assert (result.copied, result.records, result.copied_bytes) == (True, 3, 30)
    assert result.note == "the next invocation takes over"


def test_the_next_run_plans_and_connects_before_its_turn_and_reads_the_progress_then() -> None:
    one = Run(plans=[[replace(ROW, is_first=False)]], earlier=[[BEFORE], [BEFORE], []])
    one.run()
    assert one.log[:5] == ["plans", "connects 1", "ready", "waits", "waits"]
    assert one.log[5:] == ["looks", "begins", "reads", "measures", "copies"]


def test_a_lease_that_a_deal_ends_is_followed_by_another_of_the_same_run() -> None:
    reports = [report(records=3, copied_bytes=30)]
    one = Run(plans=[[ROW], [replace(ROW, partition=1)]], earlier=[[]], leases=[reports, reports])
    ends = [run_watch.DEALT, "its time is over"]
    one.watch = lambda *_: SimpleNamespace(stopping=lambda: True, ended=ends.pop(0))  # type: ignore[method-assign]
    result = one.run()
    assert one.log[-4:] == ["measures", "copies", "plans", "copies"]
    assert (result.note, result.records) == ("its time is over", 6)


def test_the_progress_is_read_again_also_if_the_run_before_ended_during_the_plan() -> None:
    """Its last progress may be newer than what the plan read, though the plan found no other run at its end."""
    one = Run(plans=[], earlier=[[BEFORE]])

    def plans(_: object) -> list[LeaseRow]:
        one.earlier = [[]]
        return [replace(ROW, is_first=True)]

    one.rows = plans  # type: ignore[method-assign]
    one.run()
    assert one.log == ["connects 1", "ready", "looks", "begins", "reads", "measures", "copies"]


def test_a_run_that_cannot_plan_is_not_ready_while_another_one_copies() -> None:
    one = Run(plans=[None, None, [ROW]], earlier=[[BEFORE], [BEFORE], [BEFORE], []])
    one.run()
    assert one.log[:6] == ["plans", "waits", "plans", "waits", "plans", "connects 1"]
    alone = Run(plans=[None], earlier=[[]])
    alone.run()
    assert alone.log == ["plans", "connects 0", "ready", "looks", "begins", "measures"]


def test_a_run_whose_time_is_over_while_it_plans_ends_no_other_run() -> None:
    one = Run(plans=[None], earlier=[[BEFORE]])
    one.time_left.left_s = 0.0
    assert one.run().note == "its time was over before a lease could be planned"
    assert "ready" not in one.log


@pytest.mark.parametrize(
    ("left_s", "later", "note"),
    [
        (0.0, [], "its time was over while another run copied"),
        (60.0, [SPARK], "the copy job takes over"),
        (0.0, [SPARK], "the copy job takes over"),
    ],
)
def test_a_run_whose_turn_does_not_come_says_why(left_s: float, later: list[RunMark], note: str) -> None:
    one = Run(plans=[[ROW]], earlier=[[BEFORE]], later=later)
    one.time_left.left_s = left_s
    result = one.run()
    assert (result.note, result.copied) == (note, False)
    assert "begins" not in one.log


def test_a_paused_flow_s_note_is_that_it_is_paused() -> None:
    one = Run(plans=[None], earlier=[[]], idle="the flow is PAUSED")
    assert one.run() == RunResult(note="the flow is PAUSED")
    assert one.log == ["plans"]


def test_a_bounded_copy_ends_when_all_is_copied_and_gives_up_where_nothing_is() -> None:
    done = Run(plans=[[ROW], []], earlier=[[]], bounded=True, leases=[[report(state="copying", records=1)]])
    done.watch = lambda *_: SimpleNamespace(stopping=lambda: False, ended="")  # type: ignore[method-assign]
    result = done.run()
    assert (result.note, result.complete, result.stuck, result.records) == ("everything was copied", True, False, 1)
    stuck = Run(plans=[[ROW]] * 9, earlier=[[]], bounded=True, leases=[[report(state="resuming", lag_records=7)]] * 9)
    stuck.watch = done.watch  # type: ignore[method-assign]
    result = stuck.run()
    assert (result.note, result.complete, result.stuck, result.lag_records) == ("the copy ended", False, True, 7)
    gap = report(state="halted", error="gap", lag_records=7)
    halted = Run(plans=[[ROW]], earlier=[[]], bounded=True, leases=[[gap]])
    halted.watch = done.watch  # type: ignore[method-assign]
    result = halted.run()
    assert (result.over, result.complete, result.stuck) == (True, False, False)


def test_while_a_cluster_is_away_a_run_has_no_connections_and_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, log = engine_of(FLOW, monkeypatch), []
    outcomes: list[RunResult | ClusterUnavailable] = [
        ClusterUnavailable("no answer", cluster="B"),
        RunResult(note=run_watch.CLUSTER_AWAY, cluster_away=True),
        RunResult(note="done"),
    ]

    def outcome(*_: object) -> RunResult:
        log.append("run")
        one = outcomes.pop(0)
        if isinstance(one, ClusterUnavailable):
            raise one
        return one

    monkeypatch.setattr(engine, "_run", outcome)
    monkeypatch.setattr(engine, "close", lambda: log.append("close"))
    monkeypatch.setattr(outages, "any_away", lambda: True)
    monkeypatch.setattr(outages, "wait", lambda *_, **__: log.append("wait"))
    monkeypatch.setattr(outages, "suspect", lambda alias: alias == "B")
    assert engine.run(SimpleNamespace(left_s=60.0), lambda _: None).note == "done"
    assert log == ["wait", "run", "close"] * 2 + ["wait", "run"]


class Marks:
    """Stands in for the marks of an engine's runs."""

    made = 0
    deal = None

    def __init__(self, *_: object, **__: object) -> None:
        Marks.made += 1
        self.log: list[str] = []
        self.marks: list[list[RunMark]] = []
        self.is_refused = False

    def follow(self, _: Flow) -> None:
        pass

    def look(self) -> None:
        return None

    def adopt(self, _: None) -> None:
        pass

    def earlier(self) -> list[RunMark]:
        return self.marks.pop(0) if self.marks else []

    def others(self) -> list[RunMark]:
        return []

    def wait(self, _: float) -> None:
        self.log.append("wait")

    def claim(self, **_: bool) -> None:
        self.log.append("claim")
        if self.is_refused:
            raise ClusterUnavailable("its marks cannot be read", cluster="B")

    def release(self) -> None:
        self.log.append("release")


def engine_of(flow: Flow, monkeypatch: pytest.MonkeyPatch, *, bounded: bool = False) -> FunctionsEngine:
    Marks.made = 0
    monkeypatch.setattr(engine_module, "RunOrder", Marks)
    place: Any = SimpleNamespace(load=lambda: flow, bounded=bounded, flow="A->B", deployment="here")
    control: Any = SimpleNamespace(stopping=lambda: False, complain=lambda *_, **__: None, slots=lambda: None)
    nothing: Any = None
    engine = FunctionsEngine(place, control=control, memory=nothing)
    monkeypatch.setattr(engine._plans, "refuse_paused", lambda _flow: None)
    monkeypatch.setattr(engine, "_prepared", FLOW.connections)
    return engine


def test_a_first_run_opens_its_connections_side_by_side_and_the_next_one_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = engine_of(FLOW, monkeypatch)
    monkeypatch.setattr(engine, "_prepared", None)
    together = threading.Barrier(3, timeout=20)
    done: list[str] = []

    def meet(name: str) -> bool:
        together.wait()
        done.append(name)
        return True

    def refused() -> None:
        meet("marks")
        raise ClusterUnavailable("no answer", cluster="B")

    monkeypatch.setattr(marks_of(engine), "look", refused)
    monkeypatch.setattr(engine._plans, "prepare", lambda _: meet("plan"))
    monkeypatch.setattr(engine_module, "connect_slot", lambda *_, **__: meet("slot"))
    engine.prepare()
    engine.prepare()
    assert sorted(done) == ["marks", "plan", "slot"]


def test_a_claim_that_fails_leaves_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(FLOW, monkeypatch)
    marks_of(engine).is_refused = True
    with pytest.raises(ClusterUnavailable):
        engine.run(SimpleNamespace(left_s=60.0), lambda _: None)
    assert marks_of(engine).log == ["claim", "release"]


def paused(_: Flow) -> None:
    raise FlowPaused(flow="A->B", state="PAUSED", topic="mm2-configs.A.internal")


def test_a_run_of_a_paused_flow_ends_the_one_that_copies_and_leaves_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(FLOW, monkeypatch)
    monkeypatch.setattr(engine._plans, "refuse_paused", paused)
    marks_of(engine).marks = [[BEFORE], [BEFORE], [BEFORE], []]
    result = engine.run(SimpleNamespace(left_s=60.0), lambda _: None)
    assert (result.paused, result.copied) == (True, False)
    assert "is paused" in result.note
    assert marks_of(engine).log == ["claim", "wait", "release"]


def test_a_run_of_a_paused_flow_that_nothing_copies_has_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(FLOW, monkeypatch)
    monkeypatch.setattr(engine._plans, "refuse_paused", paused)
    assert engine.run(SimpleNamespace(left_s=60.0), lambda _: None).paused
    assert marks_of(engine).log == ["release"]


def test_a_copy_with_an_end_of_a_paused_flow_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(FLOW, monkeypatch, bounded=True)
    monkeypatch.setattr(engine._plans, "refuse_paused", paused)
    with pytest.raises(FlowPaused):
        engine.run(SimpleNamespace(left_s=60.0), lambda _: None)


def test_connections_that_change_during_a_run_are_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = [FLOW, FLOW.model_copy(update={"target": Cluster(alias="B", bootstrap_servers="c:1")})]
    engine = engine_of(FLOW, monkeypatch)
    monkeypatch.setattr(engine._place, "load", lambda: flows.pop(0) if len(flows) > 1 else flows[0])
    assert (
        engine.run(SimpleNamespace(left_s=60.0), lambda _: None).note == "the connections in the configuration changed"
    )
    assert Marks.made == 1
    assert marks_of(engine).log == ["claim", "release"]


def marks_of(engine: FunctionsEngine) -> Marks:
    engine._order_of(FLOW)
    return cast("Marks", engine._order)


def test_a_flow_of_spark_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(FLOW.model_copy(update={"engine": "spark"}), monkeypatch)
    result = engine.run(SimpleNamespace(left_s=60.0), lambda _: None)
    assert result == RunResult(note="mirrorless.engine is spark: the copy job copies the flow")
    assert Marks.made == 0


def test_a_run_that_was_cut_off_is_followed_by_another_as_long_as_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On AWS the next invocation may be a minute away."""
    time_left: Any = SimpleNamespace(left_s=60.0)
    cut_off = RunResult(note="cut off", copied=True, records=3, copied_bytes=30, waited_s=1.0, cut_off=True)
    outcomes: list[RunResult | ClusterUnavailable] = [
        cut_off,
        ClusterUnavailable("no answer", cluster="B"),
        replace(cut_off, records=2),
        replace(cut_off),
    ]
    begun = []

    def run(_engine: object, _time: object, _on_lease: object, begins: Any, *_: object) -> RunResult:  # noqa: ANN401
        begins()
        outcome = outcomes.pop(0)
        if not outcomes:
            time_left.left_s = 0.0
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(FunctionsEngine, "_run", run)
    monkeypatch.setattr(engine_module, "_PAUSE_S", 0.0)
    engine = FunctionsEngine(cast("Any", None), control=Control(), memory=SPARK_WORKER)
    result = engine.run(time_left, lambda _: None, begins=lambda: begun.append(True))
    assert (result.records, result.copied_bytes, result.waited_s, outcomes) == (8, 90, 1.0, [])
    assert len(begun) == 1
