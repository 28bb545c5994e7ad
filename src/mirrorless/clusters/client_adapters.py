"""Tokens and keys in the forms that confluent-kafka and kafka-python want: a callback, an object, a context."""

from __future__ import annotations

import importlib
import ssl
from typing import TYPE_CHECKING, Any

from mirrorless.clusters.pem import key_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.clusters.tokens import TokenSource


def oauth_callback(source: TokenSource) -> Callable[[str], tuple[str, float, str, dict[str, str]]]:
    """Return librdkafka's `oauth_cb`: token, end of its life in seconds since 1970, principal, extensions."""

    def fetch(_: str) -> tuple[str, float, str, dict[str, str]]:
        token = source.fetch()
        return token.value, token.expires_s, "", dict(token.extensions)

    return fetch


class _Provider:
    def __init__(self, source: TokenSource) -> None:
        self._source = source

    def token(self) -> str:
        return self._source.fetch().value

    def extensions(self) -> dict[str, str]:
        return dict(self._source.fetch().extensions)


def token_provider(source: TokenSource) -> Any:  # noqa: ANN401 -- the library's class has no types
    """Return kafka-python's token provider."""
    # Imported here only: it brings the whole library, which functions that do without it need not wait for.
    importlib.import_module("mirrorless.kafka_python.security").register_token_provider(_Provider)
    return _Provider(source)


def tls_context(
    *, trust: str | None, certificates: str, key: str, key_password: str | None, check_hostname: bool
) -> ssl.SSLContext:
    """Return what kafka-python's own context would be, for a key that is a text; raises ssl.SSLError."""
    context = key_context(certificates, key, key_password)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_hostname
    if trust is not None:
        context.load_verify_locations(trust)
    else:
        context.load_default_certs()
    return context
