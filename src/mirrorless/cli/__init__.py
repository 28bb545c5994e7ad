"""The command line: one command a file, the tree of commands is the tree of files."""

from __future__ import annotations

import importlib
import sys

import click

from mirrorless.errors import MirrorlessError

_COMMANDS = {
    "apply": ("mirrorless.cli.apply", "apply"),
    "config": ("mirrorless.cli.config", "group"),
    "demo": ("mirrorless.cli.demo", "demo"),
    "kafka": ("mirrorless.cli.kafka", "group"),
    "offsets": ("mirrorless.cli.offsets", "group"),
    "plan": ("mirrorless.cli.plan", "plan"),
    "run": ("mirrorless.cli.run", "run"),
}


class _Lazy(click.Group):
    """Imports a command when it is called, so that a small one need not wait for Spark's libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(name="mirrorless", cls=_Lazy)
def root() -> None:
    """Keep two Kafka clusters equal."""


def main() -> None:
    """Run the command line; an error that was raised on purpose is one line on stderr and exit status 1."""
    try:
        root()
    except MirrorlessError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
