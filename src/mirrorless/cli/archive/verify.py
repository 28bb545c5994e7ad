"""`mirrorless archive verify`: whether every object of an archive is what was written, and follows its predecessor."""

from __future__ import annotations

import sys

import click

from mirrorless.archive.upkeep import Proof, faults
from mirrorless.cli.archive.options import archive_option, stores
from mirrorless.cli.options import file_argument, json_option, print_json, verbose_option
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.settings import load


@click.command
@file_argument
@archive_option
@json_option
@verbose_option
def verify(file: str, *, alias: str | None, as_json: bool) -> None:
    """Read whole archives, and name every fault.

    A fault is an object that is damaged, missing, of something else, or does not begin where its predecessor ends.

    Exit status 0: every byte is as it was written; 1: there are faults; 2: an archive cannot be read.
    """
    found: dict[str, tuple[Proof, list[str]]] = {}
    for name, store in stores(load(file), alias).items():
        proof, lines = Proof(), list[str]()
        for line in faults(store, proof):
            lines.append(line)
            if not as_json:
                click.echo(f"{name}: {line}")
        found[name] = proof, lines
        if not as_json:
            read = f"{proof.objects:,} objects, {proof.size_bytes / 1e6:,.1f} MB, {proof.documents:,} seconds of state"
            click.echo(f"{name}: {len(lines):,} fault{'' if len(lines) == 1 else 's'} in {read}")
    if as_json:
        print_json(
            {
                name: {"objects": proof.objects, "bytes": proof.size_bytes, "faults": lines}
                for name, (proof, lines) in found.items()
            }
        )
    sys.exit(FOUND if any(lines for _, lines in found.values()) else FINE)
