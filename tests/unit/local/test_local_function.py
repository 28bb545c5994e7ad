"""A handler on one machine: Lambda's context and events, one invocation at a time, its errors told once."""

from __future__ import annotations

import os
import threading
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError, PrerequisiteError
from mirrorless.functions.environment import environment
from mirrorless.functions.events import JobStateChange, ScheduleEvent, parse
from mirrorless.functions.job_decision import Patience
from mirrorless.functions.runtime_context import RuntimeContext, within
from mirrorless.local.copy_stats import CopyStats
from mirrorless.local.display_sink import DisplaySink
from mirrorless.local.events import job_state_event, schedule_event
from mirrorless.local.lambda_context import LocalContext
from mirrorless.local.local_function import LocalFunction
from mirrorless.local.wiring import FunctionSpec
from tests.support.events import job_state, schedule
from tests.support.heard import Heard

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.functions.job_decision import JobRun

APP = """
import threading, time
calls = []
busy = threading.Lock()
def handler(event, context):
    assert busy.acquire(blocking=False), "twice at once"
    calls.append((event, context.get_remaining_time_in_millis()))
    try:
        if event.get("wait"):
            while context.get_remaining_time_in_millis():
                time.sleep(0.01)
        if event.get("raise"):
            raise ValueError(event["raise"])
        return {"calls": len(calls), "name": __name__, "left_ms": calls[-1][1]}
    finally:
        busy.release()
"""


class NoRuns:
    patience = Patience()
    ends_itself_s = 0.0
    missing = ""

    def latest(self) -> list[JobRun]:
        return []

    def stop(self, runs: object) -> None:  # noqa: ARG002
        raise AssertionError

    def start(self, release: str | None = None) -> str:  # noqa: ARG002 -- the protocol
        raise AssertionError


class Made:
    """A function whose handler is the one above."""

    def __init__(self, folder: Path, *, flow: str = "a->b", timeout_s: float = 60) -> None:
        (folder / "app.py").write_text(APP)
        self.heard = Heard()
        self.ended = threading.Event()
        variables = {"MIRRORLESS_CONFIG": "mm2.properties", "MIRRORLESS_FLOW": flow}
        spec = FunctionSpec(name="checkpoint", folder=folder, timeout_s=timeout_s, variables=variables, every_s=60)
        sink = DisplaySink(flow, "checkpoint", self.heard, ended=self.ended.is_set)
        stats = CopyStats(folder / f"copy of {flow}", bounded=False, on_lease=lambda _: None)
        self.given = RuntimeContext(variables=variables, sink=sink, jobs=lambda _job: nullcontext(NoRuns()), copy=stats)
        self.function = LocalFunction(spec, self.given, sink, flow=flow, ended=self.ended.is_set)

    def end(self) -> None:
        self.ended.set()
        self.function.end()
        self.function.join(until=time.monotonic() + 10)


def keys(event: object) -> object:
    return {key: keys(value) for key, value in event.items()} if isinstance(event, dict) else None


def test_events_have_the_shapes_that_were_recorded() -> None:
    at = datetime(2026, 3, 1, 3, 0, 7, tzinfo=UTC)
    tick = schedule_event("heartbeat", at=at.timestamp())
    assert keys(tick) == keys(schedule(at))
    assert parse(tick) == parse(schedule(at)) == ScheduleEvent(at=at)
    ended = job_state_event("copy", "jr_1", "FAILED", message="why")
    assert keys(ended) == keys(job_state("copy", "jr_1", "FAILED"))
    assert parse(ended) == parse(job_state("copy", "jr_1", "FAILED"))
    assert isinstance(parse(ended), JobStateChange)


def test_the_time_that_is_left_is_the_templates_until_the_run_ends() -> None:
    ended = threading.Event()
    context = LocalContext(timeout_s=90, ended=ended.is_set)
    assert 89_000 < context.get_remaining_time_in_millis() <= 90_000
    assert context.aws_request_id != LocalContext(timeout_s=1, ended=ended.is_set).aws_request_id
    assert LocalContext(timeout_s=0, ended=ended.is_set).get_remaining_time_in_millis() == 0
    ended.set()
    assert context.get_remaining_time_in_millis() == 0


