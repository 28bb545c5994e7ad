"""Translates Java client settings for the two Kafka client libraries.

A setting is supported, or listed in `java_settings` as one that only tunes, or refused with what to change; none is
dropped silently. As in Java, `ssl.` settings are used only if `security.protocol` includes SSL, `sasl.` settings only
if it includes SASL.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters import outages
from mirrorless.clusters.client_adapters import oauth_callback, tls_context, token_provider
from mirrorless.clusters.connection_errors import Plainly
from mirrorless.clusters.java_settings import JavaSettings, Role
from mirrorless.clusters.security import read_login
from mirrorless.clusters.stores import read_stores
from mirrorless.clusters.tokens import CachedToken
from mirrorless.clusters.zone import AUTO, zone_id
from mirrorless.errors import ClusterUnavailable
from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS
from mirrorless.settings.key_normalizer import addresses, without_port

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings import Cluster

__all__ = ["DEFAULT_CLIENT_ID", "SOON_RECONNECTED", "Role", "check", "for_confluent", "for_kafka_python"]

DEFAULT_CLIENT_ID: Final = "mirrorless"

# Field of _Connection -> its name in librdkafka and in kafka-python.
_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "bootstrap_servers": ("bootstrap.servers", "bootstrap_servers"),
    "client_id": ("client.id", "client_id"),
    # librdkafka's own request.timeout.ms is another setting: the acknowledgement timeout of a produce request
    "request_timeout_ms": ("socket.timeout.ms", "request_timeout_ms"),
    "reconnect_backoff_ms": ("reconnect.backoff.ms", "reconnect_backoff_ms"),
    "reconnect_backoff_max_ms": ("reconnect.backoff.max.ms", "reconnect_backoff_max_ms"),
    "connections_max_idle_ms": ("connections.max.idle.ms", "connections_max_idle_ms"),
    # librdkafka's metadata.max.age.ms is when its cache expires, by default three times this interval
    "metadata_max_age_ms": ("topic.metadata.refresh.interval.ms", "metadata_max_age_ms"),
    # Not kafka-python's own: `ClusterClient` sends it
    "rack": ("client.rack", "client_rack"),
    "security_protocol": ("security.protocol", "security_protocol"),
    "sasl_mechanism": ("sasl.mechanism", "sasl_mechanism"),
    "username": ("sasl.username", "sasl_plain_username"),
    "password": ("sasl.password", "sasl_plain_password"),
    "ca_file": ("ssl.ca.location", "ssl_cafile"),
    "certificate_file": ("ssl.certificate.location", "ssl_certfile"),
    "key_file": ("ssl.key.location", "ssl_keyfile"),
    "key": ("ssl.key.pem", "ssl_context"),
    "key_password": ("ssl.key.password", "ssl_password"),
    "check_hostname": ("ssl.endpoint.identification.algorithm", "ssl_check_hostname"),
    "tokens": ("oauth_cb", "sasl_oauth_token_provider"),
}

SOON_RECONNECTED: Final[Mapping[str, Any]] = {
    "socket_timeout_ms": 6_000,
    "socket_connection_setup_timeout_ms": 4_000,
}
"""librdkafka's settings, with `_` for `.`, of clients that others wait for.

While a link is cut, TCP sends again after pauses that double, up to minutes: a new attempt succeeds sooner.
"""
_SOCKET_TIMEOUT_MS: Final = 30_000
_SETUP_TIMEOUT_MS: Final = 10_000
"""Java's defaults; librdkafka's are twice and three times as long."""
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NEVER_MS: Final = 2**31 - 1
_BACKOFF_MS: Final = 50
_BACKOFF_MAX_MS: Final = 1_000
_CREATES_NO_TOPICS: Final = {"allow.auto.create.topics": False}
"""librdkafka's producers and admin clients would otherwise create a missing topic with the broker's defaults."""
_MISSING_AFTER_MS: Final = 5_000
"""How long a producer treats an unknown topic as one that was just created; the library's default of half a
minute is longer than records may wait, which would then time out without a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connection:
    """The settings that both libraries need; None is the library's default."""

    bootstrap_servers: tuple[str, ...]
    client_id: str
    security_protocol: str
    request_timeout_ms: int | None
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    connections_max_idle_ms: int | None
    metadata_max_age_ms: int | None
    rack: str | None = None
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_hostname: bool | None = None
    tokens: CachedToken | None = None


