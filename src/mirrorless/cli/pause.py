"""`mirrorless pause`: nothing is copied until `mirrorless resume`."""

from __future__ import annotations

import click

from mirrorless.clusters.target_state import TargetState, TargetStates, configs_topic
from mirrorless.settings import load


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--flow", "name", metavar="A->B", help="One of FILE's flows; all of them if it is left out.")
def pause(file: str, *, name: str | None) -> None:
    """Let nothing be copied until `mirrorless resume`.

    It is Connect's own record in `mm2-configs.<source>.internal` on the target: a MirrorMaker 2 obeys it as well.
    A copy by `mirrorless run` rests within seconds, one on Glue within a minute or so. Topics, configs, ACLs,
    checkpoints and heartbeats are kept up.
    """
    set_state(file, name, TargetState.PAUSED)


def set_state(file: str, name: str | None, state: TargetState) -> None:
    """Write the target state of one flow, or of all."""
    settings = load(file)
    for flow in settings.flows if name is None else [settings.flow(name)]:
        TargetStates(flow).write(state)
        click.echo(f"{flow.name}: {state.value} ({configs_topic(flow).name} on {flow.target.alias})")
