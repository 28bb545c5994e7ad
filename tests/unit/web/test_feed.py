"""What pages are sent: everything at first, then what changed."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from mirrorless.web.feed import Feed
from mirrorless.web.snapshot import Level, TopicState
from tests.support.pages import FakeGatherer, flow, group, halted, snapshot, topic

if TYPE_CHECKING:
    from mirrorless.web.snapshot import Snapshot


def data(event: bytes) -> Any:  # noqa: ANN401 -- whatever JSON can hold
    lines = event.decode("ascii").splitlines()
    (line,) = [one for one in lines if one.startswith("data: ")]
    return json.loads(line.removeprefix("data: "))


def refreshed(*snapshots: Snapshot) -> Feed:
    gatherer = FakeGatherer()
    feed = Feed(gatherer.snapshot)
    for one in snapshots:
        gatherer.known = one
        feed.refresh()
    return feed


def test_the_first_update_has_everything() -> None:
    feed = refreshed(snapshot(topics=(topic("a"), topic("b")), groups=(group("g"),), halted=(halted(),)))
    assert feed.latest is not None
    whole = data(feed.latest.whole)
    assert whole["version"] == 1
    assert [row["topic"] for row in whole["topics"]] == ["a", "b"]
    assert [row["group"] for row in whole["groups"]] == ["g"]
    assert [event["kind"] for event in whole["events"]] == ["gap"]
    assert feed.latest.whole.startswith(b"event: snapshot\nid: 1\n")


def test_a_delta_has_changed_rows_and_the_keys_of_those_that_are_gone() -> None:
    before = snapshot(topics=(topic("a"), topic("b"), topic("c")))
    feed = refreshed(before, replace(before, topics=(topic("a"), topic("b", lag_records=5))))
    assert feed.latest is not None
    delta = data(feed.latest.delta)
    assert [(row["topic"], row["lag_records"]) for row in delta["topics"]] == [("b", 5)]
    assert delta["gone"] == {"topics": [["A->B", "c"]], "problems": [], "groups": [], "operations": [], "drills": []}
    assert delta["events"] == []
    assert [row["topic"] for row in data(feed.latest.whole)["topics"]] == ["a", "b"]


def test_an_event_is_sent_once_and_kept_for_new_pages() -> None:
    feed = refreshed(snapshot())
    feed.note(Level.WARNING, "A->B", "note", "an event")
    first, second = feed.refresh(), feed.refresh()
    assert [event["text"] for event in data(first.delta)["events"]] == ["an event"]
    assert data(second.delta)["events"] == []
    assert [event["text"] for event in data(second.whole)["events"]] == ["an event"]


def test_rates_are_remembered_for_topics_that_were_active() -> None:
    busy = snapshot(topics=(topic("a", records_per_s=7.0), topic("b")), flows=(flow(records_per_s=7.0),))
    lags, unknown = (topic("a", lag_records=9), topic("b")), topic("a", records_per_s=None, lag_records=None)
    snapshots = iter(
        (
            replace(busy, at_ms=30_000),
            replace(busy, at_ms=31_000, topics=lags),  # of one point the last rate and the greatest lag
            replace(busy, at_ms=39_000, topics=(topic("a"), topic("b"))),
            replace(busy, at_ms=61_000, topics=(unknown, topic("b"))),
        )
    )
    feed = Feed(lambda: next(snapshots))
    for _ in range(4):
        feed.refresh()
    assert feed.latest is not None
    history = {tuple(one[:2]): one[2:] for one in data(feed.latest.whole)["history"]}
    assert history == {("A->B", "a"): [[3, 6], [0, None], [9, None]], ("A->B", ""): [[1, 2], [7, 7], [0, 0]]}


def test_names_are_sent_as_escapes() -> None:
    feed = refreshed(snapshot(groups=(group("<script>\u202e\n\u2028"),)))
    assert feed.latest is not None
    assert feed.latest.whole.isascii()
    assert feed.latest.whole.count(b"\n") == 4
    assert [row["group"] for row in data(feed.latest.whole)["groups"]] == ["<script>\u202e\n\u2028"]


def test_one_update_of_2000_topics_and_10000_partitions_is_cheap() -> None:
    """The median of several, of which each changes every topic: far more than a quiet cluster does."""
    gatherer = FakeGatherer()
    feed = Feed(gatherer.snapshot)
    spent = []
    for number in range(9):
        gatherer.known = snapshot(
            topics=tuple(
                topic(f"topic-{name}", lag_records=number, state=TopicState.COPYING, records_per_s=float(number))
                for name in range(2_000)
            )
        )
        feed.refresh()
        spent.append(feed.cpu_s)
    assert median(spent[1:]) < 0.05
