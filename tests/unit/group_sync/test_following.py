"""The thread that follows groups: it is kept between two copies, and connects to nothing while a cluster is away."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.errors import ClusterUnavailable
from mirrorless.group_sync import following
from mirrorless.group_sync.follower import FollowReport

if TYPE_CHECKING:
    from mirrorless.settings import Flow

FLOW = cast("Flow", SimpleNamespace(name="A->B"))


class Follower:
    """Ends the copy at its third step; `fails` is what its second step raises."""

    made: list[Follower]
    ended: threading.Event
    fails: Exception | None = None
    why_asking = None

    def __init__(self, _flow: Flow) -> None:
        self.calls: list[str] = []
        self.made.append(self)

    def begin(self) -> None:
        self.calls.append("begin")

    def step(self) -> FollowReport:
        self.calls.append("step")
        if self.calls.count("step") == 2 and (fails := type(self).fails) is not None:
            type(self).fails = None
            raise fails
        if self.calls.count("step") == 3:
            self.ended.set()
        return FollowReport()

    def pause(self) -> None:
        self.calls.append("pause")

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    Follower.made, Follower.ended, Follower.fails = [], threading.Event(), None
    monkeypatch.setattr(following, "GroupFollower", Follower)
    monkeypatch.setattr(following, "_PAUSE_S", 0.01)
    monkeypatch.setattr(following, "_followers", {})
    return Follower.ended


def follow(ended: threading.Event, lines: list[str]) -> None:
    def tell(_level: str, text: str) -> None:
        lines.append(text)

    following.follow(FLOW, cast("Any", tell), lambda _: None, ended)


def test_a_follower_is_kept_for_the_next_copy(ended: threading.Event) -> None:
    lines: list[str] = []
    follow(ended, lines)
    (one,) = Follower.made
    assert one.calls == ["begin", "step", "step", "step", "pause"]
    ended.clear()
    one.calls.clear()
    follow(ended, lines)
    assert (len(Follower.made), lines) == (1, [])


def test_after_an_error_it_begins_from_scratch(ended: threading.Event) -> None:
    Follower.fails = ClusterUnavailable("no answer", cluster="B")
    lines: list[str] = []
    follow(ended, lines)
    assert [one.calls for one in Follower.made] == [
        ["begin", "step", "step", "close"],
        ["begin", "step", "step", "step", "pause"],
    ]
    (line,) = lines
    assert "no answer" in line


def test_while_a_cluster_is_away_it_is_closed_and_waits(
    ended: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = iter([False, True, False, False, False])
    waited: list[str] = []
    monkeypatch.setattr(
        following,
        "outages",
        SimpleNamespace(
            any_away=lambda: next(away, False),
            wait=lambda flow, stopping: waited.append(flow.name),  # noqa: ARG005 -- as the real one is called
            suspect=lambda _alias: False,
        ),
    )
    follow(ended, [])
    assert [one.calls for one in Follower.made] == [
        ["begin", "step", "close"],
        ["begin", "step", "step", "step", "pause"],
    ]
    assert waited == ["A->B", "A->B"]
