"""When a run knows that its mark may count as that of a dead one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.progress import mark_writer
from mirrorless.progress.deals import Deal
from mirrorless.progress.mark_writer import MarkWriter
from mirrorless.progress.run_marks import RunMarks, Share
from tests.unit.copy.test_run_marks import FLOW

if TYPE_CHECKING:
    from collections.abc import Callable


class Topic:
    """A producer whose records are acknowledged at once, and the clock of its process."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.records: list[tuple[bytes, bytes | None]] = []

    def send(
        self,
        topic: str,
        *,
        key: bytes,
        value: bytes | None,
        partition: int,
        delivered: Callable[[str | None, Any], None] = lambda *_: None,
    ) -> None:
        assert (topic, partition) == (FLOW.offset_storage_topic, 0)
        self.records.append((key, value))
        delivered(None, SimpleNamespace(offset=lambda: len(self.records) - 1))

    def flush(self, _: float) -> None:
        pass

    def marks(self) -> RunMarks:
        found = RunMarks("A")
        for offset, (key, value) in enumerate(self.records):
            found.take(key, value, offset, now=self.now, is_news=True)
        return found


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    found = Topic()
    monkeypatch.setattr(mark_writer, "_producer", lambda _: found)
    monkeypatch.setattr(mark_writer, "time", SimpleNamespace(monotonic=lambda: found.now, time=lambda: found.now))
    monkeypatch.setitem(mark_writer.RENEW_S, "functions", 3_600.0)
    return found


def writer(topic: Topic) -> MarkWriter:
    one = MarkWriter(FLOW, engine="functions", share=Share(1, 3), deployment="here")
    assert one.claim("one") == len(topic.records) - 1
    return one


def test_a_mark_that_was_renewed_after_a_suspension_remains_stale_until_the_next_claim(topic: Topic) -> None:
    one = writer(topic)
    found = []
    for seconds in (9, 9, 11, 1):
        topic.now += seconds
        one.be_ready()  # the thread that renews it may wake before the one that copies
        found.append(one.is_stale)
    one.release()
    topic.now += 60
    one.claim("two")
    found.append(one.is_stale)
    one.release()
    assert found == [False, False, True, True, False]


def test_a_mark_shows_the_deal_that_its_run_copies_by(topic: Topic) -> None:
    one = writer(topic)
    one.adopt(4)
    one.adopt(4)
    assert len(topic.records) == 2
    (mark,) = topic.marks().valid(FLOW, now_ms=0, now=topic.now)
    assert (mark.deal, mark.share) == (4, Share(1, 3))
    one.release()
    one.adopt(5)
    assert len(topic.records) == 3  # no mark is written before the next claim
    one.claim("two")
    (mark,) = topic.marks().valid(FLOW, now_ms=0, now=topic.now)
    assert mark.deal == 5
    one.release()


def test_a_deal_is_written_under_a_key_of_its_own_and_earlier_ones_are_deleted(topic: Topic) -> None:
    one = writer(topic)
    for number in (1, 2, 2, 3):
        one.write_deal(Deal(number=number, of=3), topic.marks().earlier_deals("here", 3))
    left = {key for key, value in topic.records if value is not None and b'"deal":' in key}
    deleted = {key for key, value in topic.records if value is None}
    assert len(left) == 4
    assert len(deleted) == 1  # the last one stays until its successor was read
    last = topic.marks().deal("here", 3)
    assert last is not None
    assert last.number == 3
    one.release()
