"""`mirrorless drill`: whether applications could move to the target now, and what it would cost."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING

import click

from mirrorless.cli import interrupts
from mirrorless.cli.options import (
    chosen_flows,
    file_argument,
    flow_option,
    json_option,
    output_option,
    target_option,
    verbose_option,
)
from mirrorless.cli.status_codes import COULD_NOT, FINE, FOUND
from mirrorless.doctor.findings import Status
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.operations.drill.page import page
from mirrorless.operations.drill.report import as_text, to_json
from mirrorless.operations.drill.run import MOST_POSITIONS, drill_flow
from mirrorless.operations.drill.stored import store
from mirrorless.operations.results import has_failed
from mirrorless.settings import load
from mirrorless.verify.report_file import write

if TYPE_CHECKING:
    from mirrorless.operations.drill.report import DrillReport


class _Form(StrEnum):
    """What a report can be written as, by the suffix of the file."""

    JSON = ".json"
    HTML = ".html"
    TEXT = ".txt"


@click.command
@file_argument
@target_option(required=True)
@flow_option
@click.option(
    "--positions",
    "most_positions",
    metavar="N",
    type=click.IntRange(1),
    default=MOST_POSITIONS,
    show_default=True,
    help="Compare the records at so many positions of groups at most, chosen at random.",
)
@click.option("--canary", is_flag=True, help="Also move a topic and a group of its own, there and back.")
@click.option("--html", "as_html", is_flag=True, help="Print the report as one HTML page on standard output.")
@output_option
@json_option
@verbose_option
def drill(
    file: str,
    *,
    target: str,
    name: str | None,
    most_positions: int,
    canary: bool,
    as_html: bool,
    outputs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Rehearse a failover to the target without stopping anything.

    Forecasts every group, compares the records at the groups' positions and in samples on both sides, compares topics,
    configs, ACLs and the rights of principals, and measures lag and time against mirrorless.rpo.seconds and
    mirrorless.rto.seconds. Writes to no cluster, except with --canary to topics and a group named mirrorless-canary.
    Forms of --output are .json, .html and .txt. With mirrorless.drill.reports the report is also stored there, for the
    live page.

    Exit status 0: no check failed; 1: a check failed; 2: a flow, or a check, could not be done, or no flow leads there.
    """
    if as_json and as_html:
        raise click.UsageError("give --json or --html, not both")
    forms = [(_form(one), one) for one in outputs]
    settings = load(file)
    flows = [flow for flow in chosen_flows(settings, name) if flow.target.alias == target]
    if not flows:
        raise ConfigurationError(f"no enabled flow has the target {target}", file=file)
    if canary:
        interrupts.must_end_by_itself()
    reports: list[DrillReport] = []
    errors: dict[str, str] = {}
    for flow in flows:
        try:
            reports.append(drill_flow(settings, flow, most_positions=most_positions, canary=canary))
        except ClusterError as error:
            errors[flow.name] = str(error)
    printed = _Form.JSON if as_json else _Form.HTML if as_html else _Form.TEXT
    click.echo(_report(printed, reports, errors), nl=False)
    for flow_name, text in errors.items():
        click.echo(f"error: flow {flow_name}: {text}", err=True)
    folders = {flow.name: flow.drill_reports for flow in flows}
    try:
        for form, location in forms:
            write(location, _report(form, reports, errors).encode())
        for one in reports:
            if (folder := folders[one.flow]) is not None:
                click.echo(f"report of {one.flow}: {store(folder, one)}", err=True)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    sys.exit(_status(reports, errors))


def _status(reports: list[DrillReport], errors: dict[str, str]) -> int:
    """A failed check takes precedence over what could not be done."""
    if any(has_failed(one.results) for one in reports):
        return FOUND
    return COULD_NOT if errors or any(one.status is Status.NOT_CHECKED for one in reports) else FINE


def _form(location: str) -> _Form:
    for one in _Form:
        if location.endswith(one):
            return one
    raise click.BadParameter(f"{location}: must end in {', '.join(_Form)}", param_hint="--output")


def _report(form: _Form, reports: list[DrillReport], errors: dict[str, str]) -> str:
    match form:
        case _Form.JSON:
            return to_json(reports, errors)
        case _Form.HTML:
            return page(reports, errors)
        case _Form.TEXT:
            return "\n".join(as_text(one) for one in reports)
