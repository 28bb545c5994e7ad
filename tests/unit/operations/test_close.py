"""A fence that another process removes while `close` runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.operation_log import records
from mirrorless.operation_log.records import OperationKind, OperationOutcome, Operations, Request, StepRecord, StepState
from mirrorless.operations import close
from mirrorless.operations.cluster_pair import ClusterPair
from tests.support.drill_facts import flow_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.operation_log.records import Entry
    from mirrorless.settings import Settings

FENCED = {"topics": {"t": 1}, "fence": "acl", "planned": {"denied": ["t"]}}


class Logs:
    """The operations of two clusters, and what each further look at them finds."""

    def __init__(self, *numbers: int) -> None:
        self.operations = Operations()
        self.later: list[Entry] = []
        for number in numbers:
            self.complete(str(number), number)

    def complete(self, operation: str, number: int) -> None:
        request = Request(kind=OperationKind.SWITCHOVER, source="a", target="b", fence="acl")
        fence = StepRecord(state=StepState.DONE, began_ms=0, ended_ms=0, data=FENCED)
        own: dict[str, Any] = {"owner": "o", "term": 1}
        self.take(
            records.begin(operation, request, number=number, ms=0),
            records.claim(operation, text="", ms=0, **own),
            records.step(operation, "fence", fence, **own),
            records.end(operation, OperationOutcome.COMPLETED, ms=0, **own),
        )

    def take(self, *entries: Entry) -> None:
        for one in entries:
            self.operations.take(one.key, one.value)

    def look(self, alias: str, *, besides: str) -> set[str]:
        self.take(*self.later)
        return self.operations.fenced_on(alias, besides=besides)


class Fence:
    """Counts how often it is removed."""

    def __init__(self) -> None:
        self.removed = 0

    def remove(self, planned: dict[str, Any]) -> None:
        assert planned == FENCED["planned"]
        self.removed += 1

    def left(self, _: object) -> Iterable[str]:
        return []


@pytest.fixture
def fence(monkeypatch: pytest.MonkeyPatch) -> Fence:
    fence = Fence()
    monkeypatch.setattr(close, "fence_of", lambda *_: fence)
    return fence


def closed(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    flow = flow_with()
    settings = cast("Settings", SimpleNamespace(flows=[flow], file="mm2.properties"))
    pair = SimpleNamespace(
        settings=settings,
        forward=flow,
        reverse=None,
        aliases=frozenset("ab"),
        read=lambda: (logs.operations, {}),
        fenced_topics=logs.look,
        failures={},
        logs={},
        close=lambda: None,
    )
    monkeypatch.setattr(ClusterPair, "of", lambda *_: pair)
    monkeypatch.setattr(close, "unexplained_fences", lambda *_: [])
    monkeypatch.setattr(close, "states_in_turns", lambda _: {})
    return close.close_fence(settings)


def test_a_fence_that_another_close_removes_meanwhile_is_removed(fence: Fence, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs(1)
    logs.later = [records.lifted("1", ["t"], by="operation close", ms=0)]
    assert closed(logs, monkeypatch) == ["1: the fence on a is removed"]
    assert fence.removed == 1


def test_a_second_fence_that_is_removed_meanwhile_is_left_to_the_other_process(
    fence: Fence, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(1, 2)
    logs.later = [records.lifted(one, ["t"], by="operation close", ms=0) for one in ("1", "2")]
    assert closed(logs, monkeypatch) == ["1: the fence on a is removed"]
    assert fence.removed == 1
