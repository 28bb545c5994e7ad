"""`mirrorless doctor`: whether both ends of every flow are ready, without writing anything."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mirrorless.cli.options import files_argument, json_option, print_json, verbose_option, warn
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.rights import Function
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.doctor.findings import Finding


@click.command
@files_argument
@click.option(
    "--function",
    "functions",
    type=click.Choice(list(Function)),
    multiple=True,
    help="Only the checks that this function or job needs; repeat it for several.",
)
@json_option
@verbose_option
def doctor(files: tuple[str, ...], *, functions: tuple[Function, ...], as_json: bool) -> None:
    """Check that both ends of every flow are ready.

    Checks connections, rights, internal topics, limits and clocks of every flow of FILES, and writes nothing. Prints a
    line for each check, and for each failed check what to change.

    Exit status 0: no check failed (warnings, and checks that could not run, do not count); 1: a check failed; 2: FILES
    cannot be used.
    """
    settings = load(*files)
    chosen = [Function(name) for name in functions] or None
    found = {flow.name: examine(flow, chosen) for flow in settings.flows}
    if chosen is None or Function.HEARTBEAT in chosen:
        # The heartbeats of the opposite direction, without which no client there learns who is upstream.
        others = [pair for pair in settings.heartbeats if pair.name not in found]
        found |= {f"{pair.name} (heartbeats only)": examine(pair, [Function.HEARTBEAT]) for pair in others}
    if as_json:
        flows = {name: [asdict(one) for one in some] for name, some in found.items()}
        print_json({"flows": flows, "warnings": settings.warnings})
    else:
        for warning in settings.warnings:
            warn(warning)
        for name, some in found.items():
            _show(name, some)
        counts = Counter(one.status for some in found.values() for one in some)
        click.echo(", ".join(f"{counts[status]} {status}" for status in Status))
    sys.exit(FOUND if any(one.status is Status.FAILED for some in found.values() for one in some) else FINE)


def _show(name: str, findings: Sequence[Finding]) -> None:
    click.echo(name)
    width = max((len(one.cluster or "") for one in findings), default=0)
    for one in findings:
        status = click.style(f"{one.status:11}", fg=_COLOURS[one.status])
        click.echo(f"  {status}  {one.cluster or '':{width}}  {one.check}: {one.text}")
        if one.fix is not None:
            click.echo(f"  {'':11}  {'':{width}}  -> {one.fix}")


_COLOURS = {Status.OK: "green", Status.WARNING: "yellow", Status.FAILED: "red", Status.NOT_CHECKED: None}
