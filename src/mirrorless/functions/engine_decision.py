"""Chooses what copies a flow, functions or Spark, from what the marks of running copies say. No I/O.

| engine | what holds | choice |
|---|---|---|
| functions | the backlog would take them longer than `mirrorless.spark.start.backlog.seconds` | Spark |
| functions | they are behind, and the lag has grown for five minutes | Spark |
| functions | a share has no run for two minutes, except between those of an idle flow | Spark |
| Spark | caught up for `mirrorless.spark.stop.caught.up.seconds`, and functions can carry the rate | functions |
| either | anything else, or Spark cannot be started | as before |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from mirrorless.progress.engine_choice import EngineChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.progress.run_marks import RunMark, Work
    from mirrorless.settings import Flow

_FIRST_REASON: Final = "the backlog is small: Spark is not needed"
_BEHIND_S: Final = 5.0
"""Functions are behind if they have more left than they copy in so many seconds."""
_BEHIND_BYTES: Final = 1_000_000
_SURE_S: Final = 30.0
"""The rate of the functions counts when they have been behind for so long, which is what a mark's rate is over."""
_CAUGHT_UP_S: Final = 30.0
"""Spark is caught up if it has no more left than it copies in so many seconds; a lease's reports are that old."""
_SILENT_S: Final = 120.0
"""An invocation a minute: two were left out."""
_PAUSE_MS: Final = 130_000
"""Two looks a minute apart, and one that was left out."""
CARRIED: Final = 0.8
"""Share of their rate that functions are trusted with."""
_GROWING_S: Final = 300.0
_LOOKS: Final = 5
"""The lag has grown if it did so at each of so many looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the supervisor sees: the valid marks of the flow, and why Spark cannot be started, if it cannot.

    `shares` is the number of functions that copy, each a share of the partitions.
    """

    marks: Sequence[RunMark]
    no_spark: str = ""
    shares: int = 1

    @property
    def missing_shares(self) -> int:
        """How many shares no function copies; one of another number of functions copies none of them."""
        owned = {
            mark.share.number for mark in self.marks if mark.engine == "functions" and mark.share.of == self.shares
        }
        return self.shares - len(owned)

    def works(self, engine: str) -> list[Work]:
        """What the runs of an engine say of their work."""
        return [mark.work for mark in self.marks if mark.engine == engine and mark.work is not None]

    def runs(self, engine: str) -> bool:
        """Whether an engine has a run."""
        return any(mark.engine == engine for mark in self.marks)


def choose(before: EngineChoice | None, seen: Seen, flow: Flow, *, now_ms: int) -> EngineChoice:
    """Decide as in the table; `before` is the last choice, None if there was none."""
    if flow.engine == "functions":
        if before is not None and before.engine == "functions":
            return before
        return EngineChoice(engine="functions", since_ms=now_ms, reason="mirrorless.engine is functions")
    if before is None:
        if seen.marks and seen.marks[0].engine == "spark":
            before = EngineChoice(engine="spark", since_ms=now_ms, reason="the copy job was running")
        else:
            before = EngineChoice(engine="functions", since_ms=now_ms, reason=_FIRST_REASON)
    if before.engine == "spark":
        if seen.no_spark:
            return _switched(before, "functions", f"Spark cannot be started: {seen.no_spark}", now_ms)
        return _with_spark(before, seen, flow, now_ms)
    after = _with_functions(before, seen, flow, now_ms)
    if after.engine == "spark" and seen.no_spark:
        return replace(before, reason=f"{after.reason}; Spark cannot be started: {seen.no_spark}")
    return after


