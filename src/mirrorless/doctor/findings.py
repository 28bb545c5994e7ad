"""What a check found: one line, and under one that failed what to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How a check ended; only `FAILED` makes a flow unfit."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: `cluster` is the alias it is about, None for both ends; `fix` says what to change."""

    check: str
    status: Status
    text: str
    cluster: str | None = None
    fix: str | None = None


def some_of(names: list[str], *, most: int = 3) -> str:
    """Name a few of many: `a, b, c and 9 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
