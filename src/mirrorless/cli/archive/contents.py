"""`mirrorless archive list`: the topics of archives, and the times that can be restored."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from mirrorless.archive import upkeep
from mirrorless.archive.state import identity_of
from mirrorless.cli.archive.options import archive_option, stores
from mirrorless.cli.options import file_argument, json_option, print_json, verbose_option
from mirrorless.local.listing import Listing
from mirrorless.settings import load


@click.command(name="list")
@file_argument
@archive_option
@json_option
@verbose_option
def contents(file: str, *, alias: str | None, as_json: bool) -> None:
    """Show the topics of archives, and the times to restore.

    Exit status 0: it is shown; 2: an archive cannot be read.
    """
    found = {
        name: (identity_of(store), upkeep.times(store), upkeep.contents(store))
        for name, store in stores(load(file), alias).items()
    }
    if as_json:
        print_json(
            {
                name: {
                    "source": identity.source_alias,
                    "cluster_id": identity.cluster_id,
                    "first_ms": first,
                    "last_ms": last,
                    "topics": [asdict(one) for one in topics],
                }
                for name, (identity, (first, last), topics) in found.items()
            }
        )
        return
    for name, (identity, (first, last), topics) in found.items():
        click.echo(f"{name}: {identity.source_alias}, from {_time(first)} to {_time(last)}")
        columns = ("partitions", "objects", "MB")
        listing = Listing("topic", "id", *columns, numbers=columns)
        for one in topics:
            gone = "" if one.is_current else " (deleted since)"
            size = f"{one.size_bytes / 1e6:,.1f}"
            listing.add(one.topic + gone, one.topic_id, f"{one.partitions:,}", f"{one.objects:,}", size)
        listing.print()


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
