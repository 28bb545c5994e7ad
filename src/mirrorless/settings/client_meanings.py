"""The client settings that are honoured: kind, default and meaning of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOCATION = "path of a PEM, PKCS12 or JKS file"
_KIND = "PEM, PKCS12 or JKS"

CLIENT_MEANINGS: Final[Mapping[str, tuple[str, str | None, str]]] = {
    "client.id": ("text", "mirrorless", "The name that brokers log and give quotas to, which the copy waits out."),
    "request.timeout.ms": (
        "whole number",
        None,
        "How long a request may take, and replicas to take an append; the library's own if it is not set.",
    ),
    "reconnect.backoff.ms": ("whole number", "50", "The first pause before another attempt to connect."),
    "reconnect.backoff.max.ms": ("whole number", None, "The longest pause between attempts to connect."),
    "connections.max.idle.ms": ("whole number", None, "After how long an idle connection is closed; `-1` never."),
    "metadata.max.age.ms": ("whole number", None, "How often leaders are asked for when nothing goes wrong."),
    "security.protocol": (
        "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        "PLAINTEXT",
        "How connections are made; `ssl.` and `sasl.` settings count only where it has TLS or SASL.",
    ),
    "ssl.truststore.location": (_LOCATION, None, "Whose certificates are trusted; the system's if it is not set."),
    "ssl.truststore.type": (_KIND, "JKS", "What the trust store is; its content decides."),
    "ssl.truststore.password": ("password", None, "Of a PKCS12 or JKS trust store."),
    "ssl.truststore.certificates": ("PEM text", None, "The certificates themselves, instead of a trust store."),
    "ssl.keystore.location": (_LOCATION, None, "Our own key with its certificates, where brokers ask for them (mTLS)."),
    "ssl.keystore.type": (_KIND, "JKS", "What the key store is; its content decides."),
    "ssl.keystore.password": ("password", None, "Of a PKCS12 or JKS key store."),
    "ssl.keystore.key": ("PEM text", None, "The key itself, instead of a key store."),
    "ssl.keystore.certificate.chain": ("PEM text", None, "The certificates that go with `ssl.keystore.key`."),
    "ssl.key.password": ("password", None, "Of the key, where it has one of its own."),
    "ssl.enabled.protocols": ("list", "TLSv1.2,TLSv1.3", "Must have TLSv1.2; the newest that the broker has is used."),
    "ssl.protocol": ("TLSv1.2 or TLSv1.3", "TLSv1.3", "As `ssl.enabled.protocols`."),
    "ssl.endpoint.identification.algorithm": (
        "https or empty",
        "https",
        "Whether a broker's certificate must name its host; empty accepts any.",
    ),
    "sasl.mechanism": (
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM",
        "GSSAPI",
        "How to log in; Java's own default, Kerberos, is not supported.",
    ),
    "sasl.jaas.config": ("login configuration", None, "Login module and its options, such as user and password."),
    "sasl.client.callback.handler.class": ("class", None, "Only Amazon's for MSK IAM."),
    "sasl.login.callback.handler.class": ("class", None, "Only Kafka's own for OAUTHBEARER, and Amazon's for MSK IAM."),
    "sasl.oauthbearer.token.endpoint.url": ("https: or file: URL", None, "Where OAUTHBEARER tokens are given out."),
    "sasl.oauthbearer.client.credentials.client.id": ("text", None, "As `clientId` in `sasl.jaas.config`."),
    "sasl.oauthbearer.client.credentials.client.secret": ("password", None, "As `clientSecret` in `sasl.jaas.config`."),
    "sasl.oauthbearer.scope": ("text", None, "As `scope` in `sasl.jaas.config`."),
    "sasl.oauthbearer.header.urlencode": ("true or false", "false", "Whether id and secret are URL-encoded when sent."),
}
