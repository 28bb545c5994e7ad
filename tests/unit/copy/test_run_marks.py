"""Which of several runs is first, by the marks that they keep in the progress topic."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mirrorless.progress.engine_choice import EngineChoice
from mirrorless.progress.records import parse
from mirrorless.progress.run_marks import RunMarks, Share, Work, choice_key, deployment_of, is_mark, key_of
from mirrorless.settings import Cluster, Flow

NOW_MS = 1_700_000_000_000
VALID_MS = 20_000
FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))


def take(
    marks: RunMarks,
    run: str,
    offset: int,
    *,
    renewed_ms: int = NOW_MS,
    claim: int | None = None,
    is_news: bool = True,
) -> None:
    said = {"renewedMs": renewed_ms, "validMs": VALID_MS} | ({} if claim is None else {"claim": claim})
    assert marks.take(key_of(FLOW, run), json.dumps(said).encode(), offset, now=0.0, is_news=is_news)


def first(marks: RunMarks, *, now: float = 1.0) -> str | None:
    mark = marks.first(FLOW, now_ms=NOW_MS, now=now)
    return None if mark is None else mark.run


def test_the_earliest_claim_is_first_however_often_it_was_renewed() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5)
    take(marks, "two", 7)
    take(marks, "one", 9, claim=5)
    assert first(marks) == "one"
    read_later = RunMarks("A")  # compaction took the first mark of one
    take(read_later, "two", 7)
    take(read_later, "one", 9, claim=5)
    assert first(read_later) == "one"


@pytest.mark.parametrize("renewed_ms", [NOW_MS - VALID_MS, NOW_MS + VALID_MS, 0])
def test_a_mark_that_is_not_renewed_does_not_count(renewed_ms: int) -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=renewed_ms - 5_000, is_news=False)
    take(marks, "one", 6, renewed_ms=renewed_ms, claim=5, is_news=False)  # the segment was not compacted yet
    assert first(marks) is None
    # Clocks may be wrong by any time: it is to be watched, until it was for as long as it is valid.
    assert [mark.run for mark in marks.suspects(FLOW, now_ms=NOW_MS, now=0.0)] == ["one"]
    assert marks.suspects(FLOW, now_ms=NOW_MS, now=VALID_MS / 1000) == []
    assert marks.expired(FLOW, now_ms=NOW_MS, now=1.0) == [key_of(FLOW, "one")]


def test_a_renewal_that_comes_after_the_deletion_does_not_count() -> None:
    """As behind a link that was cut; a query that was started again claims again, with the same name."""
    marks = RunMarks("A")
    take(marks, "one", 5)
    marks.take(key_of(FLOW, "one"), None, 9, now=0.0, is_news=True)
    take(marks, "one", 10, claim=5)
    assert first(marks) is None
    take(marks, "one", 11)
    take(marks, "one", 12, claim=11)
    assert first(marks) == "one"


def test_a_mark_that_is_taken_back_does_not_count() -> None:
    marks = RunMarks("A")
    take(marks, "two", 7)
    assert first(marks) == "two"
    assert marks.take(key_of(FLOW, "two"), None, 8, now=0.0, is_news=True)
    assert first(marks) is None


def test_a_mark_of_a_clock_that_is_ahead_counts_no_longer_than_it_is_valid() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=NOW_MS + VALID_MS - 1, is_news=False)
    take(marks, "two", 6, renewed_ms=NOW_MS + 2 * VALID_MS)
    assert [mark.run for mark in marks.valid(FLOW, now_ms=NOW_MS, now=VALID_MS / 1000 - 1)] == ["one", "two"]
    assert marks.valid(FLOW, now_ms=NOW_MS, now=VALID_MS / 1000) == []


def test_marks_of_other_files_show_whether_they_were_renewed() -> None:
    marks = RunMarks("A")
    other = FLOW.model_copy(update={"topics": ("other",)})
    take(marks, "one", 5, is_news=False)
    assert [(mark.run, mark.is_news) for mark in marks.of_others(other, now=1.0, deployment="")] == [("one", False)]
    assert marks.of_others(FLOW, now=1.0, deployment="") == []
    take(marks, "one", 6, claim=5)
    assert [(mark.run, mark.is_news) for mark in marks.of_others(other, now=1.0, deployment="")] == [("one", True)]
    assert marks.of_others(other, now=VALID_MS / 1000, deployment="") == []


def test_a_mark_that_is_renewed_counts_whatever_its_clock_says() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=0, is_news=False)
    assert first(marks, now=1.0) is None
    take(marks, "one", 6, renewed_ms=5_000, claim=5)
    assert first(marks, now=1.0) == "one"
    assert first(marks, now=1.0 + VALID_MS / 1000) is None


@pytest.mark.parametrize("renewed_ms", [NOW_MS, NOW_MS - 120_000, NOW_MS + 120_000])
def test_who_stops_a_flow_watches_each_mark_for_its_validity_whatever_clocks_say(renewed_ms: int) -> None:
    """Also that of a run that is not ready yet, and plans still."""
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=renewed_ms, is_news=False)
    assert [mark.run for mark in marks.watched(FLOW, now=VALID_MS / 1000 - 1)] == ["one"]
    assert marks.watched(FLOW, now=VALID_MS / 1000) == []
    assert marks.take(key_of(FLOW, "one"), None, 6, now=0.0, is_news=True)
    assert marks.watched(FLOW, now=0.0) == []


def test_marks_count_among_runs_that_copy_the_same() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5)
    value = json.dumps({"renewedMs": NOW_MS, "validMs": VALID_MS}).encode()
    # Also this run's own flow, once its file was changed.
    others = [FLOW.model_copy(update={"topics": ("other",)}), FLOW.model_copy(update={"connector_name": "other"})]
    for offset, other in enumerate(others, 6):
        assert marks.first(other, now_ms=NOW_MS, now=1.0) is None
        assert marks.take(key_of(other, "two"), value, offset, now=0.0, is_news=True)
        mark = marks.first(other, now_ms=NOW_MS, now=1.0)
        assert mark is not None
        assert mark.run == "two"
    assert first(marks) == "one"


def test_other_records_are_no_marks_and_marks_are_no_progress() -> None:
    marks = RunMarks("A")
    value = json.dumps({"renewedMs": NOW_MS, "validMs": VALID_MS}).encode()
    elsewhere = FLOW.model_copy(update={"source": FLOW.target})
    assert not marks.take(key_of(elsewhere, "one"), value, 1, now=0.0, is_news=True)
    announcement = b'["mirrorless",{"cluster":"A","epoch":0,"partition":0,"topic":"t"}]'
    assert not marks.take(announcement, value, 1, now=0.0, is_news=True)
    assert marks.take(key_of(FLOW, "one"), b"no JSON", 1, now=0.0, is_news=True)
    assert first(marks) is None
    assert parse(key_of(FLOW, "one"), value) is None


@pytest.mark.parametrize(
    ("one", "other", "overlaps"),
    [
        ((0, 1), (0, 1), True),
        ((0, 2), (1, 2), False),
        ((1, 2), (1, 2), True),
        ((0, 1), (1, 2), True),  # Spark, or one invocation before there were two
        ((0, 2), (1, 3), True),
    ],
)
def test_shares_overlap_unless_they_are_different_ones_of_one_division(
    one: tuple[int, int], other: tuple[int, int], *, overlaps: bool
) -> None:
    assert Share(*one).overlaps(Share(*other)) is overlaps
    assert Share(*other).overlaps(Share(*one)) is overlaps


def take_share(marks: RunMarks, run: str, offset: int, own: Share, **said: object) -> None:
    value = {"renewedMs": NOW_MS, "validMs": VALID_MS, "engine": "functions", "share": list(own)} | said
    assert marks.take(key_of(FLOW, run), json.dumps(value).encode(), offset, now=0.0, is_news=True)


def test_a_run_is_first_of_those_that_copy_a_part_of_its_share() -> None:
    marks = RunMarks("A")
    take_share(marks, "zero", 5, Share(0, 2))
    take_share(marks, "one", 6, Share(1, 2))
    take(marks, "all", 7)
    found = {share: marks.first(FLOW, now_ms=NOW_MS, now=0.0, share=share) for share in (Share(0, 2), Share(1, 2))}
    assert [mark and mark.run for mark in found.values()] == ["zero", "one"]
    assert first(marks) == "zero"


def test_a_mark_has_what_copies_and_how_far_behind_it_is() -> None:
    marks = RunMarks("A")
    work = Work(lag_records=3, lag_bytes=4_000, bytes_per_s=500.0)
    take_share(marks, "one", 5, Share(1, 2), ready=False, **work.as_fields())
    take(marks, "two", 6)
    one, two = marks.valid(FLOW, now_ms=NOW_MS, now=0.0)
    assert (one.engine, one.share, one.is_ready, one.work) == ("functions", Share(1, 2), False, work)
    # As an earlier version wrote it.
    assert (two.engine, two.share, two.is_ready, two.work) == ("spark", Share(0, 1), True, None)


@pytest.mark.parametrize("wrong", [{"share": 2}, {"share": [1]}, {"lagRecords": 1}, {"validMs": None}])
def test_a_malformed_mark_does_not_count(wrong: dict[str, object]) -> None:
    marks = RunMarks("A")
    take_share(marks, "one", 5, Share(0, 1), **wrong)
    assert first(marks) is None


def test_expired_marks_are_those_of_the_flow_alone() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=NOW_MS - VALID_MS, is_news=False)
    take(marks, "two", 6)
    other = FLOW.model_copy(update={"topics": ("other",)})
    old = json.dumps({"renewedMs": 0, "validMs": VALID_MS}).encode()
    assert marks.take(key_of(other, "three"), old, 7, now=0.0, is_news=False)
    assert marks.expired(FLOW, now_ms=NOW_MS, now=1.0) == [key_of(FLOW, "one")]
    assert [mark.run for mark in marks.valid(FLOW, now_ms=NOW_MS, now=1.0)] == ["two"]


def test_the_choice_of_an_engine_is_beside_the_marks() -> None:
    marks = RunMarks("A")
    choice = EngineChoice(engine="spark", since_ms=5, reason="it is large")
    assert is_mark(choice_key(FLOW, "here"))
    assert marks.take(choice_key(FLOW, "here"), choice.to_json(), 5, now=0.0, is_news=True)
    assert marks.chosen(FLOW, "here") == choice
    assert first(marks) is None
    other = FLOW.model_copy(update={"topics": ("other",)})
    assert marks.chosen(other, "here") == choice  # whatever the flow copies
    assert marks.chosen(FLOW, "there") is None
    assert marks.only_choice() == choice
    assert marks.take(
        choice_key(FLOW, "there"), replace(choice, engine="functions").to_json(), 6, now=0.0, is_news=True
    )
    assert marks.chosen(FLOW, "here") == choice
    assert marks.only_choice() is None


def test_marks_of_one_deployment_count_whatever_the_flow_copies_by_now() -> None:
    marks = RunMarks("A")
    deployment = deployment_of("s3://bucket/mm2.properties?versionId=1", "A->B")
    assert deployment == deployment_of("s3://bucket/mm2.properties?versionId=2", "A->B")
    assert deployment != deployment_of("s3://bucket/mm2.properties", "A->C")
    said = {"renewedMs": NOW_MS, "validMs": VALID_MS, "deployment": deployment}
    assert marks.take(key_of(FLOW, "one"), json.dumps(said).encode(), 5, now=0.0, is_news=True)
    changed = FLOW.model_copy(update={"topics": ("other",)})
    assert marks.first(changed, now_ms=NOW_MS, now=1.0) is None
    found = marks.first(changed, now_ms=NOW_MS, now=1.0, deployment=deployment)
    assert found is not None
    assert found.run == "one"
    assert marks.expired(changed, now_ms=NOW_MS, now=VALID_MS / 1000, deployment=deployment) == [key_of(FLOW, "one")]


@pytest.mark.parametrize("value", [None, b"[]", b"5", b'{"engine": "connect"}'])
def test_a_choice_that_is_deleted_or_malformed_does_not_count(value: bytes | None) -> None:
    marks = RunMarks("A")
    assert marks.take(
        choice_key(FLOW, "here"),
        EngineChoice(engine="spark", since_ms=5, reason="").to_json(),
        5,
        now=0.0,
        is_news=True,
    )
    assert marks.take(choice_key(FLOW, "here"), value, 6, now=0.0, is_news=True)
    assert marks.chosen(FLOW, "here") is None
