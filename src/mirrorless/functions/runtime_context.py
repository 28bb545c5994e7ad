"""What a function stands in: on Lambda a process of its own, on one machine what `mirrorless run` gives it.

There several flows share a process, and what a function tells goes to a terminal, so the local runner says so for the
length of a call. On Lambda nobody does, and a function takes its process's environment, log and AWS.
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
    """Where it goes what a function tells."""

    def begin(self, *, flow: str, request: str) -> None:
        """An invocation began."""

    def tell(self, level: Level, text: str, **fields: object) -> None:
        """Something happened, or did not."""

    def discovered(self, found: SyncPass) -> None:
        """A pass over metadata ended."""

    def measured(self, flow: Flow, values: Mapping[str, Sequence[float]]) -> None:
        """Metrics of `metrics.METRICS` have new values."""

    def done(self, function: str, answer: Mapping[str, Any]) -> None:
        """An invocation ended; this is its answer."""

    def failed(self, error: MirrorlessError) -> None:
        """An invocation ends with an error, which is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeContext:
    """What a call is given: its variables, who hears of it, and where jobs run (by a job's name)."""

    variables: Mapping[str, str]
    sink: Sink
    jobs: Callable[[str], AbstractContextManager[JobRuns]]


_given: ContextVar[RuntimeContext | None] = ContextVar("surroundings", default=None)


def surroundings() -> RuntimeContext | None:
    """Return what this call was given; None on Lambda."""
    return _given.get()


@contextmanager
def within(given: RuntimeContext) -> Iterator[None]:
    """Give it to every function that this thread calls meanwhile."""
    token = _given.set(given)
    try:
        yield
    finally:
        _given.reset(token)
