"""`mirrorless apply`: bring topics, configs and ACLs of every flow in step, once."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from mirrorless.cli.verbose import verbose_option
from mirrorless.copy.flow.recreated_topics import CopiedTopics
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.plan_text import lines
from mirrorless.metadata.planning import Admins, switched_on
from mirrorless.metadata.sync_pass import one_pass
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.settings import Flow


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@verbose_option
def apply(file: str) -> None:
    """Do what `mirrorless plan` shows, for every flow of FILE: topics, configs and ACLs; no records are copied.

    Exit status 0 if all of it was done, 1 if something could not be; the rest is done all the same.
    """
    settings = load(file)
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    went_well = True
    for flow in settings.flows:
        try:
            found = _applied(flow)
        except MirrorlessError as error:
            click.echo(f"error: {error}", err=True)
            went_well = False
        else:
            _show(flow.name, found)
            went_well &= found.went_well
    sys.exit(0 if went_well else 1)


def _applied(flow: Flow) -> SyncPass:
    admins = Admins.of(flow)
    parts = [part for part, wanted in switched_on(flow).items() if wanted]
    with closing(CopiedTopics(flow, admins)) as copied:
        return one_pass(flow, parts, admins=admins, copied=copied)


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
