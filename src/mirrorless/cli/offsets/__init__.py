"""Commands for offsets: the copy's own, and those of consumer groups."""

from __future__ import annotations

import click

from mirrorless.cli.offsets.reset import reset


@click.group(name="offsets")
def group() -> None:
    """Where copies and consumer groups are."""


group.add_command(reset)
