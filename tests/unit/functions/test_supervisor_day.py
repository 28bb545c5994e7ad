"""A day of looks of the supervisor at four functions, with shares that are missing, throttled or slow, and a backlog.

The table of docs/functions.md has the figures. A share copies what arrives for it at most at its rate; Spark copies
everything; a minute is a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from mirrorless.functions.engine_decision import Seen, choose
from mirrorless.progress.run_marks import RunMark, Share, Work
from tests.support.template import ROOT
from tests.unit.functions.test_engine_decision import FLOW, NOON_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.progress.engine_choice import EngineChoice, EngineName

MB: Final = 1_000_000
SHARES: Final = 4
ARRIVES: Final = 10 * MB
"""Bytes a second, spread evenly over the shares."""
FUNCTION: Final = 5 * MB
SPARK: Final = 200 * MB
SPARK_STARTS_MIN: Final = 2
BEGINS, ENDS = 60, 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong from minute 60 to 180: shares without an invocation, the rate of each function, a backlog."""

    missing: Callable[[int], frozenset[int]] = lambda minute: frozenset()  # noqa: ARG005 -- of every minute
    rate: float = FUNCTION
    backlog: float = 0.0


def _throttled(minute: int) -> frozenset[int]:
    """Of an account without concurrency: at each minute other shares get none, now and then all of them do."""
    return frozenset() if minute % 5 == 0 else frozenset({minute % SHARES})


FAULTS: Final = {
    "none": Fault(),
    "one share missing": Fault(missing=lambda minute: frozenset({2})),  # noqa: ARG005
    "all shares missing": Fault(missing=lambda minute: frozenset(range(SHARES))),  # noqa: ARG005
    "throttled: another share each minute": Fault(missing=_throttled),
    "one invocation in two left out": Fault(missing=lambda minute: frozenset({1} if minute % 2 else ())),
    "slow: 2 MB/s each": Fault(rate=2 * MB),
    "slow: 2.4 MB/s each": Fault(rate=2.4 * MB),
    "backlog of 2 GB": Fault(backlog=2_000 * MB),
    "backlog of 20 GB": Fault(backlog=20_000 * MB),
}


@dataclass(slots=True)
class Day:
    """What happened, in minutes since the fault began."""

    chosen: int | None = None
    alarmed: int | None = None
    changes: int = 0
    largest_lag_min: float = 0.0
    reasons: list[str] = field(default_factory=list)

    def row(self, name: str) -> str:
        """The line of the table."""
        chosen, alarmed = ("never" if one is None else f"after {one} min" for one in (self.chosen, self.alarmed))
        return f"| {name} | {chosen} | {alarmed} | {self.changes} | {self.largest_lag_min:.0f} min |"


def simulate(fault: Fault) -> Day:
    """Let the supervisor look 1,440 times."""
    day = Day()
    lags = [0.0] * SHARES
    choice: EngineChoice | None = None
    since_spark = 0
    breaching: list[bool] = []
    for minute in range(1_440):
        during = BEGINS <= minute < ENDS
        missing = fault.missing(minute) if during else frozenset()
        rate = fault.rate if during else FUNCTION
        if minute == BEGINS:
            lags = [lag + fault.backlog / SHARES for lag in lags]
        spark = choice is not None and choice.engine == "spark" and minute - since_spark >= SPARK_STARTS_MIN
        arrived = ARRIVES / SHARES * 60
        left = [
            max(0.0, lag + arrived - (SPARK / SHARES if spark else 0.0 if number in missing else rate) * 60)
            for number, lag in enumerate(lags)
        ]
        copied = [lag + arrived - now for lag, now in zip(lags, left, strict=True)]
        lags = left
        day.largest_lag_min = max(day.largest_lag_min, *(lag / arrived for lag in lags))
        seen = _seen(lags, copied, missing, is_spark=spark)
        before = choice
        choice = choose(choice, seen, FLOW, now_ms=NOON_MS + minute * 60_000)
        if before is not None and before.engine != choice.engine:
            day.changes += 1
            day.reasons.append(choice.reason)
            since_spark = minute
            if choice.engine == "spark" and day.chosen is None:
                day.chosen = minute - BEGINS
        breaching.append(choice.engine == "functions" and not spark and seen.missing_shares > 0)
        if sum(breaching[-3:]) >= 2 and day.alarmed is None:
            day.alarmed = minute - BEGINS
    return day


def _seen(lags: list[float], copied: list[float], missing: frozenset[int], *, is_spark: bool) -> Seen:
    if is_spark:
        work = Work(lag_records=1, lag_bytes=round(sum(lags)), bytes_per_s=sum(copied) / 60)
        return Seen(marks=[_mark("spark", work, Share())], shares=SHARES)
    marks = [
        _mark("functions", Work(lag_records=1, lag_bytes=round(lag), bytes_per_s=each / 60), Share(number, SHARES))
        for number, (lag, each) in enumerate(zip(lags, copied, strict=True))
        if number not in missing
    ]
    return Seen(marks=marks, shares=SHARES)


def _mark(engine: EngineName, work: Work, share: Share) -> RunMark:
    return RunMark(f"{engine} {share.number}", "topics", 0, NOON_MS, 15_000, engine=engine, share=share, work=work)


@pytest.mark.parametrize("name", FAULTS)
def test_the_page_has_what_a_day_of_looks_decides(name: str) -> None:
    assert simulate(FAULTS[name]).row(name) in (ROOT / "docs" / "functions.md").read_text()


def test_every_fault_that_functions_cannot_copy_is_spark_s_within_minutes() -> None:
    days = {name: simulate(fault) for name, fault in FAULTS.items()}
    for name in ("one share missing", "all shares missing", "throttled: another share each minute"):
        alarmed, chosen = days[name].alarmed, days[name].chosen
        assert alarmed is not None
        assert alarmed <= 2, name
        assert chosen is not None
        assert chosen <= 3, name
    assert days["none"].changes == 0
