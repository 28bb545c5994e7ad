"""Commands for configuration files."""

from __future__ import annotations

import click

from mirrorless.cli.config.check import check
from mirrorless.cli.config.convert import convert
from mirrorless.cli.config.explain import explain_key


@click.group(name="config")
def group() -> None:
    """Check, convert and explain configuration files; no cluster is asked."""


group.add_command(check)
group.add_command(convert)
group.add_command(explain_key)
