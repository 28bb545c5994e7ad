"""A run of all flows: what it says at its end, and what it tells meanwhile."""

from __future__ import annotations

import json
from errno import ENOSPC
from io import StringIO
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.identity import Ends
from mirrorless.copy.engines.outcome import GAVE_UP
from mirrorless.errors import ClusterUnavailable, LoopError
from mirrorless.local import runner
from mirrorless.local.display import LogLines
from mirrorless.local.display_sink import DisplaySink
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.metadata.actions import CreateTopic
from mirrorless.metadata.sync_pass import SyncPass
from mirrorless.settings import Cluster, Flow, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

A, B = Cluster(alias="A", bootstrap_servers="a:9092"), Cluster(alias="B", bootstrap_servers="b:9092")
C = Cluster(alias="C", bootstrap_servers="c:9092")
SETTINGS = Settings(file="mm2.properties", clusters=(A, B), flows=(Flow(source=A, target=B),))
LEFT = CreateTopic(topic="A.t", partitions=1, replication_factor=1, reason="r")


class Stats:
    """What a copy came to."""

    def __init__(self, *, faulty: bool, stuck: bool) -> None:
        self.complete, self.stuck = not stuck, stuck
        self.errors: dict[str, bool] = {}
        self.faulty = faulty
        self.records = self.copied_bytes = 0
        self.watch = self

    def look(self) -> list[object]:
        return []


class Plan:
    """What happens to the only flow: its trouble from look to look, and what it comes to."""

    def __init__(self) -> None:
        self.troubles: list[str] = [""]
        self.complaints: list[str] = []  # of a function, from look to look
        self.left: tuple[CreateTopic, ...] = ()
        self.asked = False
        self.last = True
        self.faulty = self.stuck = False
        self.away: set[str] = set()
        self.looping: set[str] = set()


class Run:
    """A FlowRun of that plan, whose copy is complete after so many looks."""

    def is_away(self) -> bool:
        return False

    plan = Plan()
    needs_spark = False
    waits_for = "starting Spark"
    failure = None
    sync_failed = False

    def __init__(self, _settings: Settings, flow: Flow, *, display: LogLines, asked: Event, **_: object) -> None:
        self.name = flow.name
        self.stats = Stats(faulty=self.plan.faulty, stuck=self.plan.stuck)
        self._looks = len(self.plan.troubles)
        self._asked = asked
        self._sink = DisplaySink(flow.name, "checkpoint", display, ended=asked.is_set)
        self._troubles, self._complaints = iter(self.plan.troubles), iter(self.plan.complaints)

    def prepare(self) -> None: ...

    def discover(self) -> None:
        if self.name in self.plan.away:
            raise ClusterUnavailable("connection refused", cluster=self.name)
        if self.name in self.plan.looping:
            raise LoopError(flow=self.name, path=("A->B", "B->A"), topic="orders")
        if self.plan.asked:
            self._asked.set()

    def synced(self, **_: object) -> list[SyncPass]:
        return [SyncPass(ends=Ends("a", "b"), applied=(), left_out=(), problems=(), notes=(), left=self.plan.left)]

    @property
    def active(self) -> bool:
        self._looks -= 1
        return self._looks >= 0

    @property
    def trouble(self) -> str:
        self._sink.fresh()
        if complaint := next(self._complaints, ""):
            self._sink.tell("error", complaint)
        return next(self._troubles, "")

    def last(self) -> bool:
        return self.plan.last

    def copy(self) -> None: ...
    def start(self) -> None: ...
    def ask_to_stop(self) -> None: ...
    def land(self, *, until: float) -> None: ...
    def join(self, *, seconds: float) -> None: ...


