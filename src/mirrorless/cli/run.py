"""`mirrorless run`: every flow of a configuration, on this machine."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click
from rich.console import Console

from mirrorless.local.display import LiveTable, LogLines, ProgressBar
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.settings import load


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--available-now", is_flag=True, help="End when everything that is there now has been copied.")
def run(file: str, *, available_now: bool) -> None:
    """Replicate the flows of FILE, a MirrorMaker 2 configuration, until Ctrl-C or SIGTERM.

    On a terminal a table shows every topic; elsewhere there is a line of JSON for what happens. Exit status 0 if all
    went well, 1 if a partition stopped or a cluster did not answer.
    """
    settings = load(file)
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    console = Console()
    display: LiveTable | ProgressBar | nullcontext[LogLines]
    if not console.is_terminal:
        display = nullcontext(LogLines(sys.stdout))
    elif available_now:
        display = ProgressBar(console)
    else:
        display = LiveTable(console)
    stop = StopRequest()
    with stop.on_signals(), display as shown:
        went_well = run_flows(settings, bounded=available_now, display=shown, stop=stop)
    sys.exit(0 if went_well else 1)
