"""`mirrorless kafka up`: Kafka clusters until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from mirrorless.cli.options import config_file_option
from mirrorless.local.demo.workload import DemoTopic, fill
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.local.ready_settings import refuse_foreign, write_ready_settings

if TYPE_CHECKING:
    from mirrorless.local.embedded_kafka import EmbeddedCluster

_ORDERS: Final = DemoTopic(name="orders", partitions=3, codec="lz4", records=0, value_bytes=100)


@click.command
@click.argument("names", nargs=-1, required=True)
@click.option("--brokers", type=click.IntRange(min=1), default=1, show_default=True, help="Brokers in each cluster.")
@click.option(
    "--records",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Records to write to a topic `orders` of the first cluster.",
)
@config_file_option
def up(names: tuple[str, ...], brokers: int, records: int, config: str | None) -> None:
    """Run Kafka clusters until Ctrl-C.

    Starts a cluster for each of NAMES on free ports and prints its address. The file of --config has a flow from
    the first cluster to each of the others. Data is deleted at the end.
    """
    file = None if config is None else Path(config)
    # Set for both, because a shell that starts a program in the background has it ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    width = max(map(len, names))

    def is_up(cluster: EmbeddedCluster) -> None:
        click.echo(f"{cluster.name:{width}}  {cluster.bootstrap_servers}")

    try:
        if file is not None:
            refuse_foreign(file, names=names)
        _say(f"starting {', '.join(names)}: this takes some ten seconds")
        specs = [ClusterSpec(name=name, brokers=brokers) for name in names]
        with start_clusters(specs, say=_say, is_up=is_up) as clusters:
            if records:
                fill(clusters[names[0]].bootstrap_servers, replace(_ORDERS, records=records), advanced=lambda _: None)
            if file is not None:
                servers = {name: cluster.bootstrap_servers for name, cluster in clusters.items()}
                write_ready_settings(file, servers, brokers=brokers)
                _say(f"{file} is ready: mirrorless run {file}")
            _say("Ctrl-C stops them")
            try:
                threading.Event().wait()
            finally:
                _say(f"stopping {', '.join(names)}: this takes some seconds")
    except KeyboardInterrupt:
        pass


def _say(text: str) -> None:
    click.echo(text, err=True)
