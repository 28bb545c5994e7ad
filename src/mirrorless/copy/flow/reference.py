"""A reference to a flow's configuration, for processes that Spark starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.progress.run_marks import deployment_of

if TYPE_CHECKING:
    from mirrorless.settings import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRef:
    """The configuration's location and the flow's name, from which a worker loads the flow; contains no secret."""

    location: str
    flow: str
    bounded: bool = False

    @property
    def deployment(self) -> str:
        """The identity of the flow in the marks of its runs."""
        return deployment_of(self.location, self.flow)

    def load(self) -> Flow:
        """Read the flow's current configuration."""
        # Of the four processes that a query starts one after the other, two never read it.
        from mirrorless.settings import load  # noqa: PLC0415

        return load(self.location).flow(self.flow)
