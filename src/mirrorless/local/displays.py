"""Who hears of a run: a terminal, a log collector, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.sync_pass import SyncPass


class Display(Protocol):
    """Who shows a run to people or to a log collector."""

    def discovered(self, flow: str, found: SyncPass) -> None:
        """Topics, configs or ACLs were looked at."""

    def note(self, flow: str, text: str) -> None:
        """Something is not done, and why; told once."""

    def warning(self, flow: str, text: str) -> None:
        """Something is done otherwise than it is set, and why; told once."""

    def waiting(self, flow: str, text: str) -> None:
        """What the flow waits for at the moment; empty if for nothing. Told at every look."""

    def trouble(self, flow: str, text: str) -> None:
        """Something does not work at the moment; whoever tells it does so once, until it works again."""

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        """How far a flow is."""

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        """A lease ended, and whether something is wrong; called from a thread of Spark's."""

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """A pass of the checkpoints ended."""

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        """A metric of `metrics.METRICS` has new values."""

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        """A flow ended; `complete` says that all there was at the start is on the target."""
