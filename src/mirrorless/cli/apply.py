"""`mirrorless apply`: make the changes that `mirrorless plan` shows, once."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from mirrorless.cli.options import (
    chosen_flows,
    file_argument,
    flow_option,
    json_option,
    print_json,
    verbose_option,
    warn,
)
from mirrorless.cli.status_codes import COULD_NOT, FINE
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.actions import as_fields
from mirrorless.metadata.plan_text import lines
from mirrorless.metadata.planning import Admins, switched_on
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.progress.copied_topics import CopiedTopics
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow


@click.command
@file_argument
@flow_option
@json_option
@verbose_option
def apply(file: str, *, name: str | None, as_json: bool) -> None:
    """Make the changes that `mirrorless plan` shows.

    Creates and grows topics, sets configs, adds and removes ACLs, for every flow of FILE. Copies no records. A
    change that fails does not stop the others.

    Exit status 0: all changes were made; 2: a change could not be made, or a topic could not be
    examined.
    """
    settings = load(file)
    for warning in settings.warnings:
        warn(warning)
    went_well = True
    flows: dict[str, dict[str, Any]] = {}
    for flow in chosen_flows(settings, name):
        try:
            found = _applied(flow)
        except MirrorlessError as error:
            went_well = False
            flows[flow.name] = {"error": str(error)}
            if not as_json:
                click.echo(f"error: {error}", err=True)
        else:
            went_well &= found.went_well
            flows[flow.name] = _fields(found)
            if not as_json:
                _show(flow.name, found)
    if as_json:
        print_json({"flows": flows, "warnings": settings.warnings})
    sys.exit(FINE if went_well else COULD_NOT)


def _applied(flow: Flow) -> SyncPass:
    admins = Admins.of(flow)
    parts = [part for part, wanted in switched_on(flow).items() if wanted]
    with closing(CopiedTopics(flow, admins)) as copied:
        return one_pass(flow, parts, admins=admins, copied=copied)


def _fields(found: SyncPass) -> dict[str, Any]:
    return {
        "actions": [as_fields(one.action) | {"error": one.error, "note": one.note} for one in found.applied],
        "problems": [{"topic": one.topic, "reason": one.reason} for one in found.problems],
        "notes": list(found.notes),
        "warnings": list(found.warnings),
    }


def _show(flow: str, found: SyncPass) -> None:
    done = len(found.applied) - len(found.failures)
    click.echo(f"{flow}: {done} of {len(found.applied)} changes made")
    for one in found.applied:
        for line in lines(one.action):
            click.echo(f"  {line}")
        if one.note is not None:
            click.echo(f"    note: {one.note}")
        if one.error is not None:
            click.echo(f"    failed: {one.error}")
    for problem in found.problems:
        click.echo(f"  problem: {problem.topic}: {problem.reason}")
    for warning in found.warnings:
        click.echo(f"  warning: {warning}")
    for note in found.notes:
        click.echo(f"  note: {note}")
