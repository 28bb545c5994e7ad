"""Heartbeats and checkpoints while an invocation of copy copies."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.errors import ClusterUnavailable
from mirrorless.functions import copy_companions
from mirrorless.functions.budget import TimeBudget
from mirrorless.functions.copy_companions import Companions
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.invocation import Invocation
from mirrorless.group_sync.follower import FollowReport
from mirrorless.local.display_sink import DisplaySink
from mirrorless.local.lambda_context import LocalContext
from mirrorless.settings import load
from tests.support.heard import Heard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mirrorless.settings import Flow

WITHIN_S = 10.0
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Works:
    """Replaces what heartbeats and checkpoints do by what a test wants."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
        file = folder / "mm2.properties"
        given = ["clusters = A, B", "A.bootstrap.servers = a:1", "B.bootstrap.servers = b:1", "A->B.enabled = true"]
        file.write_text("\n".join([*given, *lines]))
        self._monkeypatch = monkeypatch
        self.calls: dict[str, list[Invocation]] = {"beat": [], "checkpoint": []}
        self.heard = Heard()
        settings = load(file)
        self.invocation = Invocation(
            event=ScheduleEvent(at=NOON, by_hand=True),
            budget=TimeBudget(LocalContext(timeout_s=60.0, ended=lambda: False)),
            settings=settings,
            flow=settings.flow("A->B"),
            sink=DisplaySink("A->B", "copy", self.heard, ended=lambda: False),
            name="copy",
        )
        self.do("beat", until_over)
        self.do("checkpoint", lambda _: {"groups": 3})

    def do(self, name: str, work: Callable[[Invocation], dict[str, Any]]) -> None:
        def called(invocation: Invocation) -> dict[str, Any]:
            self.calls[name].append(invocation)
            return work(invocation)

        self._monkeypatch.setattr(copy_companions, name, called)

    def run(self, until: Callable[[], bool], *, enabled: bool = True, emits: bool = True) -> dict[str, Any]:
        """Copy until then, and return the answer of the companions."""
        with Companions(self.invocation, enabled=enabled, emits=emits) as companions:
            companions.start()
            companions.start()
            wait(until)
        assert not {"heartbeats", "checkpoints"} & {thread.name for thread in threading.enumerate()}
        return companions.answer


def wait(until: Callable[[], bool]) -> None:
    limit = time.monotonic() + WITHIN_S
    while not until():
        assert time.monotonic() < limit
        time.sleep(0.005)


def until_over(invocation: Invocation) -> dict[str, Any]:
    """As `beat` does: until the budget is used up, with what is left then."""
    wait(invocation.budget.is_used_up)
    return {"beats": 1, **invocation.leave(["heartbeat A->B at 1700000001"])}


@pytest.fixture
def works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Works:
    monkeypatch.setattr(copy_companions, "_PAUSE_S", 0.05)
    return Works(tmp_path, monkeypatch)


def test_both_run_until_the_copy_ends_and_nothing_is_left(works: Works) -> None:
    answer = works.run(lambda: all(works.calls.values()))
    assert answer == {"heartbeats": {"beats": 1}, "checkpoints": {"groups": 3}}
    assert works.heard.troubles == []
    assert works.heard.warnings == []
    assert "units-left" not in works.invocation.measured
    assert {name: len(calls) for name, calls in works.calls.items()} == {"beat": 1, "checkpoint": 1}
    for (call,) in works.calls.values():
        assert isinstance(call.event, ScheduleEvent)
        assert call.continues
        assert not call.event.by_hand
        assert call.event.at > NOON
        assert call.measured is works.invocation.measured


def test_before_the_copy_begins_in_other_shares_and_on_one_machine_neither_runs(works: Works) -> None:
    with Companions(works.invocation, enabled=True, emits=True) as companions:
        pass
    assert companions.answer == {}
    assert works.run(lambda: True, enabled=False) == {}
    assert works.run(lambda: True, emits=False) == {}
    assert works.calls == {"beat": [], "checkpoint": []}


@pytest.mark.parametrize("emits", [True, False])
def test_groups_are_followed_where_their_offsets_are_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emits: bool
) -> None:
    works = Works(tmp_path, monkeypatch, "sync.group.offsets.enabled = true")
    followed = []

    def follow(flow: Flow, _tell: object, measured: Callable[[FollowReport], None], ended: threading.Event) -> None:
        followed.append(flow.name)
        measured(FollowReport(written=3, oldest_s=1.5))
        measured(FollowReport(written=4, oldest_s=0.5))
        assert ended.wait(WITHIN_S)

    monkeypatch.setattr(copy_companions, "follow", follow)
    answer = works.run(lambda: bool(followed), emits=emits)
    assert (followed, answer["followed_offsets"]) == (["A->B"], 7)
    assert works.invocation.measured.get("group-offset-age-ms", []) == ([1500] if emits else [])


@pytest.mark.parametrize(
    ("lines", "called"),
    [
        (["emit.heartbeats.enabled = false"], {"checkpoint"}),
        (["A->B.emit.checkpoints.enabled = false"], {"beat"}),
    ],
)
def test_what_is_disabled_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], called: set[str]
) -> None:
    works = Works(tmp_path, monkeypatch, *lines)
    works.run(lambda: any(works.calls.values()))
    assert {name for name, calls in works.calls.items() if calls} == called


def test_a_pair_that_emits_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heartbeat function leaves the reverse pair to the copy too, whatever the flow's own setting."""
    works = Works(tmp_path, monkeypatch, "A->B.emit.heartbeats.enabled = false")
    works.run(lambda: bool(works.calls["beat"]))
    assert works.calls["beat"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ClusterUnavailable("no answer", cluster="B"), "copy: heartbeats: cluster B: no answer"),
        (KeyError("of a policy"), "copy: heartbeats: KeyError: 'of a policy'"),
    ],
)
def test_an_error_is_in_the_log_and_the_next_run_retries(works: Works, error: Exception, line: str) -> None:
    def fails_at_first(invocation: Invocation) -> dict[str, Any]:
        if len(works.calls["beat"]) == 1:
            raise error
        return until_over(invocation)

    works.do("beat", fails_at_first)
    answer = works.run(lambda: len(works.calls["beat"]) == 2)
    assert answer["heartbeats"] == {"beats": 1}
    assert [text for _, text in works.heard.troubles] == [line]


def test_a_call_that_returns_at_once_is_not_repeated_at_once(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    """No heartbeat is due for a minute, or the topic is used for something else."""
    monkeypatch.setattr(copy_companions, "_PAUSE_S", 1_000.0)
    works.do("beat", lambda _: {"beats": 0})
    works.run(lambda: len(works.calls["checkpoint"]) == 1)
    assert len(works.calls["beat"]) == 1


def test_checkpoints_are_as_frequent_as_configured_and_take_a_tenth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = Works(tmp_path, monkeypatch, "A->B.emit.checkpoints.interval.seconds = 1")
    began = time.monotonic()
    works.run(lambda: len(works.calls["checkpoint"]) == 2)
    assert time.monotonic() - began >= 1


def test_an_error_of_the_copy_ends_them_too(works: Works) -> None:
    def copy() -> None:
        with Companions(works.invocation, enabled=True, emits=True) as companions:
            companions.start()
            wait(lambda: all(works.calls.values()))
            raise ClusterUnavailable("no answer", cluster="A")

    with pytest.raises(ClusterUnavailable):
        copy()
    assert not {"heartbeats", "checkpoints"} & {thread.name for thread in threading.enumerate()}
