"""The runtime of a function: on Lambda its process, on one machine the context that `mirrorless run` provides.

On one machine several flows share a process, and the functions' output goes to a terminal, so the local runner sets the
context during a call. On Lambda it is not set, and a function uses its process's environment, log and AWS.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from mirrorless.copy.api import Control, CopyOutcome, Report
    from mirrorless.errors import MirrorlessError
    from mirrorless.functions.job_decision import JobRuns
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.publishing.lease_meter import Sample
    from mirrorless.settings import Flow

Level = Literal["info", "warning", "error"]


class Sink(Protocol):
    """The destination of a function's log and metrics."""

    def begin(self, *, flow: str, request: str) -> None:
        """Begin an invocation."""

    def tell(self, level: Level, text: str, **fields: object) -> None:
        """Log an event."""

    def discovered(self, found: SyncPass) -> None:
        """Log the result of a sync run."""

    def measured(self, flow: Flow, values: Mapping[str, Sequence[float]]) -> None:
        """Publish values of metrics of `metrics.METRICS`."""

    def leased(self, flow: Flow, samples: Sequence[Sample]) -> None:
        """Publish the metrics of a lease."""

    def done(self, function: str, answer: Mapping[str, Any]) -> None:
        """Log the answer at the end of an invocation."""

    def failed(self, error: MirrorlessError) -> None:
        """Log the error with which an invocation ends, and which is raised."""


class CopyAccount(Protocol):
    """What `mirrorless run` gives to the copy function: its control, and the account of what was copied."""

    @property
    def function_control(self) -> Control:
        """Ends the copy, and gets the reports of a running lease."""

    @property
    def bounded(self) -> bool:
        """Whether the copy ends when everything that existed at its start is copied."""

    @property
    def over(self) -> bool:
        """Whether a bounded copy has ended."""

    def wait_to_begin(self, seconds: float) -> bool:
        """Wait at most so long until the flow's topics were compared; returns whether they were."""

    def let_functions_copy(self, allowed: bool) -> None:
        """End the functions' lease if the flow is paused; let them copy if it is not."""

    def lease_ended(self, reports: list[Report]) -> None:
        """Take the reports of a finished lease."""

    def ended(self, outcome: CopyOutcome) -> None:
        """Take how a bounded copy ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeContext:
    """The context of a call: its variables, its sink, where jobs run (by a job's name), and the copy's account."""

    variables: Mapping[str, str]
    sink: Sink
    jobs: Callable[[str | None], AbstractContextManager[JobRuns]]
    copy: CopyAccount


_given: ContextVar[RuntimeContext | None] = ContextVar("runtime_context", default=None)


def runtime_context() -> RuntimeContext | None:
    """Return the context of this call; None on Lambda."""
    return _given.get()


@contextmanager
def within(given: RuntimeContext) -> Iterator[None]:
    """Set the context for every function that this thread calls in it."""
    token = _given.set(given)
    try:
        yield
    finally:
        _given.reset(token)
