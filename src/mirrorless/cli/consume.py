"""`mirrorless consume`: the records of internal topics as text."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import checkpoints_topic, heartbeats_topic, offset_syncs_topic
from mirrorless.clusters.replay import Replay
from mirrorless.formats import Checkpoint, Heartbeat, Malformed, OffsetSync
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.settings import Flow

_KINDS: dict[str, tuple[type[Heartbeat] | type[Checkpoint] | type[OffsetSync], Callable[[Flow], InternalTopic]]] = {
    "heartbeats": (Heartbeat, heartbeats_topic),
    "checkpoints": (Checkpoint, checkpoints_topic),
    "offset-syncs": (OffsetSync, offset_syncs_topic),
}


@click.command
@click.argument("kind", type=click.Choice(sorted(_KINDS)))
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--flow", "name", metavar="A->B", help="One of FILE's flows; all of them if it is left out.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with everything the record holds.")
def consume(kind: str, file: str, *, name: str | None, as_json: bool) -> None:
    """Print what is in an internal topic of FILE's flows, a line a record, as Kafka's own formatters do (KIP-597).

    Records that make no sense are counted on stderr, a line a topic.
    """
    settings = load(file)
    parser, topic_of = _KINDS[kind]
    malformed: dict[str, int] = {}
    done: set[tuple[str, str]] = set()
    for flow in settings.flows if name is None else [settings.flow(name)]:
        topic = topic_of(flow)
        if (topic.cluster.alias, topic.name) in done:
            continue
        done.add((topic.cluster.alias, topic.name))
        replay = Replay(topic=topic.name, cluster=topic.cluster, admin=Admin(topic.cluster))
        try:
            for entry in replay.read():
                record = parser.parse(entry.key, entry.value)
                if isinstance(record, Malformed):
                    malformed[topic.name] = malformed.get(topic.name, 0) + 1
                else:
                    click.echo(json.dumps(asdict(record)) if as_json else record.text)
        finally:
            replay.close()
    for where, count in malformed.items():
        click.echo(f"{where}: {count} records were skipped: they are no {kind}", err=True)
