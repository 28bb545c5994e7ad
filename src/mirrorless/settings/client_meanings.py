"""The supported client settings: type, default and meaning of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOCATION = "path of a PEM, PKCS12 or JKS file"
_KIND = "PEM, PKCS12 or JKS"

CLIENT_MEANINGS: Final[Mapping[str, tuple[str, str | None, str]]] = {
    "client.id": ("text", "mirrorless", "The name in broker logs and quotas; the copy obeys quotas."),
    "client.rack": (
        "text",
        None,
        "Rack of the consumers of this cluster, written as the brokers' `broker.rack`: the copy reads replicas in it, "
        "where brokers allow that; see Closest replica.",
    ),
    "request.timeout.ms": (
        "whole number",
        None,
        "Timeout of a request, and of the acknowledgement of an append; the client's default if not set.",
    ),
    "reconnect.backoff.ms": ("whole number", "50", "The first delay before a connection is retried."),
    "reconnect.backoff.max.ms": ("whole number", "1000", "The longest delay between connection attempts."),
    "connections.max.idle.ms": ("whole number", None, "After how long an idle connection is closed; `-1` for never."),
    "metadata.max.age.ms": ("whole number", None, "How often cluster metadata is refreshed when there are no errors."),
    "security.protocol": (
        "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        "PLAINTEXT",
        "Protocol of connections; `ssl.` and `sasl.` settings have an effect only where it includes SSL or SASL.",
    ),
    "ssl.truststore.location": (_LOCATION, None, "Trusted certificates; the system's if not set."),
    "ssl.truststore.type": (_KIND, "JKS", "Type of the trust store; detected from its content."),
    "ssl.truststore.password": ("password", None, "Password of a PKCS12 or JKS trust store."),
    "ssl.truststore.certificates": ("PEM text", None, "Trusted certificates, instead of a trust store."),
    "ssl.keystore.location": (_LOCATION, None, "Client key and certificates, where brokers require them (mTLS)."),
    "ssl.keystore.type": (_KIND, "JKS", "Type of the key store; detected from its content."),
    "ssl.keystore.password": ("password", None, "Password of a PKCS12 or JKS key store."),
    "ssl.keystore.key": ("PEM text", None, "Client key, instead of a key store."),
    "ssl.keystore.certificate.chain": ("PEM text", None, "Certificates of `ssl.keystore.key`."),
    "ssl.key.password": ("password", None, "Password of the client key, if it has one."),
    "ssl.enabled.protocols": ("list", "TLSv1.2,TLSv1.3", "Must include TLSv1.2; the newest common version is used."),
    "ssl.protocol": ("TLSv1.2 or TLSv1.3", "TLSv1.3", "As for `ssl.enabled.protocols`."),
    "ssl.endpoint.identification.algorithm": (
        "https or empty",
        "https",
        "Whether a broker's certificate must match its host name; empty accepts any.",
    ),
    "sasl.mechanism": (
        "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM",
        "GSSAPI",
        "SASL mechanism; Java's default, Kerberos, is not supported.",
    ),
    "sasl.jaas.config": ("login configuration", None, "Login module and its options, such as user name and password."),
    "sasl.client.callback.handler.class": ("class", None, "Only Amazon's for MSK IAM."),
    "sasl.login.callback.handler.class": ("class", None, "Only Kafka's own for OAUTHBEARER, and Amazon's for MSK IAM."),
    "sasl.oauthbearer.token.endpoint.url": ("https: or file: URL", None, "URL of the OAUTHBEARER token endpoint."),
    "sasl.oauthbearer.client.credentials.client.id": ("text", None, "Same as `clientId` in `sasl.jaas.config`."),
    "sasl.oauthbearer.client.credentials.client.secret": (
        "password",
        None,
        "Same as `clientSecret` in `sasl.jaas.config`.",
    ),
    "sasl.oauthbearer.scope": ("text", None, "Same as `scope` in `sasl.jaas.config`."),
    "sasl.oauthbearer.header.urlencode": ("true or false", "false", "Whether id and secret are URL-encoded when sent."),
}
