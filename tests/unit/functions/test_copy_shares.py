"""The invocation of share 0 starts those of the other shares, beside its own work."""

from __future__ import annotations

import json
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.functions.run_result import RunResult
from mirrorless.copy.engines.outcome import CopyOutcome
from mirrorless.functions import copy
from mirrorless.functions.copy import _Others
from mirrorless.functions.events import CopyShareEvent, parse
from mirrorless.functions.runtime_context import RuntimeContext, within
from mirrorless.progress.run_marks import Share
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.functions.runtime_context import Sink


class Lambda:
    """The client of Lambda; each call is kept, and refused if the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[dict[str, Any]] = []
        self.refused: set[int] = set()

        @contextmanager
        def client(service: str, *, region: str | None) -> Iterator[Lambda]:
            assert (service, region) == ("lambda", None)
            yield self

        monkeypatch.setattr(copy, "client", client)
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "orders-copy")

    def invoke(self, **arguments: Any) -> None:  # noqa: ANN401 -- boto3's
        if json.loads(arguments["Payload"])["number"] in self.refused:
            raise ValueError("lambda answered TooManyRequestsException: Rate Exceeded.")
        self.calls.append(arguments)


class Lines:
    """A sink that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def tell(self, level: str, what: str, **_: object) -> None:
        self.lines.append((level, what))


def start(number: int, of: int) -> list[tuple[str, str]]:
    """Start the other shares; returns the lines of the log."""
    sink = Lines()
    with _Others(Share(number, of), cast("Sink", sink)) as others:
        others.start()
        others.start()  # of the run that follows one that was cut off
    return sink.lines


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Lambda:
    return Lambda(monkeypatch)


def test_every_other_share_has_an_event_once(functions: Lambda) -> None:
    assert start(0, 3) == []
    assert [(call["FunctionName"], call["InvocationType"]) for call in functions.calls] == [
        ("orders-copy", "Event")
    ] * 2
    events = [parse(json.loads(call["Payload"])) for call in functions.calls]
    assert events == [CopyShareEvent(number=1, of=3), CopyShareEvent(number=2, of=3)]


def test_a_share_that_cannot_be_started_is_a_line_and_the_others_are_started(functions: Lambda) -> None:
    functions.refused = {1, 3}
    assert start(0, 5) == [
        (
            "error",
            "function orders-copy: starting shares 1, 3 of 5 failed: "
            "lambda answered TooManyRequestsException: Rate Exceeded.",
        )
    ]
    assert [json.loads(call["Payload"])["number"] for call in functions.calls] == [2, 4]


def test_only_share_0_of_several_starts_others(functions: Lambda) -> None:
    assert start(0, 1) == start(1, 3) == []
    assert functions.calls == []


class Account:
    """A bounded copy of `mirrorless run`."""

    bounded = True
    over = False
    function_control = Control()

    def __init__(self) -> None:
        self.outcomes: list[CopyOutcome] = []

    def wait_to_begin(self, _: float) -> bool:
        return True

    def ended(self, outcome: CopyOutcome) -> None:
        self.outcomes.append(outcome)


def test_a_bounded_copy_that_ends_at_a_halted_partition_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the next event would begin it again, every two seconds."""
    account: Any = Account()
    ended = RunResult(note="the copy ended", over=True, copied=True)
    engine = SimpleNamespace(run=lambda *_, **__: ended, close=lambda: None)
    flow = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
    invocation: Any = SimpleNamespace(event=None, flow=flow, budget=None, measure=lambda *_: None, sink=None)
    monkeypatch.setattr(copy, "_new", lambda *_: copy._Warm(cast("Any", engine), cast("Any", None)))
    nothing: Any = None
    with within(RuntimeContext(variables={}, sink=nothing, jobs=nothing, copy=account)):
        copy.copy_partitions(invocation)
    copy._warm.forget("A->B 0/1")
    assert account.outcomes == [CopyOutcome(complete=False, stuck=False)]
