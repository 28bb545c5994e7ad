"""`mirrorless resume`: let a paused flow continue where it stopped."""

from __future__ import annotations

import click

from mirrorless.cli.options import file_argument, flow_option, json_option, verbose_option
from mirrorless.cli.pause import set_state
from mirrorless.clusters.target_state import TargetState


@click.command
@file_argument
@flow_option
@json_option
@verbose_option
def resume(file: str, *, name: str | None, as_json: bool) -> None:
    """Resume paused flows where they stopped.

    For the flows of FILE. `mirrorless run` continues within seconds; on AWS the supervisor starts the Glue job
    within a minute.
    """
    set_state(file, name, TargetState.STARTED, as_json=as_json)
