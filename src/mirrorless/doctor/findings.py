"""The result of a check: one line, and for a failed check what to change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """The status of a check; only `FAILED` makes a flow unfit."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: `cluster` is its alias, None for both ends; `fix` says what to change."""

    check: str
    status: Status
    text: str
    cluster: str | None = None
    fix: str | None = None


def some_of(names: list[str], *, most: int = 3) -> str:
    """Join the first few names: `a, b, c and 9 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
