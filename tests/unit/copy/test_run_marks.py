"""Which of several runs is first, by the marks that they keep in the progress topic."""

from __future__ import annotations

import json

from mirrorless.copy.progress import parse
from mirrorless.copy.run_marks import VALID_MS, RunMarks, key_of

NOW_MS = 1_700_000_000_000


def take(marks: RunMarks, run: str, offset: int, *, renewed_ms: int = NOW_MS, claim: int | None = None) -> None:
    said = {"renewedMs": renewed_ms} | ({} if claim is None else {"claim": claim})
    assert marks.take(key_of("A", run), json.dumps(said).encode(), offset, now=0.0)


def first(marks: RunMarks, *, now: float = 1_000.0) -> str | None:
    mark = marks.first(now_ms=NOW_MS, now=now)
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


def test_a_mark_that_is_not_renewed_or_taken_back_does_not_count() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=NOW_MS - VALID_MS)
    assert first(marks) is None
    take(marks, "two", 7)
    assert first(marks) == "two"
    assert marks.take(key_of("A", "two"), None, 8, now=0.0)
    assert first(marks) is None


def test_a_mark_that_is_renewed_counts_whatever_its_clock_says() -> None:
    marks = RunMarks("A")
    take(marks, "one", 5, renewed_ms=0)
    assert first(marks, now=1.0) is None
    take(marks, "one", 6, renewed_ms=5_000, claim=5)
    assert first(marks, now=1.0) == "one"
    assert first(marks, now=1.0 + VALID_MS / 1000) is None


def test_other_records_are_no_marks_and_marks_are_no_progress() -> None:
    marks = RunMarks("A")
    value = json.dumps({"renewedMs": NOW_MS}).encode()
    assert not marks.take(key_of("B", "one"), value, 1, now=0.0)
    assert not marks.take(b'["mirrorless",{"cluster":"A","epoch":0,"partition":0,"topic":"t"}]', value, 1, now=0.0)
    assert marks.take(key_of("A", "one"), b"no JSON", 1, now=0.0)
    assert first(marks) is None
    assert parse(key_of("A", "one"), value) is None
