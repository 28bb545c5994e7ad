"""`mirrorless archive write`: archive the flows of a configuration that lead into archives."""

from __future__ import annotations

import sys

import click

from mirrorless.archive.object_store import open_store, require_conditions
from mirrorless.archive.writing import write_all
from mirrorless.cli.options import file_argument, flow_option, verbose_option
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.errors import FlowNotEnabled
from mirrorless.local.runner import StopRequest
from mirrorless.settings import load


@click.command
@file_argument
@flow_option
@click.option("--available-now", is_flag=True, help="Exit when all records that exist at the start are copied.")
@verbose_option
def write(file: str, *, name: str | None, available_now: bool) -> None:
    """Archive the flows of FILE into their archives.

    Until Ctrl-C or SIGTERM. Begins where the objects end. Two processes at once make one
    history.

    Exit status 0: nothing halted; 1: a partition halted, or a flow ended; 2: it could not start.
    """
    settings = load(file)
    flows = [flow for flow in settings.archived if name in (None, flow.name)]
    if not flows:
        enabled = ", ".join(flow.name for flow in settings.archived) or "none"
        raise FlowNotEnabled(f"no such flow into an archive; enabled: {enabled}", file=file, key="flow", value=name)
    for flow in flows:
        require_conditions(open_store(dict(settings.archives)[flow.target.alias]))
    stop = StopRequest()

    def say(flow: str, line: str) -> None:
        click.echo(f"{flow}: {line}")

    with stop.on_signals():
        went_well = write_all(settings, flows, stopping=stop.event.is_set, caught_up=available_now, say=say)
    sys.exit(FINE if went_well else FOUND)
