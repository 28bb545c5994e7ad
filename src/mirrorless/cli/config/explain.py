"""`mirrorless config explain`: what a setting is."""

from __future__ import annotations

import dataclasses
import json

import click

from mirrorless.settings.explain import client_explanations, explain, explanations


@click.command(name="explain")
@click.argument("key", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def explain_key(key: str | None, *, as_json: bool) -> None:
    """Say of KEY, in any spelling, what it may be, its default and its meaning; without KEY, of all that count."""
    found = [explain(key)] if key is not None else [*explanations(), *client_explanations()]
    if as_json:
        listed = [dataclasses.asdict(one) for one in found]
        click.echo(json.dumps(listed[0] if key is not None else listed, indent=2))
        return
    for number, one in enumerate(found):
        if number:
            click.echo()
        click.echo(one.key)
        click.echo(f"  type     {one.kind}")
        click.echo(f"  default  {one.default if one.default is not None else 'none'}")
        click.echo(f"  where    {one.where}")
        click.echo(f"  {one.meaning}")
