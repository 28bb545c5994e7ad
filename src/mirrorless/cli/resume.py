"""`mirrorless resume`: a paused flow goes on where it stopped."""

from __future__ import annotations

import click

from mirrorless.cli.pause import set_state
from mirrorless.clusters.target_state import TargetState


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--flow", "name", metavar="A->B", help="One of FILE's flows; all of them if it is left out.")
def resume(file: str, *, name: str | None) -> None:
    """Let a paused flow go on where it stopped, within seconds; on AWS the supervisor starts the job in a minute."""
    set_state(file, name, TargetState.STARTED)
