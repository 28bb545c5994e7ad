"""Commands for the offsets of copies and of consumer groups."""

from __future__ import annotations

import click

from mirrorless.cli.lazy import LazyGroup

_COMMANDS = {
    "reset": ("mirrorless.cli.offsets.reset", "reset", "Copy a topic again from another offset."),
    "show": ("mirrorless.cli.offsets.show", "show", "Show which offsets can be translated, by partition."),
    "translate": (
        "mirrorless.cli.offsets.translate",
        "translate",
        "Print the offsets at which groups continue on the target.",
    ),
}


@click.group(name="offsets", cls=LazyGroup, commands_in=_COMMANDS)
def group() -> None:
    """Show, translate and reset offsets."""
