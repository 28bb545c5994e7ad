"""Names of Java's client settings: which keys after an alias or a role are client settings.

Source: `CommonClientConfigs`, `SslConfigs`, `SaslConfigs`, `ConsumerConfig` and `ProducerConfig` of Kafka 4.3.
"""

from __future__ import annotations

from typing import Final

BOOTSTRAP_SERVERS: Final = "bootstrap.servers"
CLUSTER_ID: Final = "mirrorless.cluster.id"
"""Also set per cluster, but not a client setting."""
ARCHIVE: Final = "archive"
"""In place of bootstrap servers: where a cluster is an archive (`settings.archives`)."""

SECURITY_PREFIXES: Final = ("security.", "ssl.", "sasl.")
ROLES: Final = ("consumer", "producer", "admin")
ROLE_PREFIXES: Final = tuple(f"{role}." for role in ROLES)

# What consumers, producers and admin clients have in common. After an alias there are also settings of the Connect
# worker, so a key is a client's only if it is named here or has one of the prefixes above.
COMMON_CLIENT_KEYS: Final = frozenset(
    [
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
    ]
)

SECURITY_KEYS: Final = frozenset(
    [
        "security.protocol",
        "security.providers",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.key.password",
        "ssl.keymanager.algorithm",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.mechanism",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
    ]
)

CONSUMER_KEYS: Final = frozenset(
    [
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "enable.auto.commit",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "key.deserializer",
        "max.partition.fetch.bytes",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "value.deserializer",
    ]
)

PRODUCER_KEYS: Final = frozenset(
    [
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "metadata.max.idle.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
        "value.serializer",
    ]
)

ROLE_KEYS: Final = {
    "consumer": CONSUMER_KEYS | COMMON_CLIENT_KEYS | SECURITY_KEYS | {BOOTSTRAP_SERVERS},
    "producer": PRODUCER_KEYS | COMMON_CLIENT_KEYS | SECURITY_KEYS | {BOOTSTRAP_SERVERS},
    "admin": COMMON_CLIENT_KEYS | SECURITY_KEYS | {BOOTSTRAP_SERVERS},
}


def is_connection_key(key: str) -> bool:
    """Whether MirrorMaker 2 hands this key to every client of a cluster (`MirrorClientConfig.CLIENT_CONFIG_DEF`)."""
    return key == BOOTSTRAP_SERVERS or key.startswith(SECURITY_PREFIXES)


def is_client_key(key: str) -> bool:
    """Whether this is a client setting when it follows an alias: shared, for security, or with a role prefix."""
    return is_connection_key(key) or key in COMMON_CLIENT_KEYS or key.startswith(ROLE_PREFIXES)
