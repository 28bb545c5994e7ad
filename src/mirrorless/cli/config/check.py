"""`mirrorless config check`: what was understood of a configuration."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from mirrorless.clusters import client_settings
from mirrorless.errors import ConfigurationError, LoopError
from mirrorless.filters import config_filter_for, group_filter_for, topic_filter_for
from mirrorless.loops import Loops
from mirrorless.policy import policy_for
from mirrorless.settings.load import understand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.clusters.client_settings import Role
    from mirrorless.settings import Cluster, Flow, Settings
    from mirrorless.settings.reader import Effective, Understanding

_ROLES: tuple[Role, ...] = ("admin", "consumer", "producer")


@click.command
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(files: tuple[str, ...], *, as_json: bool) -> None:
    """Say how FILES are understood: flows, settings with where each comes from, warnings, errors.

    FILES is an mm2.properties, or connectors in JSON as Connect's REST interface has them; on disk, or in S3
    (s3://bucket/key) or the SSM parameter store (ssm:/name). No cluster is asked. Exit status 1 if there is an error.
    """
    understood = understand(*files)
    errors = [str(error) for error in understood.errors]
    if understood.settings is not None:
        errors += dict.fromkeys(str(error) for error in _refusals(understood.settings))
    if understood.settings is not None and not errors:
        errors += map(str, _loops(understood.settings))
        warnings = (*understood.warnings, *_possible_loops(understood.settings))
        understood = dataclasses.replace(understood, warnings=warnings)
    if as_json:
        click.echo(json.dumps(_as_json(understood, errors), indent=2))
    else:
        for line in _lines(understood, errors):
            click.echo(line)
    sys.exit(1 if errors else 0)


def _refusals(settings: Settings) -> Iterator[ConfigurationError]:
    """Yield what would be refused before the first connection."""
    for flow in settings.flows:
        for made in (policy_for, topic_filter_for, group_filter_for, config_filter_for):
            try:
                made(flow)
            except ConfigurationError as error:
                yield error
        for cluster in (flow.source, flow.target):
            yield from _client_refusals(cluster)


def _loops(settings: Settings) -> Iterator[LoopError]:
    """Yield the loops that are certain whatever the clusters have: topics that are named in every flow of a circle."""
    for flow in settings.flows:
        loops = Loops(flow)
        try:
            loops.refuse(loops.named())
        except LoopError as error:
            yield error


def _possible_loops(settings: Settings) -> Iterator[str]:
    """Yield a line for each circle of flows that may select the same topics."""
    said: set[frozenset[str]] = set()
    for flow in settings.flows:
        path = Loops(flow).undecided()
        if path is not None and (names := frozenset(one.name for one in path)) not in said:
            said.add(names)
            yield (
                f"{settings.file}: {', '.join(one.name for one in path)}: these flows keep topic names and lead back "
                "to where they begin, so a topic that all of them select would be replicated in a loop; they are "
                "refused while a cluster has one; let topics or topics.exclude select each topic in one direction only"
            )


def _client_refusals(cluster: Cluster) -> Iterator[ConfigurationError]:
    for role in _ROLES:
        try:
            client_settings.check(cluster, role=role)
        except ConfigurationError as error:
            yield error


def _lines(understood: Understanding, errors: Sequence[str]) -> Iterator[str]:
    for flow in understood.settings.flows if understood.settings is not None else ():
        yield f"flow {flow.name}"
        yield from _table(understood.flows[flow.name])
        for side, cluster in _ends(flow):
            yield f"  {side} {cluster.alias}"
            yield from _table(understood.clients[flow.name, side], indent="    ")
        yield ""
    yield from (f"note: {line}" for line in understood.notes)
    yield from (f"warning: {line}" for line in understood.warnings)
    yield from (f"error: {line}" for line in errors)
    flows = len(understood.settings.flows) if understood.settings is not None else 0
    counts = ((flows, "flow"), (len(errors), "error"), (len(understood.warnings), "warning"))
    yield ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)


def _table(settings: Sequence[Effective], *, indent: str = "  ") -> Iterator[str]:
    width = max((len(one.key) for one in settings), default=0)
    value_width = min(40, max((len(one.value or "") for one in settings), default=0))
    for one in settings:
        value = one.value if one.value is not None else "-"
        origin = one.origin if one.written in (None, one.key) else f"{one.origin} ({one.written})"
        yield f"{indent}{one.key:{width}}  {value:{value_width}}  {origin}"


def _ends(flow: Flow) -> tuple[tuple[str, Cluster], ...]:
    return ("source", flow.source), ("target", flow.target)


def _as_json(understood: Understanding, errors: Sequence[str]) -> dict[str, Any]:
    settings = understood.settings
    return {
        "file": settings.file if settings is not None else None,
        "flows": [
            {
                "name": flow.name,
                "settings": [dataclasses.asdict(one) for one in understood.flows[flow.name]],
                **{
                    side: {
                        "alias": cluster.alias,
                        "settings": [dataclasses.asdict(one) for one in understood.clients[flow.name, side]],
                    }
                    for side, cluster in _ends(flow)
                },
            }
            for flow in (settings.flows if settings is not None else ())
        ],
        "notes": list(understood.notes),
        "warnings": list(understood.warnings),
        "errors": list(errors),
    }
