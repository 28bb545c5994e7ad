"""Commands for configuration files."""

from __future__ import annotations

import click

from mirrorless.cli.config.check import check
from mirrorless.cli.config.explain import explain_key


@click.group(name="config")
def group() -> None:
    """What a configuration says, without asking any cluster."""


group.add_command(check)
group.add_command(explain_key)
