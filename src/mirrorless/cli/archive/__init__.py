"""Commands for archives: batches in object storage, and clusters restored from them."""

from __future__ import annotations

import click

from mirrorless.cli.lazy import LazyGroup

_COMMANDS = {
    "list": ("mirrorless.cli.archive.contents", "contents", "Show the topics of archives, and the times to restore."),
    "prune": ("mirrorless.cli.archive.prune", "prune", "Delete what only older times need."),
    "restore": ("mirrorless.cli.archive.restore", "restore", "Restore a cluster as it was at a time."),
    "serve": ("mirrorless.cli.archive.serve", "serve", "Serve an archive as a Kafka cluster that can be read."),
    "verify": ("mirrorless.cli.archive.verify", "verify", "Read whole archives, and name every fault."),
    "write": ("mirrorless.cli.archive.write", "write", "Archive the flows of FILE into their archives."),
}


@click.group(name="archive", cls=LazyGroup, commands_in=_COMMANDS)
def group() -> None:
    """Archive clusters into object storage, and restore them."""
