"""`mirrorless consume`: the records of internal topics as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from mirrorless.cli.options import chosen_flows, file_argument, flow_option, json_option, verbose_option, warn
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.internal_topics import checkpoints_topic, heartbeats_topic, offset_syncs_topic
from mirrorless.clusters.replay import Replay
from mirrorless.errors import MirrorlessError
from mirrorless.formats import Checkpoint, Heartbeat, Malformed, OffsetSync
from mirrorless.settings import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.settings import Flow

    Record = Heartbeat | Checkpoint | OffsetSync

_KINDS: dict[str, tuple[type[Heartbeat] | type[Checkpoint] | type[OffsetSync], Callable[[Flow], InternalTopic]]] = {
    "heartbeats": (Heartbeat, heartbeats_topic),
    "checkpoints": (Checkpoint, checkpoints_topic),
    "offset-syncs": (OffsetSync, offset_syncs_topic),
}


@click.command
@click.argument("kind", type=click.Choice(sorted(_KINDS)))
@file_argument
@flow_option
@json_option
@verbose_option
def consume(kind: str, file: str, *, name: str | None, as_json: bool) -> None:
    """Print the records of an internal topic.

    Prints one record a line for all flows of FILE, in the format of Kafka's own formatters (KIP-597). Records that
    are malformed are skipped, and counted on standard error.
    """
    malformed: dict[str, int] = {}
    found = _records(kind, chosen_flows(load(file), name), malformed)
    if as_json:
        # One document, written as it is read: a topic may hold more than fits into memory.
        click.echo('{"records": [', nl=False)
        failed: MirrorlessError | None = None
        try:
            for number, record in enumerate(found):
                click.echo(f"{',' if number else ''}\n  {json.dumps(asdict(record))}", nl=False)
        except MirrorlessError as error:
            failed = error
        reason = "" if failed is None else f', "error": {json.dumps(str(failed))}'
        click.echo(f'\n], "malformed": {json.dumps(malformed)}{reason}}}')
        if failed is not None:
            raise failed
    else:
        for record in found:
            click.echo(record.text)
    for topic, count in malformed.items():
        warn(f"{topic}: {count} malformed record{'' if count == 1 else 's'} skipped: not {kind}")


def _records(kind: str, flows: list[Flow], malformed: dict[str, int]) -> Iterator[Record]:
    """Yield the records of each topic, which several flows may share; count by topic those that make no sense."""
    parser, topic_of = _KINDS[kind]
    topics = {(topic.cluster.alias, topic.name): topic for topic in map(topic_of, flows)}
    for topic in topics.values():
        replay = Replay(topic=topic.name, cluster=topic.cluster, admin=Admin(topic.cluster))
        try:
            for entry in replay.read():
                record = parser.parse(entry.key, entry.value)
                if isinstance(record, Malformed):
                    malformed[topic.name] = malformed.get(topic.name, 0) + 1
                else:
                    yield record
        finally:
            replay.close()
