"""When a partition that failed is tried again."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

_FIRST_S: Final = 0.02
_MAX_S: Final = 2.0
"""How long partitions may wait once a link is back."""
_TOGETHER_S: Final = 0.25
"""Long pauses end at multiples of this: partitions that are due at once are asked for with one request per leader."""
_MAX_DOUBLINGS: Final = 10


@dataclass(slots=True)
class Retry:
    """Failures since the last acknowledged batch, and the time of the next attempt (`time.monotonic`)."""

    attempts: int = 0
    due: float = 0.0

    def failed(self, now: float) -> None:
        """Count a failure; the pause before the next attempt doubles up to 2 s, with jitter."""
        self.attempts += 1
        backoff = min(_MAX_S, _FIRST_S * 2 ** min(self.attempts, _MAX_DOUBLINGS))
        self.due = now + backoff * random.uniform(0.5, 1)  # noqa: S311 -- jitter, no secret
        if backoff >= 2 * _TOGETHER_S:
            self.due = math.ceil(self.due / _TOGETHER_S) * _TOGETHER_S

    def reset(self) -> None:
        """Forget the failures: the next pause is the shortest again."""
        self.attempts = 0

    def never(self) -> None:
        """Make no further attempt in this lease."""
        self.due = math.inf

    @property
    def is_never(self) -> bool:
        """Whether no further attempt is made in this lease."""
        return self.due == math.inf