class Told:
    """Runs the plan."""

    def __init__(self) -> None:
        self.plan = Run.plan = Plan()
        self._out = StringIO()

    def run(self, *, bounded: bool = True, settings: Settings = SETTINGS) -> bool:
        return run_flows(settings, bounded=bounded, display=LogLines(self._out), stop=StopRequest())

    def of(self, event: str, field: str) -> list[object]:
        lines = [json.loads(line) for line in self._out.getvalue().splitlines()]
        return [line[field] for line in lines if line["event"] == event]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    monkeypatch.setattr(runner, "FlowRun", Run)
    monkeypatch.setattr(runner, "_LOOK_EVERY_S", 0)
    with StopRequest().on_signals():
        yield Told()


def test_a_copy_of_everything_went_well(told: Told) -> None:
    assert told.run()
    assert told.of("Finished", "complete") == [True]


def test_a_copy_that_gives_up_says_so(told: Told) -> None:
    told.plan.stuck = True
    assert not told.run()
    assert told.of("Trouble", "error") == [GAVE_UP]
    assert told.of("Finished", "complete") == [False]


def test_a_copy_whose_topics_were_not_all_made_is_not_complete(told: Told) -> None:
    told.plan.left = (LEFT,)
    assert not told.run()
    assert told.of("Finished", "complete") == [False]


def test_who_asks_for_an_end_asks_for_what_is_left_too(told: Told) -> None:
    told.plan.left, told.plan.asked = (LEFT,), True
    assert told.run(bounded=False)
    assert told.of("Finished", "complete") == [False]


def test_a_copy_of_everything_that_was_asked_to_end_is_no_copy_of_everything(told: Told) -> None:
    told.plan.asked = True
    assert not told.run()


def test_a_copy_whose_group_offsets_were_not_all_translated_did_not_go_well(told: Told) -> None:
    told.plan.last = False
    assert not told.run()
    assert told.run(bounded=False)  # their schedule goes on


def test_a_copy_that_left_a_partition_with_an_error_did_not_go_well(told: Told) -> None:
    told.plan.faulty = True
    assert not told.run()


def test_a_flow_whose_cluster_is_away_holds_no_other_up(told: Told) -> None:
    two = SETTINGS.model_copy(update={"flows": (*SETTINGS.flows, Flow(source=B, target=A))})
    told.plan.away = {"B->A"}
    assert told.run(bounded=False, settings=two)
    assert told.of("Trouble", "error") == ["cluster B->A: connection refused"]
    assert told.of("Finished", "flow") == ["A->B", "B->A"]
    with pytest.raises(ClusterUnavailable):
        told.run(settings=two)
    told.plan.away = {"A->B", "B->A"}
    with pytest.raises(ClusterUnavailable):
        told.run(bounded=False, settings=two)


def test_flows_that_would_loop_do_not_begin_and_the_others_do(told: Told) -> None:
    flows = (*SETTINGS.flows, Flow(source=B, target=A), Flow(source=A, target=C))
    told.plan.looping = {"A->B", "B->A"}
    assert not told.run(settings=SETTINGS.model_copy(update={"flows": flows}))
    assert told.of("Finished", "flow") == ["A->C"]
    assert [str(error).partition(" would")[0] for error in told.of("Trouble", "error")] == [
        "flow A->B: topic orders",
        "flow B->A: topic orders",
    ]
    with pytest.raises(LoopError):
        told.run(bounded=False, settings=SETTINGS)


def test_a_log_that_cannot_be_written_ends_nothing(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str) -> int:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(told._out, "write", full)
    assert told.run()


def test_a_complaint_is_told_once_until_it_is_over_whoever_else_complains(told: Told) -> None:
    told.plan.troubles = ["", "paused", "paused", "paused", "", "paused"]
    told.plan.complaints = ["no", "no", "never", "never", "", "never"]
    told.run()
    checkpoint = [f"checkpoint: {text}" for text in ("no", "never", "never")]
    assert told.of("Trouble", "error") == [checkpoint[0], "paused", checkpoint[1], checkpoint[2], "paused"]


def test_what_a_run_waits_for_is_said_from_its_beginning(told: Told) -> None:
    told.run()
    assert told.of("Waiting", "waiting") == [
        "comparing both clusters, creating topics",
        "starting Spark",
        "translating group offsets",
    ]
