"""`mirrorless config explain`: the type, default and meaning of settings."""

from __future__ import annotations

import dataclasses

import click

from mirrorless.cli.options import json_option, print_json
from mirrorless.settings.explain import client_explanations, explain, explanations


@click.command(name="explain")
@click.argument("key", required=False)
@json_option
def explain_key(key: str | None, *, as_json: bool) -> None:
    """Show the type, default and meaning of settings.

    KEY is a setting in any spelling; without KEY, every setting is shown.
    """
    found = [explain(key)] if key is not None else [*explanations(), *client_explanations()]
    if as_json:
        listed = [dataclasses.asdict(one) for one in found]
        print_json(listed[0] if key is not None else listed)
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        click.echo(one.key)
        click.echo(f"  type     {one.kind}")
        click.echo(f"  default  {one.default if one.default is not None else 'none'}")
        click.echo(f"  where    {one.where}")
        click.echo(f"  {one.meaning}")
