"""The choice of what copies a flow, `functions` or `spark`: a record of the supervisor, beside the marks of runs.

It is also the supervisor's memory between two looks: since when the lag has grown, or the flow was caught up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

EngineName = Literal["functions", "spark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """What is to copy the flow, since when (ms since 1970), and why.

    `behind_since_ms`, `growing_since_ms` and `caught_up_since_ms` are None while that does not hold. `lag_bytes` is
    that at `looked_ms`. `silent_since_ms` is since when no function has run, at all looks up to `silent_ms`.
    `functions_bytes_per_s` is how fast `functions` of them copied while they were behind, 0 if that is not known.
    """

    engine: EngineName
    since_ms: int
    reason: str
    lag_bytes: int = 0
    looked_ms: int = 0
    silent_since_ms: int | None = None
    silent_ms: int = 0
    behind_since_ms: int | None = None
    growing_since_ms: int | None = None
    caught_up_since_ms: int | None = None
    functions_bytes_per_s: float = 0.0
    functions: int = 1

    @classmethod
    def parse(cls, said: dict[str, Any]) -> EngineChoice | None:
        """Read a record's value; None for one that is not a choice."""
        engine = said.get("engine")
        if engine not in ("functions", "spark"):
            return None
        try:
            return cls(
                engine=engine,
                since_ms=int(said["sinceMs"]),
                reason=str(said["reason"]),
                lag_bytes=int(said.get("lagBytes", 0)),
                looked_ms=int(said.get("lookedMs", 0)),
                silent_since_ms=_time(said.get("silentSinceMs")),
                silent_ms=int(said.get("silentMs", 0)),
                behind_since_ms=_time(said.get("behindSinceMs")),
                growing_since_ms=_time(said.get("growingSinceMs")),
                caught_up_since_ms=_time(said.get("caughtUpSinceMs")),
                functions_bytes_per_s=float(said.get("functionsBytesPerSecond", 0.0)),
                functions=max(1, int(said.get("functions", 1))),
            )
        except (KeyError, TypeError, ValueError):
            return None

    def to_json(self) -> bytes:
        """Return the record's value."""
        return json.dumps(
            {
                "engine": self.engine,
                "sinceMs": self.since_ms,
                "reason": self.reason,
                "lagBytes": self.lag_bytes,
                "lookedMs": self.looked_ms,
                "silentSinceMs": self.silent_since_ms,
                "silentMs": self.silent_ms,
                "behindSinceMs": self.behind_since_ms,
                "growingSinceMs": self.growing_since_ms,
                "caughtUpSinceMs": self.caught_up_since_ms,
                "functionsBytesPerSecond": round(self.functions_bytes_per_s),
                "functions": self.functions,
            },
            ensure_ascii=False,
        ).encode()


def _time(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
