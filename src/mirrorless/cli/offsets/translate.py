"""`mirrorless offsets translate`: where a group goes on."""

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Final

import click
from rich.table import Table

from mirrorless.cli.tables import print_table
from mirrorless.client import MirrorClient
from mirrorless.clusters.topics import partition_counts
from mirrorless.copy.flow.recreated_topics import CopiedTopics
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.metadata.planning import Admins
from mirrorless.metadata.recreated_topics import UNCHECKED, CreatedAgain
from mirrorless.offsets.checkpoints import remote_topic
from mirrorless.policy import policy_for
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.settings import Flow

_SOURCE_S: Final = 5.0
"""How long a source is waited for that may be down."""


@click.command
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--from", "source", required=True, metavar="ALIAS", help="The cluster that the group comes from.")
@click.option(
    "--to", "target", metavar="ALIAS", help="The cluster it goes to; needed if FILE has several flows from there."
)
@click.option("--group", "groups", required=True, metavar="GROUP", help="A group, or a pattern for whole names.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def translate(file: str, *, source: str, target: str | None, groups: str, as_json: bool) -> None:
    """Print the offsets at which groups go on, by the checkpoints on the target of FILE's flow.

    It works while the source is down. A source topic that was deleted and created again has no answers as long as
    nothing of the new topic is copied, which is said. Exit status 1 if no group has an answer.
    """
    settings = load(file)
    flows = [flow for flow in settings.flows if flow.source.alias == source and target in (None, flow.target.alias)]
    if len(flows) != 1:
        found = ", ".join(flow.name for flow in flows) or "none"
        raise ConfigurationError(f"{found} of its flows fits; name one flow by --from and --to", file=file)
    (flow,) = flows
    client = MirrorClient(flow.target, policy=policy_for(flow))
    try:
        pattern = re.compile(groups)
    except re.error as error:
        raise click.BadParameter(str(error), param_hint="--group") from None
    without = _without_answer(flow)
    rows = [
        (group, topic, partition, offset, metadata)
        for group, offsets in sorted(client.translate_offsets_of(source, pattern).items())
        for (topic, partition), (offset, metadata) in sorted(offsets.items())
        if topic not in without
    ]
    for topic, reason in sorted(without.items()):
        click.echo(f"{topic}: no offset is translated: {reason}; nothing of the new topic is copied", err=True)
    if as_json:
        for row in rows:
            click.echo(json.dumps(dict(zip(("group", "topic", "partition", "offset", "metadata"), row, strict=True))))
    elif rows:
        table = Table("group", "topic", "partition", "offset", "metadata")
        for row in rows:
            table.add_row(*map(str, row))
        print_table(table)
    if not rows:
        click.echo(f"no checkpoint for {groups} on {flow.target.alias}", err=True)
        raise click.exceptions.Exit(1)


def _without_answer(flow: Flow) -> dict[str, str]:
    """Remote topics that are copies of another source topic than there is now, each with a line that says so."""
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
        click.echo(f"warning: {UNCHECKED}: {found.unknown}", err=True)
    policy = policy_for(flow)
    return {
        remote_topic(topic, source=flow.source.alias, target=flow.target.alias, policy=policy): reason
        for topic, reason in found.topics.items()
    }
