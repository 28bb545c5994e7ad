"""`mirrorless status`: how every flow is, told from the topics."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from mirrorless.cli.tables import print_table
from mirrorless.clusters.target_state import TargetState
from mirrorless.copy.flow.status import line_on_gone, status_of
from mirrorless.copy.progress.records import Halt
from mirrorless.errors import MirrorlessError
from mirrorless.heartbeats import last_heartbeat
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Flow


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--flow", "name", metavar="A->B", help="One of FILE's flows; all of them if it is left out.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a flow and line.")
def status(file: str, *, name: str | None, as_json: bool) -> None:
    """Print for each flow whether it is paused, how much is left to copy, halted partitions and the last heartbeat.

    It asks the clusters only, so it works from anywhere and whoever copies; it cannot see whether a copy runs: lag
    that grows and heartbeats that age say that. Copied topics that are not on the source any more are shown too. Exit
    status 1 if a partition is halted, if a topic was created again and the new one is not copied, and if something
    could not be found out: a cluster does not answer, a partition has no leader, or heartbeats cannot be read; and
    if the progress topic is not compacted.
    """
    settings = load(file)
    found = [_fields(flow) for flow in (settings.flows if name is None else [settings.flow(name)])]
    if as_json:
        for fields in found:
            click.echo(json.dumps(fields))
    else:
        _print(found)
    if any(not _is_well(fields) for fields in found):
        sys.exit(1)


def _is_well(fields: Mapping[str, Any]) -> bool:
    told = (
        "error" not in fields and "heartbeat_error" not in fields and not fields["unknown"] and not fields["problems"]
    )
    return told and not fields["halted"] and not fields["created_again"]


def _fields(flow: Flow) -> dict[str, Any]:
    try:
        now = status_of(flow)
    except MirrorlessError as error:
        return {"flow": flow.name, "error": str(error)}
    return {
        "flow": flow.name,
        "state": "running" if now.state is TargetState.STARTED else now.state.lower(),
        "topics": now.topics,
        "partitions": now.partitions,
        "begun": now.begun,
        "lag_records": now.lag_records,
        **_last_heartbeat(flow),
        "halted": [
            {
                "topic": topic,
                "partition": partition,
                "offset": halt.offset,
                "gap": halt.kind if isinstance(halt, Halt) else None,
                "reason": halt.reason,
            }
            for (topic, partition), halt in now.halted.items()
        ],
        "created_again": list(now.created_again),
        "gone": [
            {"topic": topic, "remote_topic": remote, "text": line_on_gone(flow, topic, remote)}
            for topic, remote in now.gone.items()
        ],
        "unknown": [f"{topic}-{partition}: {reason}" for (topic, partition), reason in now.unknown.items()],
        "problems": list(now.problems),
    }


def _last_heartbeat(flow: Flow) -> dict[str, Any]:
    """Return its fields; what cannot be found out of it hides nothing of the flow."""
    try:
        beat = last_heartbeat(flow)
    except MirrorlessError as error:
        return {"last_heartbeat_ms": None, "heartbeat_error": str(error)}
    return {"last_heartbeat_ms": None if beat is None else beat.timestamp_ms}


def _print(found: list[dict[str, Any]]) -> None:
    table = Table("flow", "state", "topics", "partitions", "begun", "lag", "last heartbeat", "halted")
    for fields in found:
        if "error" in fields:
            continue
        beat_ms = fields["last_heartbeat_ms"]
        counts = (f"{fields[key]:,}" for key in ("topics", "partitions", "begun", "lag_records"))
        age = "unknown" if "heartbeat_error" in fields else "never"
        if beat_ms is not None:
            age = f"{max(0.0, time.time() - beat_ms / 1000):,.0f} s ago"
        table.add_row(fields["flow"], fields["state"], *counts, age, f"{len(fields['halted']):,}")
    if table.row_count:
        print_table(table)
    for fields in found:
        if "error" in fields:
            click.echo(f"{fields['flow']}: {fields['error']}", err=True)
            continue
        for gap in fields["halted"]:
            where = f"{gap['topic']}-{gap['partition']} at offset {gap['offset']}"
            click.echo(f"{fields['flow']}: {where} is halted: {gap['reason']}")
        for text in [*fields["created_again"], *(one["text"] for one in fields["gone"])]:
            click.echo(f"{fields['flow']}: {text}")
        unknown = [*fields["unknown"], *([fields["heartbeat_error"]] if "heartbeat_error" in fields else [])]
        for line in [*unknown, *fields["problems"]]:
            click.echo(f"{fields['flow']}: {line}", err=True)
