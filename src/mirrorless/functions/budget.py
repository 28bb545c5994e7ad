"""The time left for an invocation, so that it ends between two units of work and not in the middle of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Context(Protocol):
    """The part of Lambda's context object that is used."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the invocation."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """The time of one invocation; `reserve_s` is kept to end orderly: the last unit's end, metrics, the answer."""

    context: Context
    reserve_s: float = 10.0

    @property
    def left_s(self) -> float:
        """Seconds for work; 0 if only the reserve is left."""
        return max(0.0, self.context.get_remaining_time_in_millis() / 1000 - self.reserve_s)

    def is_used_up(self) -> bool:
        """Whether no other unit of work should begin."""
        return self.left_s <= 0
