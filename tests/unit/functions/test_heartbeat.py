"""Which function beats for which pair of clusters, and what becomes of a minute in which a cluster is away."""

from __future__ import annotations

import threading
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.functions import heartbeat
from mirrorless.functions.budget import TimeBudget
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.heartbeat import beat, pairs_of
from mirrorless.functions.invocation import Invocation
from mirrorless.local.display_sink import DisplaySink
from mirrorless.settings import load
from tests.support.heard import Heard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from mirrorless.settings import Flow, Settings

AT = 1_700_000_023


class Clock(threading.local):
    """A time for each thread, which goes on where the thread sleeps."""

    now = float(AT)

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Context:
    """75 seconds, by that clock."""

    aws_request_id = "request"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def get_remaining_time_in_millis(self) -> int:
        return int((AT + 75 - self._clock.time()) * 1000)


class Beats:
    """Every pair's beats in one minute, by what fails when."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        fails: Callable[[str, float], bool],
        *,
        refused: Callable[[str], str | None] = lambda _pair: None,
        more: str = "",
    ) -> None:
        self.clock = clock = Clock()
        self.sent: dict[str, list[int]] = defaultdict(list)
        self.made: dict[str, int] = defaultdict(int)
        self.ended_at: list[float] = []
        self.heard = Heard()
        beats = self

        class Client:
            def __init__(self, pair: Flow) -> None:
                self._pair = pair
                self.refused = refused(pair.name)
                beats.made[pair.name] += 1

            def beat(self, pairs: Iterable[Flow], *, timestamp_ms: int) -> None:
                if fails(self._pair.name, clock.now):
                    clock.sleep(11)
                    beats.ended_at.append(clock.now)
                    raise ClusterUnavailable("heartbeats: no acknowledgement", cluster=self._pair.target.alias)
                for pair in pairs:
                    beats.sent[pair.name].append(timestamp_ms // 1000 - AT)

        monkeypatch.setattr(heartbeat, "time", clock)
        monkeypatch.setattr(heartbeat, "Heartbeats", Client)
        monkeypatch.setattr(heartbeat, "_warm", ClientCache())
        monkeypatch.setattr(heartbeat, "_refused", {})
        monkeypatch.setattr(heartbeat, "copied_by_functions", lambda _flow: False)
        self.settings = configured(folder, f"A, B{more}", "A->B.enabled = true")
        flow = self.settings.flow("A->B")
        self.invocation = Invocation(
            event=ScheduleEvent(at=datetime.fromtimestamp(AT, UTC)),
            budget=TimeBudget(Context(clock), reserve_s=3),
            settings=self.settings,
            flow=flow,
            sink=DisplaySink(flow.name, "heartbeat", self.heard, ended=lambda: False),
            name="heartbeat",
        )


def configured(folder: Path, clusters: str, *lines: str) -> Settings:
    servers = [f"{alias}.bootstrap.servers = {alias.lower()}:9092" for alias in clusters.split(", ")]
    file = folder / "mm2.properties"
    file.write_text("\n".join([f"clusters = {clusters}", *servers, *lines]))
    return load(file)


@pytest.mark.parametrize(
    ("clusters", "lines"),
    [
        ("A, B", ["A->B.enabled = true"]),
        ("A, B", ["B->A.enabled = true"]),
        ("A, B", ["A->B.enabled = true", "B->A.enabled = true"]),
        ("A, B, C", ["A->B.enabled = true"]),
        ("A, B, C", ["B->C.enabled = true", "C->B.enabled = true"]),
        ("A, B, C", ["A->B.enabled = true", "B->C.enabled = true"]),
        ("A, B, C, D", ["D->C.enabled = true", "A->D.enabled = true", "A->D.emit.heartbeats.enabled = false"]),
        ("A, B, C", ["A->B.enabled = true", "C->A.emit.heartbeats.enabled = false"]),
        ("A, B, C", ["A->B.enabled = true", "emit.heartbeats.enabled = false"]),
    ],
)
def test_every_pair_is_beaten_for_by_one_function(tmp_path: Path, clusters: str, lines: list[str]) -> None:
    settings = configured(tmp_path, clusters, *lines)
    beaten = [pair.name for flow in settings.flows for pair in pairs_of(settings, flow)]
    assert sorted(beaten) == sorted(pair.name for pair in settings.heartbeats)


def test_pairs_without_a_flow_are_the_first_flows(tmp_path: Path) -> None:
    settings = configured(tmp_path, "A, B, C", "A->B.enabled = true", "C->B.enabled = true")
    assert [{pair.name for pair in pairs_of(settings, flow)} for flow in settings.flows] == [
        {"A->B", "B->A", "A->C", "C->A"},
        {"C->B", "B->C"},
    ]


def test_a_cluster_that_is_away_for_a_moment_costs_its_own_pair_some_beats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = Beats(tmp_path, monkeypatch, lambda pair, now: pair == "A->B" and AT + 10 <= now < AT + 11)
    with pytest.raises(ClusterUnavailable, match="cluster B: heartbeats: no acknowledgement"):
        beat(beats.invocation)
    # It was given up after 11 s, and left alone for another 5.
    assert beats.sent["A->B"] == [*range(1, 10), *range(26, 61)]
    assert beats.sent["B->A"] == [*range(1, 61)]
    assert beats.made == {"A->B": 2, "B->A": 1}  # perhaps with another password
    assert beats.invocation.measured["heartbeat-count"] == [9 + 35 + 60]


def test_clusters_that_are_away_are_told_each_before_the_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats = Beats(tmp_path, monkeypatch, lambda _pair, _now: True)
    with pytest.raises(ClusterError) as raised:
        beat(beats.invocation)
    assert max(beats.ended_at) <= AT + 75 - 3
    assert beats.invocation.measured["heartbeat-count"] == [0]
    told = {str(raised.value), *(text.removeprefix("heartbeat: ") for _, text in beats.heard.troubles)}
    assert told == {f"cluster {alias}: heartbeats: no acknowledgement" for alias in "AB"}


def test_a_topic_that_is_not_for_heartbeats_is_reported_once_and_looked_at_again_each_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = {"A->B": "heartbeats on B is used for something else"}
    beats = Beats(tmp_path, monkeypatch, lambda _pair, _now: False, refused=reasons.get)
    for _ in range(2):
        assert beat(beats.invocation) == {"beats": 60, "refused": ["A->B"]}
    assert [text for _, text in beats.heard.troubles] == [f"heartbeat: A->B: {reasons['A->B']}"]
    assert beats.made["A->B"] == 2
    reasons.clear()
    assert beat(beats.invocation) == {"beats": 120}
    assert len(beats.sent["A->B"]) == 60


def test_pairs_with_one_target_share_a_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beats = Beats(tmp_path, monkeypatch, lambda _pair, _now: False, more=", C, D")
    monkeypatch.setattr(heartbeat, "runtime_context", object)  # a run on one machine, which reaches every cluster
    assert beat(beats.invocation) == {"beats": 12 * 60}
    assert len(beats.made) == 4
    assert all(times == [*range(1, 61)] for times in beats.sent.values())
    assert len(beats.sent) == 12
