"""`mirrorless status`: the state of every flow, read from its topics."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from mirrorless.cli.options import chosen_flows, file_argument, flow_option, json_option, print_json, verbose_option
from mirrorless.cli.status_codes import COULD_NOT, FINE, FOUND
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.target_state import TargetState
from mirrorless.copy.api import line_on_gone, status_of
from mirrorless.errors import GapKind, MirrorlessError
from mirrorless.heartbeats import last_heartbeat
from mirrorless.local.listing import Listing
from mirrorless.metadata.fences import unexplained_fences
from mirrorless.operation_log.records import Operations
from mirrorless.operations.applications import places
from mirrorless.operations.run import read_all
from mirrorless.progress.run_marks import deployment_of
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mirrorless.copy.api import FlowStatus
    from mirrorless.operation_log.records import OperationState
    from mirrorless.settings import Flow, Settings

    Fields = Mapping[str, Any]

_NAMED = 10
"""So many halted partitions of a topic are named."""
_COUNTS = {"topics": "topics", "partitions": "partitions", "begun": "started", "lag_records": "lag"}


@click.command
@file_argument
@flow_option
@json_option
@verbose_option
def status(file: str, *, name: str | None, as_json: bool) -> None:
    """Show state, lag and halted partitions of each flow.

    For the flows of FILE, prints whether each is paused, what copies it and why, its lag, its halted partitions and its
    last heartbeat. Asks the clusters only, so it works from anywhere: whatever copies keeps a mark in the progress
    topic. Lists copied topics that no longer exist on the source, and operations that are open, too.

    Exit status 0: nothing to act on; 1: a partition is halted, the target lost records, a recreated source topic is not
    copied, the progress topic is not compacted, or a fence that no operation explains blocks writers of a topic; 2:
    something could not be read (a cluster does not answer, a partition has no leader).
    """
    settings = load(file)
    found = {flow.name: _fields(flow, settings.file) for flow in chosen_flows(settings, name)}
    operations, unread = _operations(settings)
    open_operations = _open_operations(operations.by_id.values())
    places = _applications(operations)
    if as_json:
        print_json({"flows": found, "operations": open_operations, "applications": places, "operations_unread": unread})
    else:
        _print(found, file)
        for place in places:
            click.echo(_place_line(place, file))
        for alias, reason in unread.items():
            click.echo(f"operations on {alias} are unknown: {reason}", err=True)
        for one in open_operations:
            click.echo(
                f"{one['kind']} {one['operation']} from {one['from']} to {one['to']} is open, last run by "
                f"{one['run_by']}: see `mirrorless operation {file}`"
            )
    sys.exit(_status(found.values()))


def _operations(settings: Settings) -> tuple[Operations, dict[str, str]]:
    """All operations, and by cluster why its are unknown."""
    try:
        return read_all(settings)
    except MirrorlessError as error:
        return Operations(), {"both clusters": str(error)}


def _open_operations(operations: Iterable[OperationState]) -> list[dict[str, str]]:
    """The operations that are neither completed nor undone."""
    return [
        {
            "operation": one.id,
            "kind": one.request.kind,
            "from": one.request.source,
            "to": one.request.target,
            "run_by": one.owner_text,
        }
        for one in operations
        if one.is_open
    ]


def _applications(operations: Operations) -> list[dict[str, Any]]:
    """Where applications of each pair of clusters are, and the fence that the last completed operation left.

    Unknown (`on` is None) for the `reason`.
    """
    return [
        {"on": None, "between": sorted(one.pair), "reason": one.reason}
        if one.cluster is None or one.last is None
        else {
            "on": one.cluster,
            "since_ms": one.since_ms,
            "by": f"{one.last.request.kind} {one.last.id}",
            "fenced": one.last.request.source if one.last.standing_fence else None,
            "fenced_topics": len(one.last.standing_fence.get("topics", ())),
        }
        for one in places(operations)
    ]


def _place_line(place: Mapping[str, Any], file: str) -> str:
    if place["on"] is None:
        return (
            f"applications of {' and '.join(place['between'])}: it is unknown where they are: {place['reason']}: see "
            f"`mirrorless operation {file}`"
        )
    since = datetime.fromtimestamp(place["since_ms"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    line = f"applications are on {place['on']} since {since}, by {place['by']}"
    if place["fenced"] is None:
        return line
    return (
        f"{line}; writers of {place['fenced_topics']:,} topics of {place['fenced']} are blocked by its fence until "
        f"`mirrorless operation {file} close`"
    )


def _status(flows: Iterable[Fields]) -> int:
    """What was found counts more than what could not be read."""
    found = list(flows)
    keys = ("halted", "lacking", "created_again", "problems", "fences")
    if any(fields.get(key) for fields in found for key in keys):
        return FOUND
    return COULD_NOT if any(fields.get(key) for fields in found for key in _UNREAD) else FINE


_UNREAD = ("error", "heartbeat_error", "fences_error", "unknown")


def _fields(flow: Flow, location: str) -> dict[str, Any]:
    try:
        now = status_of(flow, deployment=deployment_of(location, flow.name))
    except MirrorlessError as error:
        return {"error": str(error)}
    return {
        "state": "running" if now.state is TargetState.STARTED else now.state.lower(),
        "engine": _engine(flow, now),
        "topics": now.topics,
        "partitions": now.partitions,
        "begun": now.begun,
        # Of partitions that could not be read, or are not visible, nothing is known.
        "lag_records": None if now.unknown or not now.topics else now.lag_records,
        "lag_at_least": now.lag_records,
        **_last_heartbeat(flow),
        "halted": [
            {
                "topic": topic,
                "partition": partition,
                "offset": halt.offset,
                "gap": halt.kind,
                "reason": halt.reason,
            }
            for (topic, partition), halt in now.halted.items()
        ],
        "lacking": list(now.lacking),
        "created_again": list(now.created_again),
        "gone": [
            {"topic": topic, "remote_topic": remote, "text": line_on_gone(flow, topic, remote)}
            for topic, remote in now.gone.items()
        ],
        "unknown": [
            *(f"{topic}-{partition}: {reason}" for (topic, partition), reason in now.unknown.items()),
            *(() if now.topics else (_blank(flow),)),
        ],
        "problems": list(now.problems),
        **_fences(flow),
        "skipped_share": now.skipped_share,
    }


def _blank(flow: Flow) -> str:
    return (
        f"no topic that the flow replicates is visible on {flow.source.alias}; if it has any, grant the flow's user "
        "DESCRIBE on them"
    )


def _fences(flow: Flow) -> dict[str, Any]:
    """Lines on fences that no operation explains, or why they are unknown."""
    try:
        return {"fences": unexplained_fences(flow, {one.alias: Admin(one) for one in (flow.source, flow.target)})}
    except MirrorlessError as error:
        return {"fences": [], "fences_error": f"whether a fence blocks writers is unknown: {error}"}


def _engine(flow: Flow, now: FlowStatus) -> dict[str, Any]:
    """Return what is to copy the flow and why, and what does."""
    chosen, reason = flow.engine, f"mirrorless.engine is {flow.engine}"
    if flow.engine == "auto" and now.choice is not None:
        chosen, reason = now.choice.engine, now.choice.reason
    return {
        "chosen": chosen,
        "reason": reason,
        "runs": [
            {
                "engine": mark.engine,
                "share": None if mark.share.of == 1 else f"{mark.share.number} of {mark.share.of}",
                **({} if mark.work is None else asdict(mark.work)),
            }
            for mark in now.runs
            if mark.is_ready
        ],
    }


def _last_heartbeat(flow: Flow) -> dict[str, Any]:
    """Return its fields; heartbeats that cannot be read hide nothing else of the flow."""
    try:
        beat = last_heartbeat(flow)
    except MirrorlessError as error:
        return {"last_heartbeat_ms": None, "heartbeat_error": str(error)}
    return {"last_heartbeat_ms": None if beat is None else beat.timestamp_ms}


def _print(found: Mapping[str, Fields], file: str) -> None:
    listing = Listing(
        *("flow", "state", "copied by", *_COUNTS.values(), "last heartbeat", "halted"),
        numbers={*_COUNTS.values(), "halted"},
    )
    for flow, fields in found.items():
        if "error" not in fields:
            counts = (f"{fields[key]:,}" if fields[key] is not None else _lag(fields) for key in _COUNTS)
            listing.add(
                flow, _state(fields), _copied_by(fields["engine"]), *counts, _age(fields), f"{len(fields['halted']):,}"
            )
    if len(listing):
        listing.print()
    for flow, fields in found.items():
        if "error" not in fields:
            if fields["engine"]["chosen"] != "auto":
                click.echo(f"{flow}: engine {fields['engine']['chosen']}: {fields['engine']['reason']}")
            for line in _findings(fields):
                click.echo(f"{flow}: {line.replace(' FILE ', f' {file} ')}")
        for line in _unread(fields):
            click.echo(f"{flow}: {line}", err=True)


def _state(fields: Fields) -> str:
    """The target state; a flow that is to run, and that nothing copies, does not."""
    return "not copied" if fields["state"] == "running" and not fields["engine"]["runs"] else str(fields["state"])


def _lag(fields: Fields) -> str:
    """The lag, where the end of some partition is unknown."""
    return f"over {fields['lag_at_least']:,}" if fields["lag_at_least"] else "unknown"


def _copied_by(engine: Fields) -> str:
    names = sorted({run["engine"] for run in engine["runs"]})
    return " and ".join(names) or "nothing"


def _age(fields: Fields) -> str:
    beat_ms = fields["last_heartbeat_ms"]
    if beat_ms is None:
        return "unknown" if "heartbeat_error" in fields else "never"
    return f"{max(0.0, time.time() - beat_ms / 1000):,.0f} s ago"


def _findings(fields: Fields) -> Iterator[str]:
    yield from _halted(fields["halted"])
    if fields["skipped_share"] is not None:
        yield f"{fields['skipped_share']:.1%} of the source's offsets were skipped (mirrorless.both.directions=skip)"
    yield from fields["lacking"]
    yield from fields["created_again"]
    yield from fields["fences"]
    yield from (one["text"] for one in fields["gone"])


def _halted(halts: Iterable[Fields]) -> Iterator[str]:
    """A line for the partitions of a topic that are halted alike; `created_again` has those of a recreated topic."""
    alike: dict[tuple[str, str | None], list[Fields]] = {}
    for one in halts:
        if one["gap"] is not GapKind.CREATED_AGAIN:
            alike.setdefault((one["topic"], one["gap"]), []).append(one)
    for (topic, _), some in alike.items():
        first = some[0]
        if len(some) == 1:
            yield f"{topic}-{first['partition']} is halted at offset {first['offset']}: {first['reason']}"
            continue
        numbers = ", ".join(str(one["partition"]) for one in some[:_NAMED])
        more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
        yield (
            f"{topic}: {len(some)} partitions are halted ({numbers}{more}), {first['partition']} at offset "
            f"{first['offset']}: {first['reason']}"
        )


def _unread(fields: Fields) -> Iterator[str]:
    if "error" in fields:
        yield fields["error"]
        return
    yield from fields["unknown"]
    yield from (fields[key] for key in ("heartbeat_error", "fences_error") if key in fields)
    yield from fields["problems"]
