"""Runs that copy a flow with different numbers of functions, or without one of them, are found by their marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.doctor.findings import Status
from mirrorless.doctor.running_copies import compared, running_copies
from mirrorless.progress.run_marks import RunMark, Share
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.settings import Flow


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return flow_of(tmp_path)


def flow_of(folder: Path, lines: str = "") -> Flow:
    file = folder / "mm2.properties"
    file.write_text(f"clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\n{lines}")
    return load(str(file)).flow("a->b")


def function(number: int, of: int) -> RunMark:
    return RunMark(f"{number}/{of}", "", number, 0, 60_000, engine="functions", share=Share(number, of))


SPARK = RunMark("spark", "", 0, 0, 60_000)


@pytest.mark.parametrize(
    ("marks", "text"),
    [
        ([], "nothing copies at present"),
        ([SPARK], "copied by Spark"),
        ([function(0, 1)], "copied by functions (1)"),
        ([function(0, 2), function(1, 2), function(1, 2)], "copied by functions (2)"),
        ([function(0, 2), SPARK], "copied by functions (2) and Spark"),
    ],
    ids=["none", "Spark", "one function", "two functions and a successor", "a change of the engine"],
)
def test_runs_that_share_the_flow(flow: Flow, marks: list[RunMark], text: str) -> None:
    found = compared(flow, marks)
    assert (found.status, found.text, found.cluster) == (Status.OK, text, "b")


def test_different_numbers_at_the_same_time(flow: Flow) -> None:
    found = compared(flow, [function(0, 2), function(1, 2), function(0, 3)])
    assert (found.status, found.text) == (
        Status.WARNING,
        "functions copy with different CopyFunctions: 2 and 3",
    )
    assert found.fix is not None


def test_a_share_that_no_function_copies(flow: Flow, tmp_path: Path) -> None:
    found = compared(flow, [function(0, 3), function(2, 3)])
    assert (found.status, found.text) == (Status.WARNING, "no function copies share 1 of 3")
    assert found.fix is not None
    idle = flow_of(tmp_path, "a->b.mirrorless.copy.idle.exit=true\n")
    assert compared(idle, [function(0, 3)]).status is Status.OK


def test_a_flow_without_a_progress_topic_is_not_asked(flow: Flow) -> None:
    assert running_copies(flow, set()).text == "nothing has copied yet"
