"""What becomes of the copy job, as a timeline of decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mirrorless.clusters.target_state import TargetState
from mirrorless.functions.job_decision import Decision, JobRun, Patience, TakenOver, decide

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
STARTED = TargetState.STARTED


def run(number: int, state: str, *, minutes: float = 0, lasted: float | None = None) -> JobRun:
    """A run that started so many minutes before noon, and lasted so many."""
    started = NOON - timedelta(minutes=minutes)
    ended = None if lasted is None else started + timedelta(minutes=lasted)
    return JobRun(id=f"jr_{number}", state=state, started=started, ended=ended)


def test_without_a_run_one_is_started() -> None:
    assert decide(STARTED, [], now=NOON) == Decision(start=True, reason="no run yet")


@pytest.mark.parametrize("state", ["STARTING", "RUNNING", "WAITING"])
def test_a_run_that_is_under_way_is_left(state: str) -> None:
    assert decide(STARTED, [run(1, state)], now=NOON) == Decision(reason=f"jr_1 is {state}")


@pytest.mark.parametrize("state", ["SUCCEEDED", "STOPPED", "EXPIRED", "TIMEOUT", "FAILED", "ERROR"])
def test_a_run_that_ended_after_hours_is_followed_by_another_at_once(state: str) -> None:
    assert decide(STARTED, [run(1, state, minutes=600, lasted=600)], now=NOON).start


@pytest.mark.parametrize(("failures", "pause_minutes"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 15), (40, 15)])
def test_runs_that_fail_at_once_are_followed_by_growing_pauses(failures: int, pause_minutes: int) -> None:
    runs = [run(0, "SUCCEEDED", minutes=900, lasted=100)]
    runs += [run(number, "FAILED", minutes=600 - number, lasted=0.5) for number in range(1, failures + 1)]
    ended = runs[-1].ended
    assert ended is not None
    pause = timedelta(minutes=pause_minutes)
    early = decide(STARTED, runs, now=ended + pause - timedelta(seconds=1))
    assert not early.start
    assert early.reason.startswith("the last runs failed at once; the next run starts at ")
    assert decide(STARTED, runs, now=ended + pause).start


def test_of_two_runs_the_younger_is_stopped() -> None:
    runs = [run(2, "RUNNING", minutes=1), run(1, "RUNNING", minutes=9)]
    assert decide(STARTED, runs, now=NOON) == Decision(stop=("jr_2",), reason="jr_1 started first")


@pytest.mark.parametrize(
    ("running", "deployed", "restarts"),
    [("r1", "r2", True), ("r2", "r2", False), (None, "r2", False), ("r1", None, False)],
)
def test_a_run_of_another_release_is_stopped(running: str | None, deployed: str | None, restarts: bool) -> None:
    """A deployment reaches the running job; a run whose release is not known is left alone, or it would never last."""
    one = replace(run(1, "RUNNING", minutes=9), release=running)
    assert decide(STARTED, [one], now=NOON, release=deployed).stop == (("jr_1",) if restarts else ())


def test_behind_one_that_is_being_stopped_nothing_starts_yet() -> None:
    assert not decide(STARTED, [run(1, "STOPPING")], now=NOON).start


@pytest.mark.parametrize("state", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_paused_flow_has_no_run(state: TargetState) -> None:
    runs = [run(1, "RUNNING"), run(2, "STARTING"), run(3, "STOPPING"), run(4, "SUCCEEDED")]
    assert set(decide(state, runs, now=NOON).stop) == {"jr_1", "jr_2"}
    assert decide(state, runs[2:], now=NOON) == Decision(reason=f"the flow is {state}")


def test_where_a_run_s_end_is_final_no_other_is_started() -> None:
    last = JobRun(id="jr_1", state="FAILED", started=NOON, ended=NOON, final=True)
    decision = decide(STARTED, [last], now=NOON + timedelta(hours=1))
    assert decision == Decision(reason="jr_1 is FAILED, and the next run would end the same way")


@pytest.mark.parametrize(("failures", "pause_s"), [(1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (9, 30)])
def test_patience_may_be_shorter(failures: int, pause_s: int) -> None:
    patience = Patience(quick_s=10, first_s=2, longest_s=30)
    long = JobRun(id="jr_0", state="FAILED", started=NOON, ended=NOON + timedelta(seconds=10))
    runs = [
        JobRun(id=f"jr_{n}", state="FAILED", started=NOON + timedelta(minutes=n), ended=NOON + timedelta(minutes=n))
        for n in range(1, failures + 1)
    ]
    ended = runs[-1].started
    early = ended + timedelta(seconds=pause_s - 1)
    assert not decide(STARTED, [long, *runs], now=early, patience=patience).start
    assert decide(STARTED, [long, *runs], now=ended + timedelta(seconds=pause_s), patience=patience).start


def taken_over(*, minutes: float) -> TakenOver:
    """Functions copy; runs have so many minutes from noon to end by themselves."""
    return TakenOver(reason="caught up for 15 minutes", until=NOON + timedelta(minutes=minutes))


REASON = "functions copy the flow: caught up for 15 minutes"


def test_while_functions_copy_no_run_is_started() -> None:
    for runs in ([], [run(1, "FAILED", minutes=900, lasted=1)], [run(1, "STOPPING")]):
        assert decide(STARTED, runs, now=NOON, taken_over=taken_over(minutes=10)) == Decision(reason=REASON)


def test_a_run_that_functions_take_over_from_ends_itself_and_is_stopped_if_it_does_not() -> None:
    runs = [run(1, "RUNNING", minutes=60), run(2, "WAITING", minutes=1), run(3, "SUCCEEDED", minutes=99, lasted=1)]
    assert decide(STARTED, runs, now=NOON, taken_over=taken_over(minutes=10)) == Decision(reason=REASON)
    late = decide(STARTED, runs, now=NOON, taken_over=taken_over(minutes=0))
    assert late == Decision(stop=("jr_1", "jr_2"), reason=REASON)


def test_a_paused_flow_s_run_is_stopped_at_once_whatever_copies() -> None:
    decision = decide(TargetState.PAUSED, [run(1, "RUNNING")], now=NOON, taken_over=taken_over(minutes=10))
    assert decision == Decision(stop=("jr_1",), reason="the flow is PAUSED")
