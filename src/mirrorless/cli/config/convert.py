"""`mirrorless config convert`: a configuration in any form as one file."""

from __future__ import annotations

import sys

import click

from mirrorless.cli.options import files_argument, warn
from mirrorless.cli.status_codes import FINE, FOUND
from mirrorless.settings.converting import to_json, to_properties
from mirrorless.settings.load import understand


@click.command
@files_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["properties", "json"]),
    default="properties",
    show_default=True,
    help="An mm2.properties, or connectors in the JSON of Kafka Connect's REST API.",
)
def convert(files: tuple[str, ...], *, form: str) -> None:
    """Write any configuration as one file with the same flows.

    Prints an mm2.properties, with the origin of each setting in a comment, or connectors as JSON. What has no effect is
    left out. Secrets are written as references to environment variables, which are listed on standard error.
    Converting the result again gives the same.

    Exit status 0: the file was printed; 1: FILES have errors, or cannot be read.
    """
    understood = understand(*files)
    for warning in understood.warnings:
        warn(warning)
    if understood.errors:
        for error in understood.errors:
            click.echo(f"error: {error}", err=True)
        sys.exit(FOUND)
    converted = to_json(understood) if form == "json" else to_properties(understood)
    for key, name in converted.variables.items():
        warn(f"{key}: the secret is not written; set the environment variable {name} to it")
    click.echo(converted.text, nl=False)
    sys.exit(FINE)
