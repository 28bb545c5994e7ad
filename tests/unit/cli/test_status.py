"""`mirrorless status` tells what it found, though something else could not be found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from mirrorless.cli import status
from mirrorless.clusters.target_state import TargetState
from mirrorless.copy.flow.status import FlowStatus
from mirrorless.errors import ClusterUnavailable, GapKind
from mirrorless.operation_log.records import OperationKind, OperationOutcome, Operations, OperationState, Request
from mirrorless.progress.records import Halt
from mirrorless.web.operations_reader import _applications

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.formats import Heartbeat
    from mirrorless.settings import Flow

REFUSED = "cluster B: A.heartbeats: Broker: Topic authorization failed; grant READ on it"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
    )
    found = FlowStatus(
        state=TargetState.PAUSED, topics=2, partitions=8, begun=8, lag_records=1234, halted={}, unknown={}
    )

    def refused(_flow: Flow) -> Heartbeat | None:
        raise ClusterUnavailable(REFUSED.removeprefix("cluster B: "), cluster="B")

    monkeypatch.setattr(status, "status_of", lambda _flow, **_: found)
    monkeypatch.setattr(status, "last_heartbeat", refused)
    monkeypatch.setattr(status, "unexplained_fences", lambda _flow, _ends: [])
    monkeypatch.setattr(status, "read_all", lambda *_: (Operations(), {}))
    return str(path)


def test_heartbeats_that_cannot_be_read_hide_nothing_of_the_flow(file: str) -> None:
    result = CliRunner().invoke(status.status, [file])
    assert result.exit_code == 2
    (row,) = [line for line in result.stdout.splitlines() if "A->B" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")][1:] == [
        "paused",
        "nothing",
        "2",
        "8",
        "8",
        "1,234",
        "unknown",
        "0",
    ]
    assert result.stderr == f"A->B: {REFUSED}\n"


def test_nor_in_json(file: str) -> None:
    result = CliRunner().invoke(status.status, [file, "--json"])
    assert result.exit_code == 2
    fields = json.loads(result.stdout)["flows"]["A->B"]
    assert (fields["lag_records"], fields["halted"], fields["last_heartbeat_ms"]) == (1234, [], None)
    assert fields["heartbeat_error"] == REFUSED


def test_a_lag_that_is_not_whole_is_no_success(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FlowStatus(
        state=TargetState.STARTED,
        topics=1,
        partitions=2,
        begun=2,
        lag_records=0,
        halted={},
        unknown={("orders", 1): "no leader at the moment"},
    )
    monkeypatch.setattr(status, "status_of", lambda _flow, **_: found)
    monkeypatch.setattr(status, "last_heartbeat", lambda _flow: None)
    result = CliRunner().invoke(status.status, [file])
    assert result.exit_code == 2
    assert result.stderr == "A->B: orders-1: no leader at the moment\n"
    (row,) = [line for line in result.stdout.splitlines() if "A->B" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert (cells[1], cells[2], cells[6]) == ("not copied", "nothing", "unknown")
    monkeypatch.setattr(status, "status_of", lambda _flow, **_: replace(found, lag_records=1_500))
    assert "│ over 1,500 │" in CliRunner().invoke(status.status, [file]).stdout
    fields = json.loads(CliRunner().invoke(status.status, [file, "--json"]).stdout)["flows"]["A->B"]
    assert (fields["lag_records"], fields["lag_at_least"]) == (None, 1_500)


def test_topics_that_are_not_visible_are_no_lag_of_0(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FlowStatus(state=TargetState.STARTED, topics=0, partitions=0, begun=0, lag_records=0, halted={}, unknown={})
    monkeypatch.setattr(status, "status_of", lambda _flow, **_: found)
    monkeypatch.setattr(status, "last_heartbeat", lambda _flow: None)
    result = CliRunner().invoke(status.status, [file])
    assert result.exit_code == 2
    assert "no topic that the flow replicates is visible on A; if it has any, grant the flow's user" in result.stderr
    assert "│ unknown │" in result.stdout


def test_operations_and_fences_that_cannot_be_read_are_unknown(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> list[str]:
        raise ClusterUnavailable("topic-configs: no answer", cluster="A")

    monkeypatch.setattr(status, "unexplained_fences", refused)
    monkeypatch.setattr(status, "read_all", lambda *_: (Operations(), {"B": "grant READ on mm2-operations.internal"}))
    monkeypatch.setattr(status, "last_heartbeat", lambda _flow: None)
    result = CliRunner().invoke(status.status, [file])
    assert result.exit_code == 2
    assert "A->B: whether a fence blocks writers is unknown: cluster A: topic-configs: no answer" in result.stderr
    assert "operations on B are unknown: grant READ on mm2-operations.internal" in result.stderr
    shown = json.loads(CliRunner().invoke(status.status, [file, "--json"]).stdout)
    assert shown["operations_unread"] == {"B": "grant READ on mm2-operations.internal"}


def moved(number: int, source: str, target: str) -> OperationState:
    """A switchover that completed."""
    request = Request(kind=OperationKind.SWITCHOVER, source=source, target=target)
    return OperationState(
        id=f"{source}-{target}",
        request=request,
        created_ms=0,
        number=number,
        outcome=OperationOutcome.COMPLETED,
        ended_ms=1_790_000_000_000,
    )


def test_where_applications_are(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "last_heartbeat", lambda _flow: None)
    operations = Operations()
    operations.by_id = {one.id: one for one in (moved(1, "A", "B"), moved(2, "B", "A"))}
    monkeypatch.setattr(status, "read_all", lambda *_: (operations, {}))
    assert "applications are on A since 2026-09-2" in CliRunner().invoke(status.status, [file]).stdout
    operations.by_id["A-B"].number = 2
    text = CliRunner().invoke(status.status, [file]).stdout
    assert "applications of A and B: it is unknown where they are: two operations have completed, each while" in text
    under_way = moved(3, "A", "B")
    under_way.outcome = OperationOutcome.RUNNING
    operations.by_id = {one.id: one for one in (moved(2, "B", "A"), under_way)}
    text = CliRunner().invoke(status.status, [file]).stdout
    assert "it is unknown where they are: switchover A-B from A to B is not finished" in text
    row = _applications(("A", "B"), operations, "")
    assert (row.is_known, row.cluster, row.text) == (False, None, "switchover A-B from A to B is not finished")


def test_records_that_the_target_lost_are_found(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = FlowStatus(
        state=TargetState.STARTED,
        topics=1,
        partitions=1,
        begun=1,
        lag_records=20,
        halted={},
        unknown={},
        lacking=("A.orders-0 ends at 80, before offset 100 up to which orders-0 was copied",),
    )
    monkeypatch.setattr(status, "status_of", lambda _flow, **_: found)
    monkeypatch.setattr(status, "last_heartbeat", lambda _flow: None)
    result = CliRunner().invoke(status.status, [file])
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (1, f"A->B: {found.lacking[0]}")


def test_partitions_of_a_topic_that_are_halted_alike_are_one_line(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def halt(kind: GapKind, offset: int) -> Halt:
        return Halt(epoch=1, offset=offset, kind=kind, reason="records are missing")

    line = (
        "orders was deleted and recreated on A: `mirrorless offsets reset FILE --flow 'A->B' --topic orders` copies it"
    )
    found = FlowStatus(
        state=TargetState.STARTED,
        topics=3,
        partitions=16,
        begun=16,
        lag_records=20,
        halted={
            **{("orders", number): halt(GapKind.CREATED_AGAIN, 1) for number in range(3)},
            **{("clicks", number): halt(GapKind.TRUNCATED, 70 + number) for number in range(12)},
            ("payments", 4): halt(GapKind.TRUNCATED, 9),
        },
        unknown={},
        created_again=(line,),
    )
    monkeypatch.setattr(status, "status_of", lambda _flow, **_: found)
    monkeypatch.setattr(status, "last_heartbeat", lambda _flow: None)
    result = CliRunner().invoke(status.status, [file])
    assert [one for one in result.stdout.splitlines() if one.startswith("A->B: ")] == [
        "A->B: clicks: 12 partitions are halted (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more), 0 at offset 70: records are "
        "missing",
        "A->B: payments-4 is halted at offset 9: records are missing",
        f"A->B: {line.replace('FILE', file)}",
    ]
