"""Which of several runs is first, by the marks that they keep in the progress topic."""

from __future__ import annotations

import json

import pytest

from mirrorless.copy.progress.records import parse
from mirrorless.copy.progress.run_marks import RunMarks, key_of
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


def first(marks: RunMarks, *, now: float = 1_000.0) -> str | None:
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
    assert marks.may_be_alive(FLOW, now_ms=NOW_MS, besides="two") is (renewed_ms > 0)


def test_a_mark_that_is_taken_back_does_not_count() -> None:
    marks = RunMarks("A")
    take(marks, "two", 7)
    assert first(marks) == "two"
    assert marks.take(key_of(FLOW, "two"), None, 8, now=0.0, is_news=True)
    assert first(marks) is None


def test_a_mark_that_is_renewed_counts_whatever_its_clock_says() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=0, is_news=False)
    assert first(marks, now=1.0) is None
    take(marks, "one", 6, renewed_ms=5_000, claim=5)
    assert first(marks, now=1.0) == "one"
    assert first(marks, now=1.0 + VALID_MS / 1000) is None


def test_marks_count_among_runs_that_copy_the_same() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5)
    value = json.dumps({"renewedMs": NOW_MS, "validMs": VALID_MS}).encode()
    # Also this run's own flow, once its file was changed.
    others = [FLOW.model_copy(update={"topics": ("other",)}), FLOW.model_copy(update={"connector_name": "other"})]
    for offset, other in enumerate(others, 6):
        assert marks.first(other, now_ms=NOW_MS, now=1_000.0) is None
        assert marks.take(key_of(other, "two"), value, offset, now=0.0, is_news=True)
        mark = marks.first(other, now_ms=NOW_MS, now=1_000.0)
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
