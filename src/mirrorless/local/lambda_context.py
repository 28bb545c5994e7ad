"""Lambda's context object on one machine: the template's timeout, shortened when the run is to end."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class LocalContext:
    """`functions.budget.Context` for one invocation of so many seconds; none is left once `ended` returns true."""

    def __init__(self, *, timeout_s: float, ended: Callable[[], bool]) -> None:
        self.aws_request_id = str(uuid.uuid4())
        self._until = time.monotonic() + timeout_s
        self._ended = ended

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the timeout."""
        return 0 if self._ended() else max(0, int((self._until - time.monotonic()) * 1000))
