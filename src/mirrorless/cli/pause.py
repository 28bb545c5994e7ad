"""`mirrorless pause`: stop copying records until `mirrorless resume`."""

from __future__ import annotations

import sys

import click

from mirrorless.cli.options import chosen_flows, file_argument, flow_option, json_option, print_json, verbose_option
from mirrorless.cli.status_codes import COULD_NOT
from mirrorless.clusters.target_state import TargetState, configs_topic, set_target_state
from mirrorless.errors import MirrorlessError
from mirrorless.settings import load


@click.command
@file_argument
@flow_option
@json_option
@verbose_option
def pause(file: str, *, name: str | None, as_json: bool) -> None:
    """Pause flows until `mirrorless resume`.

    No records are copied for the flows of FILE. Writes Kafka Connect's target state to
    `mm2-configs.<source>.internal` on the target, so MirrorMaker 2 in dedicated mode pauses too. `mirrorless run`
    pauses within seconds, a Glue job within about a minute. Topics, configs, ACLs, checkpoints and heartbeats stay
    in sync.
    """
    set_state(file, name, TargetState.PAUSED, as_json=as_json)


def set_state(file: str, name: str | None, state: TargetState, *, as_json: bool) -> None:
    """Write the target state of one flow, or of all; a flow that fails does not stop the others."""
    written: dict[str, dict[str, str]] = {}
    for flow in chosen_flows(load(file), name):
        topic = configs_topic(flow).name
        try:
            found = set_target_state(flow, state)
        except MirrorlessError as error:
            written[flow.name] = {"error": str(error)}
            click.echo(f"error: {flow.name}: {error}", err=True)
        else:
            written[flow.name] = {"state": found.value, "topic": topic, "cluster": flow.target.alias}
            if found is not state:
                text = f"waits for its turn: applications write to {flow.target.alias}, and an operation starts it"
                written[flow.name]["note"] = text
                click.echo(f"warning: {flow.name}: {text}", err=True)
            if not as_json:
                click.echo(f"{flow.name}: {found.value} ({topic} on {flow.target.alias})")
    if as_json:
        print_json({"flows": written})
    if any("error" in one for one in written.values()):
        sys.exit(COULD_NOT)
