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

    from mirrorless.errors import MirrorlessError
    from mirrorless.functions.job_decision import JobRuns
    from mirrorless.metadata.sync_pass import SyncPass
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

    def done(self, function: str, answer: Mapping[str, Any]) -> None:
        """Log the answer at the end of an invocation."""

    def failed(self, error: MirrorlessError) -> None:
        """Log the error with which an invocation ends, and which is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeContext:
    """The context of a call: its variables, its sink, and where jobs run (by a job's name)."""

    variables: Mapping[str, str]
    sink: Sink
    jobs: Callable[[str], AbstractContextManager[JobRuns]]


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
