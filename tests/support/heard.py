"""Someone who listens to a run."""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mirrorless.functions import checkpoint
from mirrorless.local.flow_run import FlowRun
from mirrorless.local.spark_host import SparkHost
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.local.progress_view import TopicView
    from mirrorless.metadata.sync_pass import SyncPass


class Heard:
    """A display that remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[tuple[str, str]] = []
        self.passes: list[tuple[str, SyncPass]] = []
        self.troubles: list[tuple[str, str]] = []
        self.checkpoints: list[dict[str, Any]] = []
        self.values: dict[str, list[float]] = defaultdict(list)

    def discovered(self, flow: str, found: SyncPass) -> None:
        self.passes.append((flow, found))

    def note(self, flow: str, text: str) -> None:
        self.notes.append(f"{flow}: {text}")

    def warning(self, flow: str, text: str) -> None:
        self.warnings.append((flow, text))

    def waiting(self, flow: str, text: str) -> None:
        pass

    def trouble(self, flow: str, text: str) -> None:
        self.troubles.append((flow, text))

    def show(self, flow: str, topics: Sequence[TopicView]) -> None:
        pass

    def leased(self, flow: str, reports: list[Report], *, faulty: bool) -> None:
        pass

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:  # noqa: ARG002
        self.checkpoints.append(fields)

    def measured(self, flow: str, metric: str, values: Sequence[float]) -> None:  # noqa: ARG002
        self.values[metric] += values

    def finished(self, flow: str, *, records: int, copied_bytes: int, complete: bool) -> None:
        pass


def first_pass(run: FlowRun) -> list[SyncPass]:
    """Make the first pass over metadata, and return its results."""
    run.discover()
    return run.synced(seconds=1.0, asked=threading.Event())


@contextmanager
def without_copy(file: Path, heard: Heard) -> Iterator[FlowRun]:
    """Run the only flow of a configuration, all but its copy; the first pass over metadata is still to be made."""
    settings = load(str(file))
    (flow,) = settings.flows
    asked = threading.Event()
    run = FlowRun(
        settings,
        flow,
        folder=file.parent / "run",
        bounded=False,
        display=heard,
        spark=SparkHost(master="local", folder=file.parent, asked=asked),
        asked=asked,
    )
    try:
        yield run
    finally:
        asked.set()
        run.ask_to_stop()
        run.join(seconds=15)
        checkpoint._warm.forget(flow.name)  # what a function keeps warm ends with its process, elsewhere