def test_each_flow_has_a_handler_of_its_own(tmp_path: Path) -> None:
    one, other = Made(tmp_path), Made(tmp_path, flow="b->a")
    assert one.function.invoke({})["calls"] == 1
    assert one.function.invoke({})["calls"] == 2
    answer = other.function.invoke({})
    assert (answer["calls"], answer["name"]) == (1, "checkpoint of b->a")


def test_ticks_and_events_come_one_after_the_other(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.function.start(every_s=0.05)
    handled = [made.function.hand({"detail": number}) for number in range(20)]
    assert all(one.wait(10) for one in handled)
    time.sleep(0.2)
    made.end()
    assert made.heard.troubles == []
    assert made.function.invoke({})["calls"] > 22


def test_an_end_cuts_short_what_is_under_way(tmp_path: Path) -> None:
    made = Made(tmp_path, timeout_s=3600)
    made.function.start(every_s=None)
    handled = made.function.hand({"wait": True})
    assert not handled.wait(0.1)
    began = time.monotonic()
    made.end()
    assert handled.is_set()
    assert time.monotonic() - began < 5


def test_what_goes_wrong_again_and_again_is_told_once_until_it_went_well(tmp_path: Path) -> None:
    made = Made(tmp_path)
    for text in ("no", "no", "never", "", "no"):
        made.function.attempt({"raise": text})
    assert [text for _, text in made.heard.troubles] == [
        "checkpoint: ValueError: no",
        "checkpoint: ValueError: never",
        "checkpoint: ValueError: no",
    ]


def test_one_complaint_is_told_once_in_an_invocation_too(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.function.sink.fresh()
    for text in ("no", "never", "no"):
        made.given.sink.tell("error", text)
    assert [text for _, text in made.heard.troubles] == ["checkpoint: no", "checkpoint: never"]


def test_where_no_next_invocation_goes_on_there_is_no_time_limit_but_an_end(tmp_path: Path) -> None:
    made = Made(tmp_path, timeout_s=1)
    assert made.function.invoke({})["left_ms"] <= 1000
    assert made.function.invoke({}, limited=False)["left_ms"] > 86_400_000
    made.ended.set()
    assert made.function.invoke({}, limited=False)["left_ms"] == 0
    assert made.function.invoke({}, limited=False, ended=lambda: False)["left_ms"] > 0


def test_an_attempt_says_whether_it_went_well(tmp_path: Path) -> None:
    made = Made(tmp_path)
    assert [made.function.attempt({"raise": text}) for text in ("", "no", "no", "")] == [True, False, False, True]


def test_warnings_at_the_end_of_a_run_are_not_told(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.given.sink.tell("warning", "the timeout is near", left=["group g"])
    made.ended.set()
    made.function.sink.fresh()
    made.given.sink.tell("warning", "the timeout is nearer")
    made.given.sink.tell("info", "all is well")
    assert [text for _, text in made.heard.troubles] == ["checkpoint: the timeout is near: left ['group g']"]


def test_what_a_call_is_given_is_its_environment_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("MIRRORLESS_")]:
        monkeypatch.delenv(name)
    found: dict[str, str] = {}

    def elsewhere() -> None:
        try:
            environment()
        except ConfigurationError as error:
            found["there"] = str(error)

    with within(Made(tmp_path).given):
        found["here"] = environment().flow
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert found == {"here": "a->b", "there": "MIRRORLESS_CONFIG: is not set; set it in the function's environment"}


def test_a_function_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    spec = FunctionSpec(name="checkpoint", folder=tmp_path / "none", timeout_s=1, variables={}, every_s=60)
    made = Made(tmp_path)
    with pytest.raises(PrerequisiteError, match=r"^function checkpoint: .*app.py does not exist"):
        LocalFunction(spec, made.given, made.function.sink, flow="a->b", ended=made.ended.is_set)
