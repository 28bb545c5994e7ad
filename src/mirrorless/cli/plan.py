"""`mirrorless plan`: what the metadata of every flow lacks, without writing anything."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

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
from mirrorless.cli.status_codes import COULD_NOT, FINE, FOUND
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.copy.api import IdenticalOutlook, backfill_note, distance_of, first_copy, identical_outlook
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.plan_text import as_json as plan_fields
from mirrorless.metadata.plan_text import lines, not_moved
from mirrorless.metadata.planning import Admins, MetadataPlanner, switched_on
from mirrorless.progress.copied_topics import CopiedTopics
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.metadata.actions import Plan
    from mirrorless.settings import Flow


@click.command
@file_argument
@flow_option
@json_option
@verbose_option
def plan(file: str, *, name: str | None, as_json: bool) -> None:
    """Show what `mirrorless apply` would change.

    `mirrorless run` makes the same changes. For every flow of FILE, lists topics to create and to grow, configs to
    set or delete, ACLs to add or remove, and for each topic that is not replicated the reason. Writes nothing.

    Exit status 0: no changes; 1: pending changes; 2: a flow or a topic could not be examined.
    """
    settings = load(file)
    for warning in settings.warnings:
        warn(warning)
    plans: dict[str, Plan] = {}
    errors: dict[str, str] = {}
    for flow in chosen_flows(settings, name):
        try:
            plans[flow.name] = planned(flow)
        except MirrorlessError as error:
            errors[flow.name] = str(error)
    if as_json:
        flows = {flow_name: plan_fields(one) for flow_name, one in plans.items()}
        failed = {flow_name: {"error": reason} for flow_name, reason in errors.items()}
        print_json({"flows": flows | failed, "warnings": settings.warnings})
    else:
        for flow_name, one in plans.items():
            show(flow_name, one)
        for reason in errors.values():
            click.echo(f"error: {reason}", err=True)
    sys.exit(_status(plans.values(), failed=bool(errors)))


def planned(flow: Flow) -> Plan:
    """Plan all parts that a flow's settings ask for, and compare the retention of both ends."""
    admins = Admins.of(flow)
    with closing(CopiedTopics(flow, admins)) as copied:
        planner, _ = side_by_side(lambda: MetadataPlanner(flow, admins, copied=copied), copied.prepare)
        parts = [part for part, wanted in switched_on(flow).items() if wanted]
        found, retention, distance = side_by_side(
            lambda: planner.plan(parts, thorough=True),
            planner.retention,
            lambda: distance_of(flow.target, planner.target_brokers),
        )
        backfill: str | None = None
        if distance.is_far:
            counts, known = planner.replicated, copied.known()
            backfill = backfill_note(flow, distance, source=admins.source, counts=counts, known=known)
        not_copied = others = None
        if not planner.is_waiting:
            remote, there = planner.remote_topics, planner.target_partitions
            counts = {t: min(n, there[remote[t]]) for t, n in planner.replicated.items() if remote[t] in there}
            not_copied, others = first_copy(
                flow, source=admins.source, target=admins.target, remote=remote, counts=counts, known=copied.known()
            )
        outlook = IdenticalOutlook()
        if not planner.is_waiting:
            outlook = identical_outlook(
                flow,
                source=admins.source,
                target=admins.target,
                remote=planner.remote_topics,
                counts=planner.replicated,
                remote_counts=planner.target_partitions,
                known=copied.known(),
            )
    notes = (*found.notes, *retention, *(line for line in (backfill, others) if line is not None), *outlook.notes)
    warnings = found.warnings if not_copied is None else (*found.warnings, not_copied)
    whole: Plan = replace(found, warnings=warnings, notes=notes, problems=(*found.problems, *outlook.problems))
    return whole


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
    for line in not_moved(one):
        click.echo(f"  not moved: {line}")
    for warning in one.warnings:
        click.echo(f"  warning: {warning}")
    for note in one.notes:
        click.echo(f"  note: {note}")


def _status(plans: Iterable[Plan], *, failed: bool) -> int:
    found = list(plans)
    if not failed and any(one.actions for one in found):
        return FOUND
    return COULD_NOT if failed or any(one.problems for one in found) else FINE


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
