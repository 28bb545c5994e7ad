"""The runs of a local copy job are Glue's in small: never two at once, each with its end, some ends final."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.functions.events import JobStateChange, parse
from mirrorless.local.copy_job import CopyJob
from mirrorless.local.copy_stats import CopyStats
from mirrorless.local.spark_host import SparkHost
from mirrorless.local.wiring import Job

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report

UNTIL_STOPPED = """
import time
from mirrorless.copy.engines.outcome import CopyOutcome
def main(given, *, control, folder, told):
    while not control.stopping():
        time.sleep(0.01)
    return CopyOutcome(complete=False, stuck=False)
"""
AT_ONCE = """
from mirrorless.copy.engines.outcome import CopyOutcome
def main(given, *, control, folder, told):
    assert given[-1] == "--available-now"
    return CopyOutcome(complete=True, stuck=False)
"""
ACCIDENT = """
def main(given, *, control, folder, told):
    raise OSError("a worker was killed")
"""
ON_PURPOSE = """
def main(given, *, control, folder, told):
    raise RuntimeError("Spark says: mirrorless.errors.SameClusterError: one cluster")
"""
PASSES = """
def main(given, *, control, folder, told):
    raise RuntimeError("Spark says: mirrorless.errors.ClusterUnavailable: cluster A: no token for the login")
"""

LEAVES_BEHIND = """
import time
from mirrorless.copy.engines.outcome import CopyOutcome
from mirrorless.copy.partition.lease_rows import Report
def main(given, *, control, folder, told):
    while {waits} and not control.stopping():
        time.sleep(0.01)
    told([Report(topic="t", partition=0, remote_topic="A.t", state="{state}", error="no leader", **dict.fromkeys((
        "records", "copied_bytes", "next_offset", "lag_records"), 0), **dict.fromkeys((
        "first_offset", "latency_ms", "began_ms", "ended_ms")))])
    return CopyOutcome(complete=False, stuck=False)
"""

FAILS_BEHIND_THE_STOP = """
import threading, time
from pathlib import Path
from py4j.protocol import Py4JError, Py4JNetworkError
def main(given, *, control, folder, told):
    Path(folder).with_name("begun").touch()
    while not control.stopping():
        time.sleep(0.01)
    threading.Event().wait({seconds})
    raise {error}
"""


class Session(SparkHost):
    """A host without Spark, whose session begins and ends when the test says so."""

    def start(self) -> None: ...

    def begin(self) -> None:
        self._ready = True

    def end(self) -> None:
        self._ready = False


class Jobs:
    """A job of a script, and the events of its runs' ends."""

    def __init__(self, folder: Path, script: str, *, bounded: bool = False, ready: bool = True) -> None:
        self.folder = folder
        path = folder / "script.py"
        path.write_text(script)
        self.events: queue.SimpleQueue[Mapping[str, Any]] = queue.SimpleQueue()
        self.session = Session(master="local", folder=folder, asked=threading.Event())
        if ready:
            self.session.begin()
        self.leases: list[list[Report]] = []
        self.stats = CopyStats(folder / "run" / "control", bounded=bounded, on_lease=self.leases.append)
        self.job = CopyJob(
            Job(name="copy", script=path, arguments=("--MIRRORLESS_FLOW", "a->b")),
            folder / "run",
            stats=self.stats,
            spark=self.session,
            on_change=self.events.put,
        )

    def await_begin(self) -> None:
        """Wait until the script above has begun."""
        until = time.monotonic() + 10
        while not (self.folder / "run" / "begun").exists():
            assert time.monotonic() < until
            time.sleep(0.005)

    def over(self) -> bool:
        return not self.job.active

    def ended(self) -> tuple[str, str]:
        event = parse(self.events.get(timeout=10))
        assert isinstance(event, JobStateChange)
        assert event.job == "copy"
        return event.run, event.state


def test_there_is_one_run_at_a_time_and_a_stopped_one_may_be_followed(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, UNTIL_STOPPED)
    assert not jobs.over()
    first = jobs.job.start()
    assert jobs.job.start() == ""
    assert [run.state for run in jobs.job.latest()] == ["RUNNING"]
    jobs.job.stop(["another"])
    jobs.job.stop([first])
    assert jobs.ended() == (first, "STOPPED")
    assert not jobs.over()
    second = jobs.job.start()
    assert second != first
    assert [run.is_under_way for run in jobs.job.latest()] == [False, True]
    jobs.job.ask_to_stop()
    assert jobs.ended() == (second, "STOPPED")
    assert jobs.over()
    assert jobs.job.start() == ""


def test_a_run_waits_for_the_session_unless_it_is_stopped_before(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, ACCIDENT, ready=False)
    jobs.job.start()
    jobs.job.ask_to_stop()
    assert jobs.ended() == ("jr_1", "STOPPED")
    assert jobs.job.failure is None


GONE = (
    'Py4JNetworkError("Answer from Java side is empty")',
    'Py4JError("An error occurred while calling o89.status")',
    'Py4JError("py4j.reflection does not exist in the JVM")',
    "ConnectionRefusedError(111, 'Connection refused')",
)


@pytest.mark.parametrize("error", GONE)
def test_a_call_to_a_session_that_ended_behind_a_stop_is_no_failure(error: str, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, FAILS_BEHIND_THE_STOP.format(seconds=0.2, error=error))
    run = jobs.job.start()
    jobs.job.ask_to_stop()
    jobs.session.end()
    assert jobs.ended() == (run, "STOPPED")
    assert jobs.job.failure is None


