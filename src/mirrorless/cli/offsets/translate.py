"""`mirrorless offsets translate`: the offsets at which consumer groups continue on the target."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Final

import click

from mirrorless.cli.options import (
    any_of,
    file_argument,
    groups_option,
    json_option,
    print_json,
    target_option,
    verbose_option,
    warn,
)
from mirrorless.cli.status_codes import FOUND
from mirrorless.client import MirrorClient
from mirrorless.clusters.topics import partition_counts
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.local.listing import Listing
from mirrorless.metadata.planning import Admins
from mirrorless.metadata.recreated_topics import UNCHECKED, CreatedAgain
from mirrorless.offsets.checkpoints import remote_topic
from mirrorless.policy import policy_for
from mirrorless.progress.copied_topics import CopiedTopics
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.settings import Flow

_SOURCE_S: Final = 5.0
"""Timeout of a source that may be down."""
_FIELDS: Final = ("group", "topic", "partition", "offset", "metadata")


@click.command
@file_argument
@click.option("--from", "source", required=True, metavar="ALIAS", help="Only flows from this cluster.")
@target_option()
@groups_option(required=True)
@json_option
@verbose_option
def translate(file: str, *, source: str, target: str | None, groups: str, as_json: bool) -> None:
    """Print the offsets at which groups continue on the target.

    Reads the checkpoints of one flow of FILE. --to is needed only if FILE has several flows from that source. Works
    while the source is down. A source topic that was deleted and recreated has no translation until records of the
    new topic are copied.

    Exit status 0: at least one offset; 1: none.
    """
    settings = load(file)
    flows = [flow for flow in settings.flows if flow.source.alias == source and target in (None, flow.target.alias)]
    if len(flows) != 1:
        found = ", ".join(flow.name for flow in flows) or "none"
        raise ConfigurationError(f"--from and --to must select one flow; they select {found}", file=file)
    (flow,) = flows
    client = MirrorClient(flow.target, policy=policy_for(flow))
    without = _without_answer(flow)
    rows = [
        (group, topic, partition, offset, metadata)
        for group, offsets in sorted(client.translate_offsets_of(source, any_of(groups)).items())
        for (topic, partition), (offset, metadata) in sorted(offsets.items())
        if topic not in without
    ]
    for topic, reason in sorted(without.items()):
        warn(f"{topic}: offsets are not translated: {reason}; no record of the new topic is copied yet")
    if as_json:
        offsets = [dict(zip(_FIELDS, row, strict=True)) for row in rows]
        print_json({"flow": flow.name, "offsets": offsets, "not_translated": without})
    elif rows:
        _print(rows)
    if not rows:
        click.echo(f"{flow.target.alias} has no checkpoint for consumer groups that match {groups}", err=True)
        sys.exit(FOUND)


def _print(rows: list[tuple[str, str, int, int, str]]) -> None:
    listing = Listing(*_FIELDS, numbers=("partition", "offset"))
    for group, topic, partition, offset, metadata in rows:
        listing.add(group, topic, str(partition), f"{offset:,}", metadata)
    listing.print()


def _without_answer(flow: Flow) -> dict[str, str]:
    """Return the remote topics that were copied from a source topic that no longer exists, each with the reason."""
    admins = Admins.of(flow)
    try:
        partitions = partition_counts(admins.source.metadata(timeout_s=_SOURCE_S))
    except ClusterError:
        partitions = None
    try:
        with closing(CopiedTopics(flow, admins)) as copied:
            found = copied.created_again(partitions)
    except ClusterError as error:
        found = CreatedAgain(unknown=str(error))
    if found.unknown is not None:
        warn(f"{UNCHECKED}: {found.unknown}")
    policy = policy_for(flow)
    return {
        remote_topic(topic, source=flow.source.alias, target=flow.target.alias, policy=policy): reason
        for topic, reason in found.topics.items()
    }
