"""`mirrorless verify`: proof that both sides of a flow hold the same."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mirrorless.cli.tables import print_table
from mirrorless.cli.verbose import verbose_option
from mirrorless.errors import MirrorlessError
from mirrorless.local.verification import verify_flows
from mirrorless.settings import load
from mirrorless.verify.comparison import ComparisonTerms, first_line
from mirrorless.verify.findings import DIFFERENT, NOT_COMPARED, by_topic
from mirrorless.verify.page import page
from mirrorless.verify.repair import repair_plan as steps_for
from mirrorless.verify.report import RESULTS, to_json, write, write_parquet

if TYPE_CHECKING:
    from types import TracebackType

    from mirrorless.verify.findings import VerificationResult
    from mirrorless.verify.repair import Step

_MOST_ROWS = 100
_NUMBERS = ("partitions", "records", "windows", "differences", "not copied")


class _Bar:
    """A progress bar on stderr, which is only there on a terminal."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("starting Spark", total=None)

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
        """Say what is being done."""
        self._progress.update(self._task, description=f"{flow} {text}".strip(), total=None, completed=0)

    def tasks(self, done: int, total: int) -> None:
        """Move the bar."""
        self._progress.update(self._task, completed=done, total=total)


@click.command
@click.argument("file")
@click.option("--flow", "name", help="Only this flow, such as 'A->B'.")
@click.option("--topics", default=".*", metavar="PATTERNS", help="Only these source topics: patterns, with commas.")
@click.option("--since", metavar="TIME", help="Only records of this time or later, such as 2026-01-31T12:00:00Z.")
@click.option("--sample", metavar="PERCENT", type=click.FloatRange(0, 100, min_open=True), help="Only so much of it.")
@click.option("--json", "json_file", metavar="FILE", help="Write the result as JSON; '-' for standard output.")
@click.option("--parquet", metavar="DIR", help="Write partitions, differences and windows as Parquet.")
@click.option("--html", metavar="FILE", help="Write a page that shows the result.")
@click.option("--repair-plan", is_flag=True, help="Say for each difference what would mend it. Writes nothing.")
@click.option("--spark-master", help="A Spark master other than this process.")
@verbose_option
def verify(
    file: str,
    *,
    name: str | None,
    topics: str,
    since: str | None,
    sample: float | None,
    json_file: str | None,
    parquet: str | None,
    html: str | None,
    repair_plan: bool,
    spark_master: str | None,
) -> None:
    """Compare both sides of the flows of FILE: records, topics, configs, ACLs, group offsets. Changes nothing.

    Every record counts, with key, value, headers, timestamp and order; a difference is shown at its offset. What is not
    copied yet, and what retention has taken on one side, is no difference.

    Exit status 0 if both sides are identical, 1 if there are differences, 2 if something could not be compared.
    """
    try:
        settings = load(file)
        flows = [settings.flow(name)] if name else list(settings.flows)
        terms = ComparisonTerms.read(topics=topics, since=since, percent=sample)
        with _Bar() as shown:
            found = verify_flows(flows, terms, shown=shown, master=spark_master)
        verdicts = [verdict for verdict, _ in found]
        plans = [steps_for(one, file=file) if repair_plan else [] for one in verdicts]
        if parquet is not None:
            write_parquet(parquet, found)
        if html is not None:
            write(html, page(verdicts, plans).encode())
        if json_file is not None and json_file != "-":
            write(json_file, to_json(verdicts).encode())
    except (MirrorlessError, OSError) as error:
        _give_up(str(error))
    except KeyboardInterrupt:
        _give_up("interrupted")
    except Exception as error:  # noqa: BLE001 -- Python's exit status of a crash is the one for differences
        _give_up(": ".join(dict.fromkeys((type(error).__name__, first_line(error)))))
    if json_file == "-":
        click.echo(to_json(verdicts), nl=False)
    else:
        for verdict, steps in zip(verdicts, plans, strict=True):
            _show(verdict)
            if repair_plan:
                _show_plan(steps)
    statuses = {verdict.status for verdict in verdicts}
    sys.exit(DIFFERENT if DIFFERENT in statuses else max(statuses))


def _give_up(reason: str) -> NoReturn:
    click.echo(f"error: {reason}", err=True)
    sys.exit(NOT_COMPARED)


def _show(verdict: VerificationResult) -> None:
    topics = by_topic(verdict)
    if topics:
        table = Table("topic", "remote topic", *_NUMBERS, title=f"{verdict.flow}: {RESULTS[verdict.status]}")
        for column in table.columns[2:]:
            column.justify = "right"
        for one in topics[:_MOST_ROWS]:
            numbers = (one.partitions, one.records, one.windows, one.differences, one.not_copied)
            table.add_row(one.topic, one.remote_topic, *(f"{number:,}" for number in numbers))
        print_table(table)
        if len(topics) > _MOST_ROWS:
            click.echo(f"the first {_MOST_ROWS} of {len(topics)} topics; --json has all of them")
    else:
        click.echo(f"{verdict.flow}: {RESULTS[verdict.status]}")
    _show_differences(verdict)
    for partition in verdict.partitions:
        if partition.more:
            click.echo(f"{partition.topic}-{partition.partition}: there are more differences than are shown")
        for note in partition.notes:
            click.echo(f"note: {partition.topic}-{partition.partition}: {note}")
    for note in verdict.notes:
        click.echo(f"note: {note}")
    for trouble in verdict.troubles:
        click.echo(f"could not compare: {trouble}", err=True)
    seconds = (verdict.ended_ms - verdict.began_ms) / 1000
    click.echo(
        f"{verdict.flow}: {_result(verdict)}; {verdict.records:,} records compared, "
        f"{verdict.size_bytes / 1e6:,.1f} MB of both sides, in {seconds:,.1f} s"
    )


def _result(verdict: VerificationResult) -> str:
    number = len(verdict.differences)
    return f"{number:,} difference{'' if number == 1 else 's'}" if number else RESULTS[verdict.status]


def _show_differences(verdict: VerificationResult) -> None:
    if not verdict.differences:
        return
    table = Table("where", "source offset", "target offset", "difference")
    for difference in verdict.differences[:_MOST_ROWS]:
        offsets = (difference.upstream, difference.downstream)
        cells = ("" if offset is None else f"{offset:,}" for offset in offsets)
        table.add_row(difference.place, *cells, difference.text)
    print_table(table)
    if len(verdict.differences) > _MOST_ROWS:
        click.echo(f"the first {_MOST_ROWS} of {len(verdict.differences):,} differences; --json has all of them")


def _show_plan(steps: list[Step]) -> None:
    if not steps:
        click.echo("nothing to mend")
        return
    table = Table("where", "mends", "how")
    for step in steps:
        table.add_row(step.place, step.mends, step.action)
    print_table(table)
