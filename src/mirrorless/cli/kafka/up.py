"""`mirrorless kafka up`: clusters that live until Ctrl-C."""

from __future__ import annotations

import signal
import threading

import click

from mirrorless.local.kafka import ClusterSpec, start_clusters


@click.command
@click.argument("names", nargs=-1, required=True)
@click.option("--brokers", type=click.IntRange(min=1), default=1, show_default=True, help="Brokers of each cluster.")
def up(names: tuple[str, ...], brokers: int) -> None:
    """Start a Kafka cluster for each of NAMES and print its address; stop them all on Ctrl-C.

    Nothing of them is left afterwards.
    """
    # Set for both, because a shell that starts a program in the background has it ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        specs = [ClusterSpec(name=name, brokers=brokers) for name in names]
        with start_clusters(specs, say=_say) as clusters:
            width = max(map(len, names))
            for name, cluster in clusters.items():
                click.echo(f"{name:{width}}  {cluster.bootstrap_servers}")
            _say("Ctrl-C stops them")
            threading.Event().wait()
    except KeyboardInterrupt:
        pass


def _say(text: str) -> None:
    click.echo(text, err=True)
