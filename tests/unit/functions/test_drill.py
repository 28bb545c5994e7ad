"""The weekly drill: its metrics, its report, its answer, and when a flow is not drilled."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.clusters.target_state import TargetState
from mirrorless.errors import AwsError, ClusterUnavailable, ConfigurationError
from mirrorless.functions import drill
from mirrorless.functions.invocation import Invocation
from mirrorless.functions.runtime_context import RuntimeContext, within
from mirrorless.metrics import METRICS, Emitter
from mirrorless.operations.drill.facts import BacklogFacts, NotCopied
from mirrorless.operations.drill.report import report_of
from mirrorless.operations.results import UnreadPart
from tests.support.drill_facts import facts, flow_with, status_with

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.operations.drill.report import DrillReport

BEGAN_MS = 1_790_000_000_000
LAGGING = BacklogFacts(partitions={("orders", 1): NotCopied(7, True, 6_500)}, read_ms=10_000)
FIGURES = {"drill-checks-failed", "drill-checks-not-done", "drill-rto-seconds"}


@dataclass
class Sink:
    """Keeps what is logged, as level and fields."""

    told: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def tell(self, level: str, text: str, **fields: object) -> None:
        self.told.append((level, {"text": text, **fields}))


@dataclass
class Drilled:
    """What an invocation did."""

    answer: dict[str, Any]
    measured: dict[str, list[float]]
    told: list[tuple[str, dict[str, object]]]
    folder: Path


class Drill:
    """Runs the function with a report of these facts; keeps which flows were drilled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch = monkeypatch
        self.folder = folder
        self.reports = str(folder / "drill" / "stack-forward")
        self.drilled: list[str] = []
        monkeypatch.setattr(drill, "Admin", lambda _: None)

    def run(self, **changes: object) -> Drilled:
        """Run it; `changes` are of the facts."""
        return self._run(report_of(facts(**changes), began_ms=BEGAN_MS, ended_ms=BEGAN_MS + 4_000))

    def fail(self, error: Exception) -> None:
        """Run it with a cluster that does not answer."""
        self._run(error)

    def _run(self, given: DrillReport | Exception) -> Drilled:
        def drill_flow(_: object, flow: Any) -> DrillReport:  # noqa: ANN401 -- the function's
            self.drilled.append(flow.name)
            if isinstance(given, Exception):
                raise given
            return given

        self._patch.setattr(drill, "drill_flow", drill_flow)
        sink, anything = Sink(), cast("Any", SimpleNamespace())
        variables = {"MIRRORLESS_CONFIG": "mm2.properties", "MIRRORLESS_FLOW": "a->b"}
        if self.reports:
            variables["MIRRORLESS_REPORTS"] = self.reports
        context = RuntimeContext(variables=variables, sink=cast("Any", sink), jobs=anything, copy=anything)
        invocation = Invocation(anything, anything, anything, flow_with(), cast("Any", sink), "drill")
        with within(context):
            answer = drill.rehearse(invocation)
        return Drilled(answer, invocation.measured, sink.told, self.folder / "drill/stack-forward/a-b" / str(BEGAN_MS))


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Drill:
    return Drill(monkeypatch, tmp_path)


def test_a_drill_in_which_nothing_failed(function: Drill) -> None:
    done = function.run()
    assert done.answer == {
        "status": "warning",
        "failed": [],
        "not_checked": [],
        "warnings": ["without the source"],
        "rpo_records": 0,
        "rpo_s": 0.0,
        "rto_s": 1.5,
        "report": str(done.folder),
    }
    assert done.measured == {
        "drill-checks-failed": [0],
        "drill-checks-not-done": [0],
        "drill-rpo-records": [0],
        "drill-rpo-seconds": [0.0],
        "drill-rto-seconds": [1.5],
    }
    assert set(done.measured) == {one.name for one in METRICS if one.emitter is Emitter.DRILL}
    assert done.told == []
    json.dumps(done.answer)


