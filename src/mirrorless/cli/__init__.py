"""The command line: one command a file, the tree of commands is the tree of files."""

from __future__ import annotations

import sys

import click

from mirrorless.cli import kafka
from mirrorless.cli.run import run
from mirrorless.errors import MirrorlessError


@click.group(name="mirrorless")
def root() -> None:
    """Keep two Kafka clusters equal."""


root.add_command(kafka.group)
root.add_command(run)


def main() -> None:
    """Run the command line; an error that was raised on purpose is one line on stderr and exit status 1."""
    try:
        root()
    except MirrorlessError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
