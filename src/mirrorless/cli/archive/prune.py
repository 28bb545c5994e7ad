"""`mirrorless archive prune`: delete what only times need that nobody will restore."""

from __future__ import annotations

import re
import time
from typing import Final

import click

from mirrorless.archive import upkeep
from mirrorless.cli.archive.options import archive_option, stores
from mirrorless.cli.options import file_argument, json_option, print_json, verbose_option
from mirrorless.settings import load

_UNITS_MS: Final = {"h": 3_600_000, "d": 86_400_000}


def _age_ms(_: click.Context, __: click.Parameter, text: str) -> int:
    if (match := re.fullmatch(r"([1-9]\d{0,5})([hd])", text)) is None:
        raise click.BadParameter("must be a number of days or hours, such as 30d or 12h")
    return int(match[1]) * _UNITS_MS[match[2]]


@click.command
@file_argument
@archive_option
@click.option("--keep", "keep_ms", metavar="AGE", required=True, callback=_age_ms, help="What stays, such as 30d.")
@json_option
@verbose_option
def prune(file: str, *, alias: str | None, keep_ms: int, as_json: bool) -> None:
    """Delete what only older times need.

    The last object of each partition stays, since a writer continues there.

    Exit status 0: it is deleted; 2: an archive cannot be read or changed.
    """
    deleted: dict[str, dict[str, int]] = {}
    for name, store in stores(load(file), alias).items():
        objects, size = upkeep.prune(store, before_ms=int(time.time() * 1000) - keep_ms)
        deleted[name] = {"objects": objects, "bytes": size}
        if not as_json:
            click.echo(f"{name}: {objects:,} objects deleted, {size / 1e6:,.1f} MB")
    if as_json:
        print_json(deleted)