def test_failed_checks_are_metrics_and_lines_of_the_log_and_no_error(function: Drill) -> None:
    done = function.run(
        flow=flow_with(rpo_seconds=1.0), backlog=LAGGING, counts={"orders": (2, 1)}, acls=UnreadPart("no right")
    )
    assert done.answer["status"] == "failed"
    assert done.answer["failed"] == ["lag", "topics and partitions"]
    assert done.answer["not_checked"] == ["rights of principals"]
    assert (done.measured["drill-checks-failed"], done.measured["drill-checks-not-done"]) == ([2], [1])
    assert (done.measured["drill-rpo-records"], done.measured["drill-rpo-seconds"]) == ([7], [3.5])
    assert (done.answer["rpo_records"], done.answer["rpo_s"]) == (7, 3.5)
    assert [(level, one["text"]) for level, one in done.told] == [
        ("error", "a check of the drill failed: lag"),
        ("error", "a check of the drill failed: topics and partitions"),
        ("error", "a check of the drill could not be done: rights of principals"),
    ]
    assert done.told[2][1]["reason"] == "no right"


def test_a_figure_that_is_not_known_is_not_emitted(function: Drill) -> None:
    unknown = function.run(backlog=UnreadPart("no answer"))
    assert set(unknown.measured) == FIGURES
    of_unknown_age = BacklogFacts(partitions={("orders", 0): NotCopied(3, True, None)}, read_ms=10_000)
    assert set(function.run(backlog=of_unknown_age).measured) == {*FIGURES, "drill-rpo-records"}


def test_the_report_is_stored_as_json_and_as_a_page(function: Drill) -> None:
    done = function.run()
    assert json.loads((done.folder / "result.json").read_text())["flows"]["a->b"]["began_ms"] == BEGAN_MS
    assert (done.folder / "result.html").read_text().startswith("<!doctype html>")


def test_a_report_that_cannot_be_stored_is_an_error_with_its_reason(function: Drill) -> None:
    (function.folder / "drill").write_text("a file where the folder should be")
    with pytest.raises(AwsError, match="the report of the drill is not stored: "):
        function.run()


def test_a_cluster_that_does_not_answer_is_an_error(function: Drill) -> None:
    with pytest.raises(ClusterUnavailable, match="cluster a: no answer"):
        function.fail(ClusterUnavailable("no answer", cluster="a"))


def test_a_flow_that_waits_for_its_turn_is_not_drilled(function: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill, "waits_for_its_turn", lambda *_: "a->b is stopped: applications write to b")
    done = function.run()
    assert done.answer == {"note": "not drilled: a->b is stopped: applications write to b"}
    assert function.drilled == []
    # An alarm of an earlier drill ends.
    assert done.measured == {"drill-checks-failed": [0], "drill-checks-not-done": [0]}


def test_two_flows_of_which_neither_copies_are_a_failed_check(function: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill, "waits_for_its_turn", lambda *_: "a->b is stopped: applications write to b")
    monkeypatch.setattr(drill, "states_in_turns", lambda _: dict.fromkeys(("a->b", "b->a"), TargetState.STOPPED))
    done = function.run()
    assert "neither a->b nor the opposite flow copies: run `mirrorless operation FILE close`" in done.answer["note"]
    assert done.measured == {"drill-checks-failed": [1], "drill-checks-not-done": [0]}


def test_a_paused_flow_is_drilled(function: Drill) -> None:
    done = function.run(status=status_with(state=TargetState.PAUSED))
    assert function.drilled == ["a->b"]
    assert (done.answer["status"], done.answer["warnings"]) == ("warning", ["replication", "without the source"])


def test_nothing_is_read_without_a_folder_for_the_report(function: Drill) -> None:
    function.reports = ""
    with pytest.raises(ConfigurationError, match="MIRRORLESS_REPORTS: is not set"):
        function.run()
    assert function.drilled == []
