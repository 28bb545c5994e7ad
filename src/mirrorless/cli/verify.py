"""`mirrorless verify`: proof that both sides of a flow hold the same."""

from __future__ import annotations

import importlib.util
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NoReturn

import click

from mirrorless.cli.options import (
    chosen_flows,
    file_argument,
    flow_option,
    json_option,
    output_option,
    spark_master_option,
    topics_option,
    verbose_option,
    warn,
)
from mirrorless.cli.verify_text import VerifyBar, show, show_plan
from mirrorless.errors import MirrorlessError, PrerequisiteError
from mirrorless.local.spark_host import spark_missing
from mirrorless.local.verification import verify_flows
from mirrorless.settings import load
from mirrorless.verify.comparison import ComparisonTerms, first_line
from mirrorless.verify.findings import DIFFERENT, NOT_COMPARED
from mirrorless.verify.page import page
from mirrorless.verify.repair import repair_plan as steps_for
from mirrorless.verify.report import to_json
from mirrorless.verify.report_file import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.verify.comparison import ComparedWindow
    from mirrorless.verify.findings import VerificationResult
    from mirrorless.verify.repair import Step


class ReportFormat(StrEnum):
    """What a result can be written as, by the suffix of the file."""

    JSON = ".json"
    HTML = ".html"
    PARQUET = ".parquet"


_JSON: Final = "--json"
_FORMER_JSON: Final = "mirrorless.verify.json"


class _Verify(click.Command):
    """Understands the former `--json FILE` where it is unambiguous, for one release."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take a value of `--json` out of the arguments: what follows it, where FILE is given beside it."""
        for number, one in enumerate(args):
            if one.startswith(f"{_JSON}="):
                ctx.meta[_FORMER_JSON] = one.partition("=")[2]
                return super().parse_args(ctx, [*args[:number], *args[number + 1 :]])
        number = args.index(_JSON) if _JSON in args else len(args)
        if number + 1 < len(args) and len(self.make_parser(ctx).parse_args(list(args))[1]) == 1:
            ctx.meta[_FORMER_JSON] = args[number + 1]
            args = [*args[:number], *args[number + 2 :]]
        return super().parse_args(ctx, args)


@click.command(cls=_Verify)
@file_argument
@flow_option
@topics_option
@click.option(
    "--since", metavar="TIME", help="Only records of this time or later, such as 2026-01-31T12:00:00Z, 26h or 7d."
)
@click.option(
    "--sample", metavar="PERCENT", type=click.FloatRange(0, 100, min_open=True), help="Only this share of the records."
)
@output_option
@click.option("--html", hidden=True)
@click.option("--parquet", hidden=True)
@click.option(
    "--with",
    "engine",
    type=click.Choice(["auto", "python", "spark"]),
    default="auto",
    show_default=True,
    help="What compares: Spark any size, Python what one process reads in minutes; auto is Spark if it is installed.",
)
@click.option("--repair-plan", is_flag=True, help="Add for each difference what would repair it. Repairs nothing.")
@spark_master_option
@json_option
@click.pass_context
@verbose_option
def verify(
    ctx: click.Context,
    *,
    file: str,
    name: str | None,
    topics: str,
    since: str | None,
    sample: float | None,
    outputs: tuple[str, ...],
    html: str | None,
    parquet: str | None,
    repair_plan: bool,
    engine: str,
    spark_master: str | None,
    as_json: bool,
) -> None:
    """Compare both sides of each flow, record by record.

    Compares records (key, value, headers, timestamp, order), topics, configs, ACLs and group offsets of the flows of
    FILE, and lists each difference at its offset. Writes to no cluster. Records that are not copied yet, or that
    retention deleted on one side, are no difference. Without Spark, large flows are refused with their size. Forms of
    --output are .json, .html and .parquet (a folder of tables).

    Exit status 0: both sides are identical; 1: there are differences; 2: something could not be compared.
    """
    reports = [(_format(one), one) for one in outputs]
    for former, kind, value in (("--html", ReportFormat.HTML, html), ("--parquet", ReportFormat.PARQUET, parquet)):
        if value is not None:
            warn(f"{former} is deprecated and will be removed in the next release: use --output FILE{kind}")
            reports.append((kind, value))
    if (json_file := ctx.meta.get(_FORMER_JSON)) is not None:
        as_json = json_file == "-"
        use = "--json without a value" if as_json else "--output FILE.json"
        warn(f"--json FILE is deprecated and will be removed in the next release: use {use}")
        if not as_json:
            reports.append((ReportFormat.JSON, json_file))
    try:
        terms = ComparisonTerms.read(topics=topics, since=since, percent=sample)
        with_spark = _with_spark(engine, spark_master, [kind for kind, _ in reports])
        with VerifyBar() as bar:
            found = verify_flows(
                chosen_flows(load(file), name), terms, shown=bar, master=spark_master, with_spark=with_spark
            )
        results = [result for result, _ in found]
        plans = [steps_for(one, file=file) for one in results] if repair_plan else []
        for kind, location in reports:
            _write(kind, location, found, plans)
    except (MirrorlessError, OSError) as error:
        _give_up(str(error))
    except KeyboardInterrupt:
        _give_up("interrupted")
    except Exception as error:  # noqa: BLE001 -- Python's exit status of a crash is the one for differences
        _give_up(": ".join(dict.fromkeys((type(error).__name__, first_line(error)))))
    if as_json:
        click.echo(to_json(results, plans), nl=False)
    else:
        for number, result in enumerate(results):
            show(result)
            if plans:
                show_plan(plans[number])
    statuses = {result.status for result in results}
    sys.exit(DIFFERENT if DIFFERENT in statuses else max(statuses))


def _with_spark(engine: str, master: str | None, forms: Sequence[ReportFormat]) -> bool:
    """Whether Spark compares; raises `PrerequisiteError` if what is asked for needs a package that is missing."""
    if ReportFormat.PARQUET in forms and importlib.util.find_spec("pyarrow") is None:
        raise PrerequisiteError("--output FILE.parquet needs PyArrow: pip install 'mirrorless[spark]'")
    if engine == "python":
        if master is not None:
            raise click.UsageError("--spark-master is for --with spark")
        return False
    missing = spark_missing()
    if missing and (engine == "spark" or master is not None):
        raise PrerequisiteError(missing)
    return not missing


def _format(location: str) -> ReportFormat:
    for one in ReportFormat:
        if location.rstrip("/").endswith(one):
            return one
    raise click.BadParameter(f"{location}: must end in {', '.join(ReportFormat)}", param_hint="--output")


def _write(
    kind: ReportFormat,
    location: str,
    found: Sequence[tuple[VerificationResult, list[ComparedWindow]]],
    plans: Sequence[Sequence[Step]],
) -> None:
    results = [result for result, _ in found]
    match kind:
        case ReportFormat.JSON:
            write(location, to_json(results, plans).encode())
        case ReportFormat.HTML:
            write(location, page(results, plans).encode())
        case ReportFormat.PARQUET:
            from mirrorless.verify.parquet import write_parquet  # noqa: PLC0415 -- PyArrow may not be installed

            write_parquet(location, found)


def _give_up(reason: str) -> NoReturn:
    click.echo(f"error: {reason}", err=True)
    sys.exit(NOT_COMPARED)
