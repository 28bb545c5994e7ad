"""The command line: one command a file, the tree of commands is the tree of files."""

from __future__ import annotations

import sys

import click

from mirrorless.cli.lazy import LazyGroup
from mirrorless.errors import MirrorlessError

_COMMANDS = {
    "apply": ("mirrorless.cli.apply", "apply"),
    "config": ("mirrorless.cli.config", "group"),
    "consume": ("mirrorless.cli.consume", "consume"),
    "demo": ("mirrorless.cli.demo", "demo"),
    "doctor": ("mirrorless.cli.doctor", "doctor"),
    "failover-plan": ("mirrorless.cli.failover_plan", "failover_plan"),
    "kafka": ("mirrorless.cli.kafka", "group"),
    "offsets": ("mirrorless.cli.offsets", "group"),
    "pause": ("mirrorless.cli.pause", "pause"),
    "plan": ("mirrorless.cli.plan", "plan"),
    "resume": ("mirrorless.cli.resume", "resume"),
    "run": ("mirrorless.cli.run", "run"),
    "status": ("mirrorless.cli.status", "status"),
    "verify": ("mirrorless.cli.verify", "verify"),
}


@click.group(name="mirrorless", cls=LazyGroup, commands_in=_COMMANDS)
def root() -> None:
    """Keep two Kafka clusters equal.

    To try it: mirrorless kafka up primary backup --config mm2.properties, and in another terminal
    mirrorless run mm2.properties.
    """


def main() -> None:
    """Run the command line; an error that was raised on purpose is one line on stderr and exit status 1."""
    try:
        root()
    except MirrorlessError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
