"""`mirrorless run`: every flow of a configuration, on this machine."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from rich.console import Console

from mirrorless.cli.options import (
    CONFIG_VARIABLE,
    flow_option,
    spark_master_option,
    verbose_option,
    warn,
    web_options,
    with_flow,
)
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.cli.web_port import CommandWithPort
from mirrorless.local.archiving import archiving
from mirrorless.local.display import LiveTable, LogLines, ProgressBar
from mirrorless.local.runner import StopRequest, run_flows
from mirrorless.settings import load
from mirrorless.settings.load import ENGINE_VARIABLE
from mirrorless.settings.mirrormaker1 import location

if TYPE_CHECKING:
    from mirrorless.local.displays import Display


@click.command(cls=CommandWithPort)
@click.argument("files", nargs=-1, envvar=CONFIG_VARIABLE)
@flow_option
@click.option("--available-now", is_flag=True, help="Exit when all records that exist at the start are copied.")
@click.option("--consumer.config", "consumer", metavar="FILE", help="Consumer file of MirrorMaker 1, instead of FILES.")
@click.option("--producer.config", "producer", metavar="FILE", help="Producer file of MirrorMaker 1.")
@click.option(
    "--include", "--whitelist", "include", metavar="PATTERN", help="Topics of MirrorMaker 1, a pattern such as 'a|b'."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve Prometheus metrics at /metrics on this port; 0 selects a free one.",
)
@click.option("--web", is_flag=True, help="Serve the live page.")
@web_options
@click.option(
    "--engine",
    type=click.Choice(["auto", "functions", "spark"]),
    help="What copies, instead of mirrorless.engine of the configuration.",
)
@spark_master_option
@verbose_option
def run(
    files: tuple[str, ...],
    *,
    available_now: bool,
    consumer: str | None,
    producer: str | None,
    include: str | None,
    metrics_port: int | None,
    web: bool,
    web_port: int,
    name: str | None,
    web_address: str,
    web_token: str | None,
    web_actions: bool,
    web_cert: str | None,
    web_key: str | None,
    engine: str | None,
    spark_master: str | None,
) -> None:
    """Replicate the flows of FILES until Ctrl-C or SIGTERM.

    FILES are one mm2.properties, or connectors in the JSON of Kafka Connect's REST API; on disk, in S3
    (s3://bucket/key) or in the SSM parameter store (ssm:/name).

    Shows a table of topics on a terminal, and writes a line of JSON for each event elsewhere.

    Exit status 0: every flow ended without an error; 1: a partition halted, or a flow did not finish; 2: it could not
    start.
    """
    if consumer is not None or producer is not None or include is not None:
        if files:
            raise click.UsageError("give FILES or the three options of MirrorMaker 1, not both")
        if not consumer or not producer or not include:
            raise click.UsageError("MirrorMaker 1 needs --consumer.config, --producer.config and --include")
        files = (location(consumer=consumer, producer=producer, include=include),)
    elif not files:
        raise click.UsageError("Missing argument 'FILES'")
    if engine is not None:
        os.environ[ENGINE_VARIABLE] = engine  # also for the processes that Spark starts
    settings = with_flow(load(*files), name)
    for warning in settings.warnings:
        warn(warning)
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
            from mirrorless.local.prometheus_display import measured  # noqa: PLC0415 -- a start takes as much longer

            shown = stack.enter_context(measured(settings, shown, port=metrics_port))
        if web or _is_given("web_port"):
            from mirrorless.cli.web_terms import terms_of  # noqa: PLC0415 -- as above
            from mirrorless.web.display import on_page  # noqa: PLC0415

            terms = terms_of(
                port=web_port,
                address=web_address,
                token=web_token,
                actions=web_actions,
                cert=web_cert,
                key=web_key,
            )
            shown = stack.enter_context(on_page(settings, shown, terms))
        archives = archiving(settings, shown, bounded=available_now, stopping=stop.event.is_set)
        archived = stack.enter_context(archives)
        went_well = not settings.flows or run_flows(
            settings, bounded=available_now, display=shown, stop=stop, master=spark_master
        )
        went_well = archived() and went_well
    gc.freeze()  # the interpreter would look for cycles in all that is loaded, longer than Spark takes to end
    sys.exit(FINE if went_well else FOUND)


def _is_given(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source not in (None, ParameterSource.DEFAULT)
