"""Decides whether to start or stop the copy job, from the target state and the runs that Glue lists. No I/O.

| state | runs | decision |
|---|---|---|
| STARTED | one is active | keep it |
| STARTED | several are | stop all but the oldest |
| STARTED | one of another release is | stop it; the next one is of this release |
| STARTED | none; the last ones failed at once | wait: 1, 2, 4, 8, at most 15 minutes since the last failure |
| STARTED | none; the last one's end is final | nothing |
| STARTED | none | start one |
| PAUSED, STOPPED | some are active | stop them |
| PAUSED, STOPPED | none | nothing |
| functions copy | some are active | let them end, stop them after a while |
| functions copy | none | nothing |

Two runs of a flow do no harm; they cost twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from mirrorless.clusters.target_state import TargetState

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNDER_WAY: Final = frozenset({"STARTING", "RUNNING", "WAITING"})
_ENDING: Final = frozenset({"STOPPING"})
_FAILED: Final = frozenset({"FAILED", "ERROR", "TIMEOUT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait after runs that failed within `quick_s`: `first_s`, then twice as long each time."""

    quick_s: float = 300.0
    first_s: float = 60.0
    longest_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A run of the job as Glue lists it; `ended` is None while it is active.

    `final` says that another run would end the same way: known of a copy on one machine, never of Glue.
    `release` is what it was started with, None where that is not known.
    """

    id: str
    state: str
    started: datetime
    ended: datetime | None = None
    final: bool = False
    release: str | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it copies or is about to."""
        return self.state in _UNDER_WAY

    @property
    def is_ending(self) -> bool:
        """Whether it is being stopped: another one cannot start yet."""
        return self.state in _ENDING

    def is_other_than(self, release: str | None) -> bool:
        """Whether it is of another release; not if one is not known, as of a run that was started by hand."""
        return release is not None and self.release is not None and self.release != release

    def failed_within(self, seconds: float) -> bool:
        """Whether it failed so soon that the next one probably fails too."""
        ended = self.ended or self.started
        return self.state in _FAILED and (ended - self.started).total_seconds() < seconds


class JobRuns(Protocol):
    """Lists, starts and stops a job's runs."""

    @property
    def patience(self) -> Patience:
        """How long to wait after runs that failed."""

    @property
    def ends_itself_s(self) -> float:
        """How long a run that functions take over from may take to end by itself, before it is stopped."""

    @property
    def missing(self) -> str:
        """Why no run can be started; empty if it can."""

    def latest(self) -> list[JobRun]:
        """Return the latest runs, in any order."""

    def stop(self, runs: Sequence[str]) -> None:
        """Stop these runs."""

    def start(self, release: str | None = None) -> str:
        """Start a run and return its id; an empty one if another invocation was faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """Functions are to copy, for `reason`; a run that has not ended by `until` is stopped.

    `missing` is how many of them have no invocation that copies.
    """

    reason: str
    until: datetime
    missing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to start a run, which to stop, and why."""

    start: bool = False
    stop: tuple[str, ...] = ()
    reason: str


def decide(
    state: TargetState,
    runs: Sequence[JobRun],
    *,
    now: datetime,
    patience: Patience = Patience(),
    release: str | None = None,
    taken_over: TakenOver | None = None,
) -> Decision:
    """Decide as in the table; `runs` may be in any order, `release` is what is deployed.

    `taken_over` is None if the job is to copy.
    """
    runs = sorted(runs, key=lambda run: run.started)
    under_way = [run for run in runs if run.is_under_way]
    if state is not TargetState.STARTED:
        if under_way:
            return Decision(stop=tuple(run.id for run in under_way), reason=f"the flow is {state.value}")
        return Decision(reason=f"the flow is {state.value}")
    if taken_over is not None:
        late = tuple(run.id for run in under_way if now >= taken_over.until or run.is_other_than(release))
        return Decision(stop=late, reason=f"functions copy the flow: {taken_over.reason}")
    if under_way:
        first, *others = under_way
        if others:
            return Decision(stop=tuple(run.id for run in others), reason=f"{first.id} started first")
        if first.is_other_than(release):
            return Decision(stop=(first.id,), reason=f"{first.id} runs another release than the one deployed")
        return Decision(reason=f"{first.id} is {first.state}")
    if any(run.is_ending for run in runs):
        return Decision(reason="a run is being stopped; the next one starts after it")
    if runs and runs[-1].final:
        return Decision(reason=f"{runs[-1].id} is {runs[-1].state}, and the next run would end the same way")
    if (until := _wait_until(runs, patience)) is not None and now < until:
        return Decision(reason=f"the last runs failed at once; the next run starts at {until:%H:%M:%S} UTC")
    return Decision(start=True, reason=f"{runs[-1].id} is {runs[-1].state}" if runs else "no run yet")


def _wait_until(runs: Sequence[JobRun], patience: Patience) -> datetime | None:
    failures = 0
    for run in reversed(runs):
        if not run.failed_within(patience.quick_s):
            break
        failures += 1
    if not failures:
        return None
    pause_s = min(patience.first_s * 2 ** min(failures - 1, 10), patience.longest_s)
    return (runs[-1].ended or runs[-1].started).astimezone(UTC) + timedelta(seconds=pause_s)
