"""`mirrorless web`: a live page about flows, whichever process copies them."""

from __future__ import annotations

import sys

import click

from mirrorless.cli.options import file_argument, flow_option, verbose_option, warn, web_options, with_flow
from mirrorless.cli.status_codes import FINE
from mirrorless.cli.web_terms import terms_of
from mirrorless.local.runner import StopRequest
from mirrorless.settings import load
from mirrorless.web.server import served

_WAIT_S = 3600.0


@click.command
@file_argument
@flow_option
@web_options
@verbose_option
def web(
    file: str,
    *,
    name: str | None,
    web_port: int,
    web_address: str,
    web_token: str | None,
    web_actions: bool,
    web_cert: str | None,
    web_key: str | None,
) -> None:
    """Serve a live page about the flows of FILE.

    Shows flows, topics, partitions, groups, gaps, operations and settings, until Ctrl-C or SIGTERM. Asks the clusters
    only, so it works from any machine, whatever copies. Writes to no cluster, unless --web-actions is given.
    `mirrorless run --web` serves the same page from the process that copies.

    Exit status 0: it was stopped; 2: it could not start.
    """
    terms = terms_of(
        port=web_port, address=web_address, token=web_token, actions=web_actions, cert=web_cert, key=web_key
    )
    settings = with_flow(load(file), name)
    for warning in settings.warnings:
        warn(warning)
    stop = StopRequest()
    with stop.on_signals(), served(settings, terms) as server:
        click.echo(f"the page is at {server.url}")
        while not stop.event.is_set():
            stop.wait(_WAIT_S)
    sys.exit(FINE)
