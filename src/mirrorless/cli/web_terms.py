"""Checks the options of the page's server together."""

from __future__ import annotations

import click

from mirrorless.web.security import SHORTEST_TOKEN
from mirrorless.web.server import ServerTerms


def terms_of(
    *, port: int, address: str, token: str | None, actions: bool, cert: str | None, key: str | None
) -> ServerTerms:
    """Return the terms; raises `UsageError` for options that do not fit together."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise click.UsageError(f"--web-token needs {SHORTEST_TOKEN} characters or more")
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise click.UsageError("--web-token must be printable ASCII without blanks")
    if (cert is None) != (key is None):
        raise click.UsageError("--web-cert and --web-key belong together")
    return ServerTerms(port=port, address=address, token=token, actions=actions, cert=cert, key=key)
