"""How much memory a slot uses for records, from what its process has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MIB: Final = 1 << 20
_BUFFER_SHARE: Final = 16
_RESPONSE_SHARE: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimits:
    """Limits of a slot, in bytes.

    `queued` is for batches that wait for the target, `frames` for kept receive buffers, `response` for one answer of a
    broker of the source.
    """

    queued: int = 64 * _MIB
    frames: int = 64 * _MIB
    response: int = 8 * _MIB

    @classmethod
    def within(cls, megabytes: int) -> MemoryLimits:
        """Return the limits for a process that may use so many MB in all, at most those of a Spark worker."""
        available = megabytes * _MIB
        buffer = min(SPARK_WORKER.queued, available // _BUFFER_SHARE)
        return cls(queued=buffer, frames=buffer, response=min(SPARK_WORKER.response, available // _RESPONSE_SHARE))


SPARK_WORKER: Final = MemoryLimits()
"""The limits in a worker of Spark, which has a gigabyte or more."""
