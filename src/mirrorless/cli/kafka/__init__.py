"""Commands for Kafka clusters on this machine."""

from __future__ import annotations

import click

from mirrorless.cli.kafka.up import up


@click.group(name="kafka")
def group() -> None:
    """Run Kafka clusters on this machine, to try things out."""


group.add_command(up)
