"""Two snapshots become events."""

from __future__ import annotations

from dataclasses import replace

from mirrorless.web.changes import Change, changes
from mirrorless.web.snapshot import ClusterState, FlowState, Level, OperationRow
from tests.support.pages import cluster, drill, flow, halted, operation, snapshot


def test_nothing_new_is_no_event() -> None:
    assert changes(snapshot(), snapshot()) == []
    assert changes(None, snapshot()) == []


def test_a_gap_appears_and_disappears() -> None:
    with_gap = snapshot(halted=(halted(),))
    (appeared,) = changes(snapshot(), with_gap)
    assert appeared[:3] == (Level.ERROR, "A->B", "gap")
    assert appeared.text.startswith("orders-0 halted at offset 120: retention")
    assert changes(with_gap, snapshot()) == [Change(Level.INFO, "A->B", "resumed", "orders-0 continues")]
    assert changes(None, with_gap) == [appeared]


def test_a_cluster_stops_and_begins_to_answer() -> None:
    away = snapshot(clusters=(cluster("A", state=ClusterState.UNAVAILABLE, error="cluster A: no answer"), cluster("B")))
    assert changes(snapshot(), away) == [Change(Level.ERROR, "", "cluster", "cluster A: no answer")]
    assert changes(away, snapshot()) == [Change(Level.INFO, "", "cluster", "cluster A answers again")]


def test_a_flow_is_paused_and_copied_by_nothing() -> None:
    paused = snapshot(flows=(flow(state=FlowState.PAUSED, copiers=()),))
    assert changes(snapshot(), paused) == [
        Change(Level.WARNING, "A->B", "state", "the flow is paused"),
        Change(Level.INFO, "A->B", "engine", "copied by no process"),
    ]


def test_a_step_of_an_operation_ends() -> None:
    def at(state: str) -> OperationRow:
        row = operation()
        return replace(row, steps=(replace(row.steps[0], state=state),))

    found = changes(snapshot(operations=(at("begun"),)), snapshot(operations=(at("done"),)))
    assert found == [Change(Level.INFO, "", "operation", "switchover from A to B: fence: 3 topics")]


def test_a_drill_is_stored() -> None:
    old, new = drill(), drill(1_790_000_600_000)
    before, after = snapshot(drills=(old,), at_ms=new.ended_ms), snapshot(drills=(new, old), at_ms=new.ended_ms + 1)
    assert changes(before, after) == [Change(Level.ERROR, "A->B", "drill", "drill: 1 check failed")]
    passed = replace(after, drills=(replace(new, status="ok", problems=()), old))
    assert changes(before, passed) == [Change(Level.INFO, "A->B", "drill", "drill: ok")]
    assert changes(snapshot(at_ms=new.ended_ms + 600_000), replace(after, at_ms=new.ended_ms + 602_000)) == []
    assert changes(None, after) == []
