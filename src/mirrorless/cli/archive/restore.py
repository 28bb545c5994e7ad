"""`mirrorless archive restore`: a cluster as it was at a time, from an archive."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

import click
from rich.console import Console

from mirrorless.archive.broker import ArchiveBroker
from mirrorless.archive.view import ArchiveView
from mirrorless.cli.archive.options import moment, stores, until_option
from mirrorless.cli.options import file_argument, flow_option, verbose_option, with_flow
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.errors import FlowNotEnabled
from mirrorless.local.display import LogLines, ProgressBar
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.settings import load
from mirrorless.settings.archives import SERVED_VARIABLE

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mirrorless.local.displays import Display


@click.command
@file_argument
@flow_option
@until_option
@verbose_option
def restore(file: str, *, name: str | None, until: str | None) -> None:
    """Restore a cluster as it was at a time.

    Restores the flows of FILE that lead from an archive: topics, configs, records and group offsets, as they were at
    the last second of state before --until, and of each partition a prefix. The flow's own filters choose topics and
    groups; with mirrorless.offsets=identical records have the offsets that they had. It can be interrupted and run
    again. What an archive lacks is named, and nothing behind it is restored.

    Exit status 0: everything is restored; 1: a partition halted, or the archive lacks records; 2: it could not start.
    """
    at_ms = moment(until)
    archives = stores(load(file), None)
    with ExitStack() as stack:
        views = {alias: ArchiveView(store, at_ms) for alias, store in archives.items()}
        served = {alias: stack.enter_context(ArchiveBroker(view)) for alias, view in views.items()}
        # For this process, which reads FILE again and again, and for those that Spark starts.
        os.environ[SERVED_VARIABLE] = ",".join(f"{alias}={broker.address}" for alias, broker in served.items())
        settings = load(file)
        flows = tuple(flow for flow in settings.flows if flow.source.alias in views)
        if not flows:
            raise FlowNotEnabled(
                f"no flow leads from an archive; enable one, such as {next(iter(views))}->B", file=file, key="flow"
            )
        settings = with_flow(settings.model_copy(update={"flows": flows}), name)
        lacking = [
            f"{alias}: {topic}-{partition}: {reason}"
            for alias, view in views.items()
            for (topic, partition), reason in view.lacking.items()
        ]
        for line in lacking:
            click.echo(f"warning: {line}", err=True)
        console = Console()
        shown: AbstractContextManager[Display]
        shown = ProgressBar(console) if console.is_terminal else nullcontext(LogLines(sys.stdout))
        stop = StopRequest()
        with stop.on_signals(), shown as display:
            went_well = run_flows(settings, bounded=True, display=display, stop=stop)
    sys.exit(FINE if went_well and not lacking else FOUND)
