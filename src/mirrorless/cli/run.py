"""`mirrorless run`: every flow of a configuration, on this machine."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

import click
from rich.console import Console

from mirrorless.cli.verbose import verbose_option
from mirrorless.local.display import LiveTable, LogLines, ProgressBar
from mirrorless.local.java import java_executable
from mirrorless.local.prometheus_display import measured
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.settings import load
from mirrorless.settings.mirrormaker1 import location

if TYPE_CHECKING:
    from mirrorless.local.displays import Display


@click.command
@click.argument("files", nargs=-1)
@click.option("--available-now", is_flag=True, help="End when everything that is there now has been copied.")
@click.option("--consumer.config", "consumer", help="A MirrorMaker 1's consumer file, instead of FILES.")
@click.option("--producer.config", "producer", help="A MirrorMaker 1's producer file.")
@click.option("--include", "--whitelist", "include", help="A MirrorMaker 1's topics, a pattern such as 'a|b'.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve metrics as Prometheus text on this port, at /metrics; 0 takes any free one.",
)
@click.option("--spark-master", help="A Spark master other than this process, such as 'local-cluster[2,1,1024]'.")
@verbose_option
def run(
    files: tuple[str, ...],
    *,
    available_now: bool,
    consumer: str | None,
    producer: str | None,
    include: str | None,
    metrics_port: int | None,
    spark_master: str | None,
) -> None:
    """Replicate the flows of FILES until Ctrl-C or SIGTERM.

    FILES is a MirrorMaker 2 configuration: an mm2.properties, or connectors in JSON as Connect's REST interface has
    them; on disk, or in S3 (s3://bucket/key) or the SSM parameter store (ssm:/name).

    On a terminal a table shows every topic; elsewhere there is a line of JSON for what happens. Exit status 0 if all
    went well, 1 if a partition stopped, a cluster did not answer, or something else is left undone.
    """
    if consumer is not None or producer is not None or include is not None:
        if files:
            raise click.UsageError("give FILES, or the three options of a MirrorMaker 1, not both")
        if not consumer or not producer or not include:
            raise click.UsageError("a MirrorMaker 1 needs --consumer.config, --producer.config and --include")
        files = (location(consumer=consumer, producer=producer, include=include),)
    elif not files:
        raise click.UsageError("Missing argument 'FILES'")
    settings = load(*files)
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    java_executable()  # without one nothing is begun
    console = Console()
    display: AbstractContextManager[Display]
    if not console.is_terminal:
        display = nullcontext(LogLines(sys.stdout))
    elif available_now:
        display = ProgressBar(console)
    else:
        display = LiveTable(console)
    stop = StopRequest()
    with stop.on_signals(), ExitStack() as stack:
        shown: Display = stack.enter_context(display)
        if metrics_port is not None:
            shown = stack.enter_context(measured(settings, shown, port=metrics_port))
        went_well = run_flows(settings, bounded=available_now, display=shown, stop=stop, master=spark_master)
    sys.exit(0 if went_well else 1)
