"""What `mirrorless verify` prints: a progress bar, tables of topics and differences, and the repair plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from mirrorless.local.listing import Listing
from mirrorless.verify.findings import by_topic
from mirrorless.verify.report import RESULTS

if TYPE_CHECKING:
    from types import TracebackType

    from mirrorless.verify.findings import VerificationResult
    from mirrorless.verify.repair import Step

_MOST_ROWS = 100
_NUMBERS = ("partitions", "records", "windows", "differences", "not copied")
_OFFSETS = ("source offset", "target offset")


class VerifyBar:
    """A progress bar on standard error, shown on a terminal only."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> Self:
        if self._progress.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress.console.is_terminal:
            self._progress.stop()

    def step(self, flow: str, text: str) -> None:
        """Show the current step."""
        self._progress.update(self._task, description=f"{flow} {text}".strip(), total=None, completed=0)

    def tasks(self, done: int, total: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total)


def show(result: VerificationResult) -> None:
    """Print the result for a flow."""
    topics = by_topic(result)
    if topics:
        title = f"{result.flow}: {RESULTS[result.status]}"
        listing = Listing("topic", "remote topic", *_NUMBERS, numbers=_NUMBERS, title=title)
        for one in topics[:_MOST_ROWS]:
            numbers = (one.partitions, one.records, one.windows, one.differences, one.not_copied)
            listing.add(one.topic, one.remote_topic, *(f"{number:,}" for number in numbers))
        listing.print()
        if len(topics) > _MOST_ROWS:
            click.echo(f"first {_MOST_ROWS:,} of {len(topics):,} topics; --json prints all of them")
    else:
        click.echo(f"{result.flow}: {RESULTS[result.status]}")
    _show_differences(result)
    for partition in result.partitions:
        if partition.more:
            click.echo(f"{partition.topic}-{partition.partition}: more differences exist than are listed")
        for note in partition.notes:
            click.echo(f"note: {partition.topic}-{partition.partition}: {note}")
    for note in result.notes:
        click.echo(f"note: {note}")
    for trouble in result.troubles:
        click.echo(f"not compared: {trouble}", err=True)
    seconds = (result.ended_ms - result.began_ms) / 1000
    click.echo(
        f"{result.flow}: {_result(result)}; {result.records:,} records compared, "
        f"{result.size_bytes / 1e6:,.1f} MB of both sides, in {seconds:,.1f} s"
    )


def _result(result: VerificationResult) -> str:
    number = len(result.differences)
    return f"{number:,} difference{'' if number == 1 else 's'}" if number else RESULTS[result.status]


def _show_differences(result: VerificationResult) -> None:
    if not result.differences:
        return
    listing = Listing("where", *_OFFSETS, "difference", numbers=_OFFSETS)
    for difference in result.differences[:_MOST_ROWS]:
        offsets = (difference.upstream, difference.downstream)
        cells = ("" if offset is None else f"{offset:,}" for offset in offsets)
        listing.add(difference.place, *cells, difference.text)
    listing.print()
    if len(result.differences) > _MOST_ROWS:
        click.echo(f"first {_MOST_ROWS:,} of {len(result.differences):,} differences; --json prints all of them")


def show_plan(steps: list[Step]) -> None:
    """Print a repair plan."""
    if not steps:
        click.echo("nothing to repair")
        return
    listing = Listing("where", "repairs", "how")
    for step in steps:
        listing.add(step.place, step.repairs, step.action)
    listing.print()