def _with_functions(before: EngineChoice, seen: Seen, flow: Flow, now_ms: int) -> EngineChoice:
    if not flow.copy_idle_exit and seen.missing_shares:
        before = _silence(before, seen, now_ms)
        if before.engine == "spark":
            return before
    else:
        before = replace(before, silent_since_ms=None, silent_ms=0)
    if not seen.runs("functions"):
        return before
    works = seen.works("functions")
    lag, rate = _sums(works)
    if not works or lag < max(_BEHIND_BYTES, rate * _BEHIND_S):
        return replace(before, reason=_FIRST_REASON, behind_since_ms=None, growing_since_ms=None, lag_bytes=lag)
    behind_since_ms = before.behind_since_ms or now_ms
    after = _growth(replace(before, behind_since_ms=behind_since_ms), lag, now_ms)
    sure_s = min(_SURE_S, flow.spark_start_backlog_seconds)
    if rate and now_ms - behind_since_ms >= sure_s * 1000:
        after = replace(after, functions_bytes_per_s=rate, functions=seen.shares)
        if lag / rate > flow.spark_start_backlog_seconds:
            reason = f"without Spark the backlog of about {_size(lag)} would take {_time(lag / rate)}"
            return _switched(after, "spark", reason, now_ms)
    if (since := after.growing_since_ms) and now_ms - since >= _GROWING_S * 1000:
        return _switched(after, "spark", f"the lag has grown for {_time((now_ms - since) / 1000)}", now_ms)
    records = sum(work.lag_records for work in works)
    return replace(after, reason=f"a backlog of {records:,} records, about {_size(lag)}, is copied without Spark")


def _silence(before: EngineChoice, seen: Seen, now_ms: int) -> EngineChoice:
    """Count the time with a missing share between looks in a row; there are none while the flow is paused."""
    since_ms = before.silent_since_ms
    if since_ms is None or now_ms - before.silent_ms > _PAUSE_MS:
        since_ms = now_ms
    silent_ms = now_ms - since_ms
    if silent_ms >= _SILENT_S * 1000:
        which = f"{seen.missing_shares} of {seen.shares} functions did not run" if seen.shares > 1 else "nothing copied"
        return _switched(before, "spark", f"{which} for {_time(silent_ms / 1000)}", now_ms)
    return replace(before, silent_since_ms=since_ms, silent_ms=now_ms)


def _growth(before: EngineChoice, lag: int, now_ms: int) -> EngineChoice:
    """Compare the lag with the last look's, a fifth of the time after it: shorter ups and downs are no growth."""
    if now_ms - before.looked_ms < _GROWING_S * 1000 / _LOOKS:
        return before
    since = (before.growing_since_ms or now_ms) if lag > before.lag_bytes else None
    return replace(before, growing_since_ms=since, lag_bytes=lag, looked_ms=now_ms)


def _with_spark(before: EngineChoice, seen: Seen, flow: Flow, now_ms: int) -> EngineChoice:
    works = seen.works("spark")
    if not works:
        return before
    lag, rate = _sums(works)
    if lag > max(_BEHIND_BYTES, rate * _CAUGHT_UP_S):
        return replace(before, caught_up_since_ms=None, lag_bytes=lag)
    since = before.caught_up_since_ms or now_ms
    after = replace(before, caught_up_since_ms=since, lag_bytes=lag)
    if now_ms - since < flow.spark_stop_caught_up_seconds * 1000:
        return after
    copied = before.functions_bytes_per_s * seen.shares / before.functions  # as many as there are now
    if copied and rate > CARRIED * copied:
        reason = f"{_size(rate)}/s arrive, and without Spark {_size(copied)}/s were copied"
        return replace(after, reason=f"{reason} (on AWS, a larger CopyFunctions raises that)")
    return _switched(after, "functions", f"caught up for {_time((now_ms - since) / 1000)}", now_ms)


def _switched(before: EngineChoice, engine: str, reason: str, now_ms: int) -> EngineChoice:
    return EngineChoice(
        engine="spark" if engine == "spark" else "functions",
        since_ms=now_ms,
        reason=reason,
        lag_bytes=before.lag_bytes,
        functions_bytes_per_s=before.functions_bytes_per_s,
        functions=before.functions,
    )


def _sums(works: Sequence[Work]) -> tuple[int, float]:
    return sum(work.lag_bytes for work in works), sum(work.bytes_per_s for work in works)


def _size(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
