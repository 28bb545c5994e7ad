"""The interface of displays: a terminal, a log collector, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.copy.api import Report
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.sync_pass import SyncPass


class Display(Protocol):
    """Shows a run to a user or to a log collector."""

    def discovered(self, flow: str, found: SyncPass) -> None:
        """Show the result of a sync run of topics, configs or ACLs."""

    def note(self, flow: str, text: str) -> None:
        """Show something that is not done, and why; called once."""

    def warning(self, flow: str, text: str) -> None:
        """Show a setting that is not followed exactly, and why; called once."""

    def waiting(self, flow: str, text: str) -> None:
        """Show what the flow waits for; empty if it does not wait. Called at every refresh."""

    def trouble(self, flow: str, text: str) -> None:
        """Show an error; called once, until the operation works again."""

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        """Show the progress of a flow."""

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        """Show the end of a lease, and whether it has an error; called from a thread of Spark."""

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """Show the end of a checkpoint run."""

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:
        """A metric of `metrics.METRICS` has new values."""

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        """Show the end of a flow; `complete` says that all records that existed at the start are on the target."""
