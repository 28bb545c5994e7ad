"""Heartbeats and checkpoints are left to the copy function while it copies."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mirrorless.errors import ClusterUnavailable
from mirrorless.functions import copying
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.copying import copied_by_functions
from mirrorless.functions.runtime_context import RuntimeContext, within
from mirrorless.progress.engine_choice import EngineChoice
from mirrorless.progress.run_marks import RunMark, deployment_of
from mirrorless.settings import Cluster, Flow

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
MARK = RunMark("one", "topics", claim=5, renewed_ms=0, valid_ms=1, engine="functions")


class Reader:
    """Marks that the test gives."""

    marks: list[RunMark] | None
    choice: EngineChoice | None = None
    made = closed = 0

    def __init__(self, flow: Flow, *, patience_s: float) -> None:
        assert flow.source.alias == "A"
        assert patience_s <= 5
        Reader.made += 1

    def read(self) -> Any:  # noqa: ANN401 -- stands in for the marks
        marks = Reader.marks
        if marks is None:
            raise ClusterUnavailable("no answer", cluster="B")

        def first(flow: Flow, *, now_ms: int, now: float, deployment: str) -> RunMark | None:
            assert abs(now_ms / 1000 - time.time()) < 60
            assert abs(now - time.monotonic()) < 60
            assert deployment == deployment_of("s3://bucket/key", "A->B")
            return marks[0] if marks else None

        return SimpleNamespace(first=first, chosen=lambda _flow, _deployment: Reader.choice)

    def close(self) -> None:
        Reader.closed += 1


@pytest.fixture(autouse=True)
def _readers(monkeypatch: pytest.MonkeyPatch) -> None:
    Reader.made = Reader.closed = 0
    Reader.choice = None
    monkeypatch.setattr(copying, "MarkReader", Reader)
    monkeypatch.setattr(copying, "environment", lambda: SimpleNamespace(config="s3://bucket/key"))
    monkeypatch.setattr(copying, "_readers", ClientCache(Reader.close))


@pytest.mark.parametrize(
    ("marks", "copied"),
    [
        ([], False),
        ([MARK], True),
        ([replace(MARK, engine="spark")], False),
        ([replace(MARK, engine="spark"), MARK], False),  # it waits for its turn
        ([MARK, replace(MARK, engine="spark")], True),
    ],
)
def test_a_mark_of_the_functions_says_that_they_copy(marks: list[RunMark], *, copied: bool) -> None:
    Reader.marks = marks
    assert copied_by_functions(FLOW) is copied
    assert copied_by_functions(FLOW) is copied
    assert Reader.made == 1


@pytest.mark.parametrize(("engine", "copied"), [(None, True), ("functions", True), ("spark", False)])
def test_between_invocations_for_an_idle_flow_the_choice_says_it(engine: str | None, *, copied: bool) -> None:
    Reader.marks = []
    if engine is not None:
        Reader.choice = EngineChoice.parse({"engine": engine, "sinceMs": 1, "reason": "r"})
    assert copied_by_functions(FLOW.model_copy(update={"copy_idle_exit": True})) is copied
    assert copied_by_functions(FLOW) is False


def test_where_that_cannot_be_read_the_function_does_its_work_itself() -> None:
    Reader.marks = None
    assert copied_by_functions(FLOW) is False
    assert (Reader.made, Reader.closed) == (1, 1)
    Reader.marks = [MARK]
    assert copied_by_functions(FLOW) is True
    assert Reader.made == 2


def test_a_flow_on_spark_and_one_on_one_machine_are_not_read() -> None:
    Reader.marks = [MARK]
    assert copied_by_functions(FLOW.model_copy(update={"engine": "spark"})) is False
    nothing: Any = None
    with within(RuntimeContext(variables={}, sink=nothing, jobs=nothing, copy=nothing)):
        assert copied_by_functions(FLOW) is False
    assert Reader.made == 0