def for_confluent(cluster: Cluster, *, role: Role, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Translate for confluent-kafka; `extra` is librdkafka's own settings and takes precedence.

    An `error_cb` in it receives failed connections as plain messages. No client creates topics, whatever brokers allow.
    The result contains secrets. Raises ConfigurationError, in one line without secrets, for what is not supported, and
    ClusterUnavailable if no token can be fetched.
    """
    outages.require(cluster, if_refused=True)
    connection = _read(cluster, role)
    settings = {confluent: getattr(connection, name) for name, (confluent, _) in _NAMES.items()}
    settings["bootstrap.servers"] = ",".join(connection.bootstrap_servers)
    if connection.connections_max_idle_ms == _NEVER_MS:
        settings["connections.max.idle.ms"] = 0  # never, in librdkafka
    if connection.check_hostname is not None:
        settings["ssl.endpoint.identification.algorithm"] = "https" if connection.check_hostname else "none"
    if connection.tokens is not None:
        settings["oauth_cb"] = oauth_callback(_working(connection.tokens, cluster))
    if settings["socket.timeout.ms"] is None:
        settings["socket.timeout.ms"] = _SOCKET_TIMEOUT_MS
    settings["socket.connection.setup.timeout.ms"] = _SETUP_TIMEOUT_MS
    added = dict(extra or {})
    if role == "producer":
        settings["topic.metadata.propagation.max.ms"] = _MISSING_AFTER_MS
    if "error_cb" in added:
        added["error_cb"] = _plainly(connection).told_to(added["error_cb"])
    return {key: value for key, value in settings.items() if value is not None} | added | _CREATES_NO_TOPICS


def for_kafka_python(cluster: Cluster, *, role: Role) -> dict[str, Any]:
    """Translate into the parameters of kafka-python's `KafkaConnectionManager`, and `client_rack`.

    The result contains secrets. Raises ConfigurationError, in one line without secrets, for what is not supported, and
    ClusterUnavailable if no token can be fetched.
    """
    outages.require(cluster, if_refused=True)
    connection = _read(cluster, role)
    settings = {kafka_python: getattr(connection, name) for name, (_, kafka_python) in _NAMES.items()}
    settings["bootstrap_servers"] = list(connection.bootstrap_servers)
    if connection.key is not None and connection.certificate_file is not None:
        # The library reads keys from files only, and this key must not be in any.
        settings["ssl_context"] = tls_context(
            trust=connection.ca_file,
            certificates=connection.certificate_file,
            key=connection.key,
            key_password=connection.key_password,
            check_hostname=connection.check_hostname is not False,
        )
    if connection.tokens is not None:
        settings["sasl_oauth_token_provider"] = token_provider(_working(connection.tokens, cluster))
    return {key: value for key, value in settings.items() if value is not None}


def client_rack(cluster: Cluster) -> str | None:
    """Return `client.rack` of a cluster's consumers (KIP-392), None if it is not set, or `auto` and not known."""
    return _rack(JavaSettings(cluster, "consumer"))


def _rack(settings: JavaSettings) -> str | None:
    text = settings.text("client.rack")
    return zone_id() if text == AUTO else text


def login_digest(cluster: Cluster) -> str:
    """Return a digest of the login and certificates of a cluster's clients, with what their files contain now.

    Raises ConfigurationError and OSError for what cannot be read.
    """
    connection = replace(_read(cluster, "admin"), tokens=None)
    digest = hashlib.sha256()
    for name in _NAMES:
        digest.update(f"{name}={getattr(connection, name)}\n".encode())
    for path in (connection.ca_file, connection.certificate_file, connection.key_file):
        if path is not None:
            digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def check(cluster: Cluster, *, role: Role) -> None:
    """Raise ConfigurationError for what is not supported; fetches no token."""
    _read(cluster, role)


def _working(tokens: CachedToken, cluster: Cluster) -> CachedToken:
    """Fetch the first token here, because neither library reports why there is none; raises ClusterUnavailable."""
    try:
        tokens.fetch()
    except ValueError as error:
        raise ClusterUnavailable(f"no token for the login: {error}", cluster=cluster.alias) from None
    return tokens


def _plainly(connection: _Connection) -> Plainly:
    return Plainly(
        trust=connection.ca_file,
        check_hostname=connection.check_hostname is not False,
        username=connection.username,
        has_key=connection.certificate_file is not None,
    )


def _read(cluster: Cluster, role: Role) -> _Connection:
    settings = JavaSettings(cluster, role)
    protocol = settings.choice("security.protocol", default="PLAINTEXT", allowed=_PROTOCOLS)
    login = read_login(settings, used=protocol.startswith("SASL_"))
    stores = read_stores(settings, used=protocol.endswith("SSL"))
    backoff_ms, backoff_max_ms = _backoff(settings)
    rack = _rack(settings)
    connection = _Connection(
        bootstrap_servers=_servers(settings),
        client_id=settings.text("client.id") or DEFAULT_CLIENT_ID,
        security_protocol=protocol,
        request_timeout_ms=settings.number("request.timeout.ms", least=10, greatest=300_000),
        reconnect_backoff_ms=backoff_ms,
        reconnect_backoff_max_ms=backoff_max_ms,
        connections_max_idle_ms=_max_idle(settings),
        metadata_max_age_ms=_max_age(settings),
        rack=rack if role == "consumer" else None,  # only consumers choose whom they read (KIP-392)
        sasl_mechanism=login.mechanism,
        username=login.username,
        password=login.password,
        tokens=CachedToken(login.tokens) if login.tokens is not None else None,
        ca_file=stores.trust,
        certificate_file=stores.certificates,
        key_file=stores.key_file,
        key=stores.key,
        key_password=stores.key_password,
        check_hostname=stores.check_hostname,
    )
    settings.refuse_rest()
    return connection


def _servers(settings: JavaSettings) -> tuple[str, ...]:
    servers = addresses(settings.text(BOOTSTRAP_SERVERS) or "")
    if without_port(",".join(servers)) is not None:
        settings.refuse(BOOTSTRAP_SERVERS, "each must be host:port")
    return servers


def _backoff(settings: JavaSettings) -> tuple[int, int]:
    """Return the first and the longest delay of a reconnect, with Java's defaults: the libraries' are 10 and 30 s."""
    least = settings.number("reconnect.backoff.ms", least=0, greatest=3_600_000)
    greatest = settings.number("reconnect.backoff.max.ms", least=0, greatest=3_600_000)
    if greatest is None:
        # as in Java, the first alone is used for both (CommonClientConfigs)
        return (_BACKOFF_MS, _BACKOFF_MAX_MS) if least is None else (least, least)
    return min(_BACKOFF_MS if least is None else least, greatest), greatest


def _max_idle(settings: JavaSettings) -> int | None:
    idle_ms = settings.number("connections.max.idle.ms", least=-1)
    if idle_ms is None:
        return None
    return min(idle_ms, _NEVER_MS) if idle_ms > 0 else _NEVER_MS


def _max_age(settings: JavaSettings) -> int | None:
    age_ms = settings.number("metadata.max.age.ms", least=0)
    # librdkafka accepts 1 ms to 1 h; refreshing sooner than required does no harm
    return None if age_ms is None else min(max(age_ms, 1), 3_600_000)
