"""The result of one check of an operation, and measured steps. No I/O except for the clock."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.doctor.findings import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SHOWN_LINES: Final = 20
"""Lines of a check that text and page show; JSON has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """One check: what was found in one line, a line for each object concerned, and what to change."""

    check: str
    status: Status
    text: str
    lines: tuple[str, ...] = ()
    fix: str | None = None

    @property
    def shown(self) -> Sequence[str]:
        """The first lines, and how many more there are."""
        left = len(self.lines) - SHOWN_LINES
        return [
            *self.lines[:SHOWN_LINES],
            *([f"and {left:,} more; the JSON report has all of them"] if left > 0 else []),
        ]


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A part of the facts that could not be read, and why."""

    reason: str


def not_checked(check: str, unread: UnreadPart) -> CheckResult:
    """Return the result of a check whose facts could not be read."""
    return CheckResult(check=check, status=Status.NOT_CHECKED, text=unread.reason)


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A step and its duration; `in_rto` says that an unplanned failover has to do it too."""

    name: str
    seconds: float
    in_rto: bool


@dataclass(slots=True)
class Stopwatch:
    """Measures steps."""

    steps: list[MeasuredStep] = field(default_factory=list)

    @contextmanager
    def step(self, name: str, *, in_rto: bool = False) -> Iterator[None]:
        """Measure what is done in the context, whether it succeeds or not."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.steps.append(MeasuredStep(name, time.monotonic() - began, in_rto))


def count_of(number: int, noun: str) -> str:
    """Return `1 record` or `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def has_failed(results: Iterable[CheckResult]) -> bool:
    """Whether a check failed."""
    return any(one.status is Status.FAILED for one in results)
