"""Commands for the offsets of copies and of consumer groups."""

from __future__ import annotations

import click

from mirrorless.cli.lazy import LazyGroup

_COMMANDS = {
    "reset": ("mirrorless.cli.offsets.reset", "reset"),
    "show": ("mirrorless.cli.offsets.show", "show"),
    "translate": ("mirrorless.cli.offsets.translate", "translate"),
}


@click.group(name="offsets", cls=LazyGroup, commands_in=_COMMANDS)
def group() -> None:
    """Show, translate and reset offsets."""
