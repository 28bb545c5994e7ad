"""`mirrorless config check`: how a configuration is understood."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from mirrorless.cli.options import files_argument, json_option, print_json
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.clusters import client_settings
from mirrorless.errors import ConfigurationError, LoopError
from mirrorless.filters import config_filter_for, group_filter_for, topic_filter_for
from mirrorless.loops import Loops
from mirrorless.metadata.kind_results import synced_kinds
from mirrorless.policy import policy_for
from mirrorless.settings.load import understand
from mirrorless.settings.strimzi_clusters import is_not_mounted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.clusters.client_settings import Role
    from mirrorless.settings import Cluster, Flow, Settings
    from mirrorless.settings.reader import Effective, Understanding

_DEFAULT: Final = "default"
_ROLES: tuple[Role, ...] = ("admin", "consumer", "producer")


@click.command
@files_argument
@click.option("--all", "with_defaults", is_flag=True, help="Also the settings that have their default.")
@json_option
def check(files: tuple[str, ...], *, with_defaults: bool, as_json: bool) -> None:
    """Show how configuration files are understood.

    Prints flows, the settings that are set and where, warnings and errors. Asks no cluster. FILES are one
    mm2.properties, or connectors in the JSON of Kafka Connect's REST API; on disk, in S3 (s3://bucket/key) or in
    the SSM parameter store (ssm:/name).

    Exit status 0: FILES can be used; 1: they have errors, or cannot be read.
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
        print_json(_as_json(understood, errors))
    else:
        for line in _lines(understood, errors, with_defaults=with_defaults):
            click.echo(line)
    sys.exit(FOUND if errors else FINE)


def _refusals(settings: Settings) -> Iterator[ConfigurationError]:
    """Yield the errors that would stop a flow before its first connection."""
    for flow in settings.flows:
        for made in (policy_for, topic_filter_for, group_filter_for, config_filter_for, synced_kinds):
            try:
                made(flow)
            except ConfigurationError as error:
                yield error
        for cluster in (flow.source, flow.target):
            yield from _client_refusals(cluster)


def _loops(settings: Settings) -> Iterator[LoopError]:
    """Yield loops that exist whatever topics the clusters have: topics that every flow of a circle names."""
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
                f"{settings.file}: {', '.join(one.name for one in path)}: these flows form a circle and keep topic "
                "names, so a topic that all of them select would be replicated in a loop; they write nothing while a "
                "cluster has such a topic; set topics or topics.exclude so that each topic is selected in one "
                "direction only"
            )


def _client_refusals(cluster: Cluster) -> Iterator[ConfigurationError]:
    for role in _ROLES:
        try:
            client_settings.check(cluster, role=role)
        except ConfigurationError as error:
            if not is_not_mounted(error.value or ""):
                yield error


def _lines(understood: Understanding, errors: Sequence[str], *, with_defaults: bool) -> Iterator[str]:
    for flow in understood.settings.flows if understood.settings is not None else ():
        yield f"flow {flow.name}"
        settings = understood.flows[flow.name]
        yield from _table(settings, with_defaults=with_defaults)
        defaults = sum(one.origin == _DEFAULT for one in settings)
        if not with_defaults:
            yield f"  and {defaults} settings with their defaults: --all shows them"
        for side, cluster in _ends(flow):
            yield f"  {side} {cluster.alias}"
            yield from _table(understood.clients[flow.name, side], indent="    ", with_defaults=with_defaults)
        yield ""
    yield from (f"note: {line}" for line in understood.notes)
    yield from (f"warning: {line}" for line in understood.warnings)
    yield from (f"error: {line}" for line in errors)
    flows = len(understood.settings.flows) if understood.settings is not None else 0
    counts = ((flows, "flow"), (len(errors), "error"), (len(understood.warnings), "warning"))
    yield ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts)


def _table(every: Sequence[Effective], *, with_defaults: bool, indent: str = "  ") -> Iterator[str]:
    settings = [one for one in every if with_defaults or one.origin != _DEFAULT]
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
