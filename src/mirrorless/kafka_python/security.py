"""What kafka-python needs to log in: token providers and TLS contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.transport import KafkaSSLTransport

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


def register_token_provider(provider: type) -> None:
    """Have the library accept instances of a class as `sasl_oauth_token_provider`."""
    AbstractTokenProvider.register(provider)


def ssl_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS context that the library makes of connection settings; raises OSError."""
    defaults = KafkaSSLTransport.DEFAULT_CONFIG
    context: ssl.SSLContext = KafkaSSLTransport._build_ssl_context(
        defaults | {key: value for key, value in settings.items() if key in defaults}
    )
    return context
