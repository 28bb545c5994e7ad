"""The option `--verbose` of commands that connect to clusters."""

from __future__ import annotations

from typing import Final

import click

from mirrorless import client_logs


def _show(context: click.Context, parameter: click.Parameter, given: bool) -> None:  # noqa: ARG001 -- click's signature
    if given:
        client_logs.show()


verbose_option: Final = click.option(
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_show,
    help="Show the logs of both Kafka client libraries on standard error.",
)
