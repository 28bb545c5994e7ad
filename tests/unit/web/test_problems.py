"""What needs an operator: which problems there are, and in which order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mirrorless.web import problems as module
from mirrorless.web.problems import problems
from mirrorless.web.snapshot import ClusterState, FlowState, ReadingRow, TopicState
from tests.support.pages import cluster, drill, flow, halted, operation, snapshot, topic

FILE = "mm 2.properties"
DOCS = Path(__file__).parents[3] / "docs"


def test_nothing_is_a_problem_of_flows_that_are_caught_up() -> None:
    assert problems(snapshot(), FILE) == ()


def test_the_most_urgent_is_first() -> None:
    found = snapshot(
        clusters=(cluster("A", state=ClusterState.SLOW, answer_ms=1_300), cluster("B")),
        flows=(flow(state=FlowState.PAUSED, copiers=()), flow("B->A", copiers=()), flow("A->C", rpo_s=9.0, lag_s=10.0)),
        topics=(topic(flow="A->C", state=TopicState.UNREACHABLE, error="no leader"),),
        halted=(halted(),),
        operations=(operation(),),
        drills=(drill(),),
    )
    assert [one.kind for one in problems(found, FILE)] == [
        *("gap", "no process copies", "beyond RPO", "partitions unreachable", "operation not finished"),
        *("flow paused", "cluster slow", "drill failed"),
    ]


def test_partitions_that_are_halted_alike_are_one_problem() -> None:
    rows = tuple(halted(partition=number, offset=1_000 + number) for number in range(100))
    (one,) = problems(snapshot(halted=(*rows,)), FILE)
    assert one.text.startswith(
        "RETENTION: retention deleted 30 records before they were copied. Halted: partitions 0 at"
    )
    assert "9 at offset 1,009 and 90 more. 3,000 records missing." in one.text
    reset = "mirrorless offsets reset 'mm 2.properties' --flow 'A->B' --topic orders"
    assert [fix.command for fix in one.fixes] == ["mirrorless.on.gap=continue", reset]
    (single,) = problems(snapshot(halted=rows[:1]), FILE)
    assert single.fixes[1].command == f"{reset} --partition 0"
    (recreated,) = problems(snapshot(halted=(replace(rows[0], gap="CREATED_AGAIN"),)), FILE)
    assert (recreated.title, recreated.fixes[0].command) == ("orders was deleted and recreated", reset)
    (stopped,) = problems(snapshot(halted=(replace(rows[0], gap=None),)), FILE)
    assert (stopped.kind, [fix.command for fix in stopped.fixes]) == ("halted", [None])


def test_an_outage_is_one_problem_of_each_cluster() -> None:
    error = "cluster A: no answer from a:1"
    reading = ReadingRow(table="groups", flow="A->B", read_ms=None, error=f"groups: {error}", note="")
    found = snapshot(
        clusters=(cluster("A", state=ClusterState.UNAVAILABLE, error=error), cluster("B")),
        flows=(flow(error=error, lag_records=None, rpo_s=1.0, lag_s=None),),
        readings=(reading,),
    )
    (one,) = problems(found, FILE)
    assert (one.kind, one.subject) == ("cluster unavailable", "A")
    refused = replace(reading, error="cluster B: not authorized")
    assert [row.kind for row in problems(replace(found, readings=(refused,)), FILE)][1:] == ["not readable"]


@pytest.mark.parametrize(("lag_s", "kinds"), [(None, []), (4.0, []), (6.0, ["near RPO"]), (11.0, ["beyond RPO"])])
def test_a_lag_is_compared_with_the_rpo(lag_s: float | None, kinds: list[str]) -> None:
    assert [one.kind for one in problems(snapshot(flows=(flow(lag_s=lag_s, rpo_s=10.0),)), FILE)] == kinds


def test_every_page_of_the_manual_that_is_named_exists() -> None:
    source = Path(module.__file__).read_text()
    named = set(re.findall(r'"([a-z-]+\.md)(?:#([a-z-]+))?"', source))
    assert len(named) > 5
    for page, section in named:
        titles = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not section or section in anchors, (page, section)
