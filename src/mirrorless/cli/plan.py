"""`mirrorless plan`: what the metadata of every flow lacks, without writing anything."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from mirrorless.cli.verbose import verbose_option
from mirrorless.copy.flow.recreated_topics import CopiedTopics
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.plan_text import as_json, lines
from mirrorless.metadata.planning import Admins, MetadataPlanner, switched_on
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.metadata.actions import Plan
    from mirrorless.settings import Flow

NOTHING_TO_DO, FAILED, TO_DO = 0, 1, 2


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON object instead of text.")
@verbose_option
def plan(file: str, *, json_wanted: bool) -> None:
    """Show what `mirrorless apply` and `mirrorless run` would change, for every flow of FILE.

    Topics to create and to grow, configs to set or delete, ACLs to add or remove, and why each topic that is not
    replicated is left out. Nothing is written. Exit status 0 if nothing would change, 2 if something would; 1 if a flow
    could not be looked at, or if nothing would change but something about a topic could not be found out.
    """
    settings = load(file)
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    plans: dict[str, Plan] = {}
    errors: dict[str, str] = {}
    for flow in settings.flows:
        try:
            plans[flow.name] = planned(flow)
        except MirrorlessError as error:
            errors[flow.name] = str(error)
    if json_wanted:
        flows = {name: as_json(one) for name, one in plans.items()}
        flows |= {name: {"error": reason} for name, reason in errors.items()}
        click.echo(json.dumps({"flows": flows}, indent=2))
    else:
        for name, one in plans.items():
            show(name, one)
        for reason in errors.values():
            click.echo(f"error: {reason}", err=True)
    sys.exit(_status(plans.values(), failed=bool(errors)))


def planned(flow: Flow) -> Plan:
    """Plan all parts that a flow's settings ask for, and compare how long both ends keep records."""
    admins = Admins.of(flow)
    with closing(CopiedTopics(flow, admins)) as copied:
        planner = MetadataPlanner(flow, admins, copied=copied)
        found = planner.plan([part for part, wanted in switched_on(flow).items() if wanted], thorough=True)
    return replace(found, notes=(*found.notes, *planner.retention()))


def show(flow: str, one: Plan) -> None:
    """Print a plan."""
    click.echo(f"{flow}: {_count(len(one.actions), 'change')}, {_count(len(one.left_out), 'topic')} left out")
    for action in one.actions:
        for line in lines(action):
            click.echo(f"  {line}")
    for topic in one.left_out:
        click.echo(f"  leave out {topic.topic} ({topic.kind.value}: {topic.reason})")
    for problem in one.problems:
        click.echo(f"  problem: {problem.topic}: {problem.reason}")
    for warning in one.warnings:
        click.echo(f"  warning: {warning}")
    for note in one.notes:
        click.echo(f"  note: {note}")


def _status(plans: Iterable[Plan], *, failed: bool) -> int:
    found = list(plans)
    if not failed and any(one.actions for one in found):
        return TO_DO
    return FAILED if failed or any(one.problems for one in found) else NOTHING_TO_DO


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
