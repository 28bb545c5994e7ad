"""`mirrorless archive serve`: an archive as a Kafka cluster that can be read."""

from __future__ import annotations

import click

from mirrorless.archive.broker import ArchiveBroker
from mirrorless.archive.view import ArchiveView
from mirrorless.cli.archive.options import archive_option, moment, stores, until_option
from mirrorless.cli.options import file_argument, verbose_option
from mirrorless.errors import ConfigurationError
from mirrorless.local.runner import StopRequest
from mirrorless.settings import load


@click.command
@file_argument
@archive_option
@until_option
@click.option(
    "--serve-port",
    "port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port; 0 selects a free one.",
)
@verbose_option
def serve(file: str, *, alias: str | None, until: str | None, port: int) -> None:
    """Serve an archive as a Kafka cluster that can be read.

    On this machine only, until Ctrl-C or SIGTERM. Consumers, `kcat` and Spark's Kafka source read it at the address
    that is printed, without a login. Groups cannot be joined: assign partitions.

    Exit status 0: it was asked to stop; 2: the archive cannot be read.
    """
    settings = load(file)
    found = stores(settings, alias)
    if len(found) > 1:
        raise ConfigurationError(f"has several archives; name one: {', '.join(found)}", file=file, key="archive")
    (store,) = found.values()
    view = ArchiveView(store, moment(until))
    stop = StopRequest()
    with ArchiveBroker(view, port=port) as broker, stop.on_signals():
        for (topic, partition), reason in view.lacking.items():
            click.echo(f"warning: {topic}-{partition}: {reason}", err=True)
        click.echo(f"{broker.address}: {len(view.document.topics):,} topics, {len(view.document.groups):,} groups")
        while not stop.event.is_set():
            stop.wait(1.0)
