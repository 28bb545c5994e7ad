"""Where a process that Spark starts finds its flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRef:
    """Where a worker finds its flow: the configuration's location and the flow's name; no secret travels."""

    location: str
    flow: str
    bounded: bool = False

    def load(self) -> Flow:
        """Read the flow's configuration as it is now."""
        # Of the four processes that a query starts one after the other, two never read it.
        from mirrorless.settings import load  # noqa: PLC0415

        return load(self.location).flow(self.flow)
