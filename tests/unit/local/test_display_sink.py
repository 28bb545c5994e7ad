"""What a function says is told once; what fails once the run is to end is not, unless it is certain."""

from __future__ import annotations

from typing import Any

from mirrorless.clusters.identity import Ends
from mirrorless.local.display_sink import DisplaySink
from mirrorless.metadata.actions import CreateTopic, Problem
from mirrorless.metadata.apply import Applied
from mirrorless.metadata.sync_pass import SyncPass
from tests.support.heard import Heard


def refused(topic: str, error: str = "3 replicas cannot be had") -> Applied:
    return Applied(CreateTopic(topic=topic, partitions=1, replication_factor=3, reason="r"), error)


def found(*applied: Applied, **fields: tuple[str, ...] | tuple[Problem, ...]) -> SyncPass:
    given: dict[str, Any] = {"ends": Ends("a", "b"), "applied": applied, "left_out": (), "problems": (), "notes": ()}
    return SyncPass(**given | fields)


def test_what_failed_the_last_time_for_the_same_reason_is_not_told_again() -> None:
    heard = Heard()
    sink = DisplaySink("A->B", "topic_discovery", heard, ended=lambda: False)
    problem = Problem(topic="t", reason="cannot be described")
    one, two = refused("A.t"), refused("A.u")
    for applied in ((one,), (one, two), (), (one,)):
        sink.discovered(found(*applied, problems=(problem,), warnings=("one broker",)))
    assert [told.applied for _, told in heard.passes] == [(one,), (two,), (), (one,)]
    assert [told.problems for _, told in heard.passes] == [(problem,), (), (), ()]
    assert heard.warnings == [("A->B", "one broker")]
    assert sink.found is not None
    assert sink.found.failures == [one]


def test_topics_that_are_refused_for_one_reason_are_one_line_with_a_count() -> None:
    grown = Applied(refused("A.w").action, None)
    lines = list(found(refused("A.t"), refused("A.u"), refused("A.v", "no right"), grown, refused("A.x")).lines())
    assert [(fields["topic"], fields.get("error")) for _, fields in lines] == [
        ("A.t", "3 replicas cannot be had (and 2 more topics)"),
        ("A.v", "no right"),
        ("A.w", None),
    ]


def test_at_the_end_only_what_is_certain_is_told() -> None:
    heard, ended = Heard(), False
    sink = DisplaySink("A->B", "heartbeat", heard, ended=lambda: ended)
    sink.tell("warning", "left")
    ended = True
    sink.trouble("cluster A: no answer")
    sink.tell("error", "group g: no answer")
    sink.trouble("TypeError: a mistake", certain=True)
    assert not sink.went_well
    assert heard.troubles == [("A->B", "heartbeat: left"), ("A->B", "heartbeat: TypeError: a mistake")]


def test_while_a_cluster_is_away_only_what_is_certain_is_told() -> None:
    heard = Heard()
    sink = DisplaySink("A->B", "checkpoint", heard, ended=lambda: False, away=lambda: True)
    sink.trouble("cluster B: no answer")
    sink.trouble("the handler raised KeyError", certain=True)
    assert heard.troubles == [("A->B", "checkpoint: the handler raised KeyError")]
    assert not sink.went_well
