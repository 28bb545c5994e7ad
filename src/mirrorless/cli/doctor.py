"""`mirrorless doctor`: whether both ends of every flow are ready, without writing anything."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mirrorless.cli.verbose import verbose_option
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.rights import Function
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.doctor.findings import Finding


@click.command
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--function",
    "functions",
    type=click.Choice(list(Function)),
    multiple=True,
    help="Check only what this function or job needs; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@verbose_option
def doctor(files: tuple[str, ...], *, functions: tuple[Function, ...], as_json: bool) -> None:
    """Check both ends of every flow of FILES: connections, rights, internal topics, limits, clocks.

    One line a check, and under one that failed what to change. Nothing is written to any cluster. Exit status 1 if a
    check failed; warnings, and what could not be checked for a reason of its own, leave it at 0.
    """
    settings = load(*files)
    chosen = [Function(name) for name in functions] or None
    found = {flow.name: examine(flow, chosen) for flow in settings.flows}
    if chosen is None or Function.HEARTBEAT in chosen:
        # The heartbeats of the way back, without which nobody there learns who is upstream.
        others = [pair for pair in settings.heartbeats if pair.name not in found]
        found |= {f"{pair.name} (heartbeats only)": examine(pair, [Function.HEARTBEAT]) for pair in others}
    if as_json:
        flows = {name: [asdict(one) for one in some] for name, some in found.items()}
        click.echo(json.dumps({"flows": flows, "warnings": settings.warnings}, indent=2))
    else:
        for warning in settings.warnings:
            click.echo(f"warning: {warning}", err=True)
        for name, some in found.items():
            _show(name, some)
        counts = Counter(one.status for some in found.values() for one in some)
        click.echo(", ".join(f"{counts[status]} {status}" for status in Status))
    sys.exit(1 if any(one.status is Status.FAILED for some in found.values() for one in some) else 0)


def _show(name: str, findings: Sequence[Finding]) -> None:
    click.echo(name)
    width = max((len(one.cluster or "") for one in findings), default=0)
    for one in findings:
        status = click.style(f"{one.status:11}", fg=_COLOURS[one.status])
        click.echo(f"  {status}  {one.cluster or '':{width}}  {one.check}: {one.text}")
        if one.fix is not None:
            click.echo(f"  {'':11}  {'':{width}}  -> {one.fix}")


_COLOURS = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "red", Status.NOT_CHECKED: None}
