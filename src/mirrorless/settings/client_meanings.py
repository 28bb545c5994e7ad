"""The client settings that are honoured: kind, default and meaning of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_STORE = "PEM, PKCS12 or JKS"

CLIENT_MEANINGS: Final[Mapping[str, tuple[str, str | None, str]]] = {
    "client.id": ("text", "mirrorless", "The name that brokers log and give quotas to."),
    "request.timeout.ms": ("whole number", None, "How long a request may take; the library's own if it is not set."),
    "reconnect.backoff.ms": ("whole number", "50", "The first pause before another attempt to connect."),
    "reconnect.backoff.max.ms": ("whole number", None, "The longest pause between attempts to connect."),
    "connections.max.idle.ms": ("whole number", None, "After how long an idle connection is closed; `-1` never."),
    "metadata.max.age.ms": ("whole number", None, "How often leaders are asked for when nothing goes wrong."),
    "security.protocol": (
        "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        "PLAINTEXT",
        "How connections are made; `ssl.` and `sasl.` settings count only where it has TLS or SASL.",
    ),
}
