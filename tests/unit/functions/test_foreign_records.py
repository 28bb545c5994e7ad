"""Records that make no sense in a topic: one line a topic with a count, however they arrive."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from mirrorless.functions import environment as variables
from mirrorless.functions import foreign_records, heartbeat_monitor, invocation
from mirrorless.functions.events import Record, ScheduleEvent, TopicRecords
from mirrorless.functions.foreign_records import AGAIN_S, ForeignRecords
from mirrorless.functions.heartbeat_monitor import monitor
from mirrorless.functions.invocation import Invocation
from mirrorless.heartbeats import Look
from mirrorless.local.display_sink import DisplaySink
from mirrorless.settings import load
from tests.support.heard import Heard

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.functions.budget import TimeBudget
    from mirrorless.functions.events import Event

TOPIC = "A.heartbeats"


class World:
    """A monitor's invocations, and what is heard of them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(invocation, "_foreign", ForeignRecords())
        monkeypatch.setattr(heartbeat_monitor, "_logged", set())
        self._monkeypatch = monkeypatch
        self.heard = Heard()
        file = folder / "mm2.properties"
        # What is read once a process would be the environment of every later test of this one.
        monkeypatch.setattr(variables, "_of_process", lambda model: variables.parse(model, os.environ))
        monkeypatch.setenv("MIRRORLESS_CONFIG", str(file))
        monkeypatch.setenv("MIRRORLESS_FLOW", "A->B")
        servers = "A.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\n"
        file.write_text(f"clusters = A, B\n{servers}A->B.enabled = true\n")
        self._settings = load(file)
        self._budget: TimeBudget = SimpleNamespace()  # type: ignore[assignment]

    def monitor(self, event: Event) -> None:
        """Invoke the function, as a trigger or its schedule does."""
        flow = self._settings.flow("A->B")
        sink = DisplaySink(flow.name, "heartbeat_monitor", self.heard, ended=lambda: False)
        monitor(Invocation(event, self._budget, self._settings, flow, sink, "heartbeat_monitor"))

    def look(self, foreign: int) -> None:
        """What the topic's last records are."""
        found = Look(records=50, foreign=foreign)
        self._monkeypatch.setattr(heartbeat_monitor, "last_records", lambda _flow: found)

    @property
    def lines(self) -> list[str]:
        """What was logged."""
        return [text for _, text in self.heard.troubles]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def foreign(*offsets: int) -> TopicRecords:
    records = [
        Record(
            topic=TOPIC,
            partition=0,
            offset=offset,
            timestamp_ms=0,
            timestamp_type="CREATE_TIME",
            key=b"sensor",
            value=b"up",
        )
        for offset in offsets
    ]
    return TopicRecords(records=tuple(records), refused=())


def test_one_event_with_many_is_one_line(world: World) -> None:
    world.monitor(foreign(*range(48)))
    (line,) = world.lines
    assert line.startswith(
        f"reading heartbeats: 48 records cannot be processed, the last one: record_topic {TOPIC}, record_partition 0, "
        "record_offset 47, reason not a heartbeat: "
    )


def test_many_events_with_one_are_one_line_and_a_count_after_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(foreign_records, "time", SimpleNamespace(monotonic=lambda: now[0]))
    for offset in range(48):
        now[0] += 1
        world.monitor(foreign(offset))
    (line,) = world.lines
    assert "a record cannot be processed: " in line
    now[0] += AGAIN_S
    world.monitor(foreign(48))
    assert "48 records cannot be processed, the last one: " in world.lines[1]


def test_the_schedule_logs_them_once_until_they_are_gone(world: World) -> None:
    schedule = ScheduleEvent(at=datetime.now(UTC))
    for number in (48, 48, 50):
        world.look(number)
        world.monitor(schedule)
    text = f"{TOPIC}: 48 of its last 50 records are not heartbeats"
    (line,) = world.lines
    assert text in line
    for number in (0, 3):
        world.look(number)
        world.monitor(schedule)
    assert len(world.lines) == 2