@pytest.mark.parametrize(
    ("error", "session_ends"),
    [
        *((error, False) for error in GONE),  # Java died by itself
        ('RuntimeError("a record was lost")', True),
        ('Py4JError("Spark says: mirrorless.errors.SameClusterError: one cluster")', True),
    ],
)
def test_what_else_fails_behind_a_stop_is_a_failure(error: str, *, session_ends: bool, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, FAILS_BEHIND_THE_STOP.format(seconds=0.2, error=error))
    run = jobs.job.start()
    jobs.await_begin()
    jobs.job.ask_to_stop()
    if session_ends:
        jobs.session.end()
    assert jobs.ended() == (run, "FAILED")
    assert jobs.job.failure is not None


def test_an_accident_is_no_end_until_there_were_too_many(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, ACCIDENT)
    for number in range(1, 10):
        assert not jobs.over()
        run = jobs.job.start()
        assert jobs.ended() == (run, "FAILED")
        assert jobs.job.latest()[-1].final == (number == 9)
    assert jobs.job.failure == "a worker was killed"
    assert jobs.job.trouble == "the query ended; other flows continue"
    assert jobs.over()


def test_what_is_raised_on_purpose_would_be_raised_again(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, ON_PURPOSE)
    jobs.job.start()
    assert jobs.ended() == ("jr_1", "FAILED")
    assert jobs.over()
    assert jobs.job.start() == ""


@pytest.mark.parametrize("bounded", [False, True])
def test_what_passes_by_itself_ends_only_a_copy_with_an_end(tmp_path: Path, *, bounded: bool) -> None:
    jobs = Jobs(tmp_path, PASSES, bounded=bounded)
    jobs.job.start()
    assert jobs.ended() == ("jr_1", "FAILED")
    assert jobs.over() == bounded


def test_a_copy_with_an_end_has_one(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, AT_ONCE, bounded=True)
    jobs.job.start()
    assert jobs.ended() == ("jr_1", "SUCCEEDED")
    assert jobs.stats.complete
    assert jobs.job.trouble == ""
    assert jobs.over()


def test_a_copy_with_an_end_is_not_stopped_where_its_flow_is_paused(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, UNTIL_STOPPED, bounded=True)
    run = jobs.job.start()
    jobs.job.stop([run])
    time.sleep(0.1)
    assert [one.state for one in jobs.job.latest()] == ["RUNNING"]
    jobs.job.ask_to_stop()
    jobs.job.join(until=time.monotonic() + 10)
    assert jobs.over()


def test_a_copy_with_an_end_that_gives_up_has_not_reached_it(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, AT_ONCE.replace("complete=True, stuck=False", "complete=False, stuck=True"), bounded=True)
    jobs.job.start()
    jobs.ended()
    assert (jobs.stats.complete, jobs.stats.stuck) == (False, True)


@pytest.mark.parametrize("script", [ACCIDENT, UNTIL_STOPPED])
def test_the_last_runs_are_remembered(script: str, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, script)
    run = jobs.job.start()
    jobs.job.ask_to_stop()
    jobs.ended()
    (only,) = jobs.job.latest()
    assert only.id == run
    assert only.ended is not None
    assert only.ended >= only.started


@pytest.mark.parametrize(
    ("state", "stops", "bounded", "faulty"),
    [
        ("resuming", True, False, False),  # whoever goes on asks the target first
        ("halted", True, False, True),
        ("resuming", False, False, True),
        ("resuming", True, True, True),
    ],
)
def test_what_is_tried_again_when_a_stop_comes_is_told_but_no_fault(
    state: str, stops: bool, bounded: bool, faulty: bool, tmp_path: Path
) -> None:
    jobs = Jobs(tmp_path, LEAVES_BEHIND.format(waits=stops, state=state), bounded=bounded)
    jobs.job.start()
    if stops:
        jobs.job.ask_to_stop()
    jobs.ended()
    assert list(jobs.stats.errors.values()) == [faulty]
    assert jobs.stats.faulty == faulty


@pytest.mark.parametrize(("state", "faulty"), [("resuming", False), ("halted", True)])
def test_a_stop_that_comes_right_behind_a_lease_is_as_one_within_it(state: str, faulty: bool, tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, LEAVES_BEHIND.format(waits=False, state=state))
    jobs.job.start()
    jobs.ended()
    assert jobs.stats.faulty
    jobs.job.ask_to_stop()
    assert jobs.stats.faulty == faulty


def test_what_the_first_report_waits_for(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, LEAVES_BEHIND.format(waits=True, state="halted"), ready=False)
    jobs.job.start()
    assert jobs.job.waits_for == "starting Spark"
    jobs.session.begin()
    assert jobs.job.waits_for == "planning the first lease"
    jobs.stats.control.complain("")
    assert jobs.job.waits_for == "starting the workers of the first lease"
    jobs.job.ask_to_stop()
    assert jobs.job.waits_for == "finishing in-flight work"
    jobs.ended()


def test_without_a_topic_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path, UNTIL_STOPPED)
    jobs.stats.control.complain("")
    jobs.stats.lease_ended([])
    assert jobs.job.waits_for == "no topic to replicate yet"
