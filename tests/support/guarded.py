"""The builder of a guarded world: users of a test's own, who have exactly the rights that they are granted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.rights import On, Side, name_of
from mirrorless.settings import Cluster, load
from tests.support.certificates import PASSWORD, Authority
from tests.support.secured import eventually

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from mirrorless.rights import Row
    from mirrorless.settings import Flow

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
USER_PASSWORD = "a-user's-secret"  # noqa: S105 -- of users that live for one test
BY_CERTIFICATE = "CN=client"
KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.BROKER}
"""The principal of the client's certificate on the target."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Guarded:
    """Both clusters, the authority that brokers and clients trust, and the client's key store."""

    source: EmbeddedCluster
    target: EmbeddedCluster
    authority: Authority
    client: Path

    def cluster(self, side: Side) -> EmbeddedCluster:
        """The cluster of one end."""
        return self.source if side is Side.SOURCE else self.target

    def admin(self, side: Side) -> Admin:
        """A client that may do everything."""
        return Admin(self.by_admin(side))

    def by_admin(self, side: Side, alias: str = "admin") -> Cluster:
        """A cluster's settings, as its administrator."""
        found = self.cluster(side)
        return Cluster(alias=alias, bootstrap_servers=found.bootstrap_servers, client=found.client_settings())

    def add_users(self, names: Iterable[str]) -> None:
        """Create users without rights on both clusters."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        users: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(name, info, USER_PASSWORD.encode()) for name in names
        ]
        for side in Side:
            admin = self.admin(side)
            for future in admin.client.alter_user_scram_credentials(users).values():
                future.result(30)

    def login(self, side: Side, user: str, *, password: str = USER_PASSWORD) -> dict[str, str]:
        """A cluster's settings, as files have them, by user and password."""
        return {
            "bootstrap.servers": self.cluster(side).secure_servers("scram"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} username="{user}" password="{password}";',
            "ssl.truststore.location": str(self.authority.certificate),
            "ssl.truststore.type": "PEM",
        }

    def certificate(self) -> dict[str, str]:
        """The target's settings, as files have them, by certificate."""
        return {
            "bootstrap.servers": self.target.secure_servers("mtls"),
            "security.protocol": "SSL",
            "ssl.truststore.location": str(self.authority.trust_store("trust.jks", kind="JKS")),
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.location": str(self.authority.as_jks(self.client)),
            "ssl.keystore.password": PASSWORD,
        }

    def grant(self, bindings: Mapping[Side, Sequence[AclBinding]]) -> None:
        """Add ACLs and wait until brokers go by them."""
        for side, some in bindings.items():
            admin = self.admin(side)
            for future in admin.client.create_acls(list(some)).values():
                future.result(30)
            eventually(lambda admin=admin, some=some: set(some) <= _acls(admin))  # type: ignore[misc]


@dataclass
class GuardedWorld:
    """A flow between the guarded clusters whose aliases, topics and groups no other test uses."""

    guarded: Guarded
    folder: Path
    extra: dict[str, str] = field(default_factory=dict)
    clients: dict[Side, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mark = f"w{next(_numbers):03}"
        self.aliases = {Side.SOURCE: f"{self.mark}s", Side.TARGET: f"{self.mark}t"}
        self.topic, self.group = f"{self.mark}-orders", f"{self.mark}-billing"
        self.file = self.folder / f"{self.mark}.properties"

    @property
    def remote(self) -> str:
        """The remote topic's name."""
        return f"{self.aliases[Side.SOURCE]}.{self.topic}"

    @property
    def name(self) -> str:
        """The flow's name."""
        return f"{self.aliases[Side.SOURCE]}->{self.aliases[Side.TARGET]}"

    def flow(self) -> Flow:
        """Write the settings and read them."""
        return load(self.write()).flow(self.name)

    def write(self) -> Path:
        """Write the settings."""
        source, target = self.aliases.values()
        lines = {
            "clusters": f"{source}, {target}",
            f"{self.name}.enabled": "true",
            f"{target}->{source}.emit.heartbeats.enabled": "false",
            "topics": self.topic,
            "groups": self.group,
            "sync.group.offsets.enabled": "true",
            "replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "offset.storage.partitions": "2",
            "offset-syncs.topic.replication.factor": "1",
            "checkpoints.topic.replication.factor": "1",
            "heartbeats.topic.replication.factor": "1",
            "errors.deadletterqueue.topic.replication.factor": "1",
            **{
                f"{self.aliases[side]}.{key}": value.replace("\\", "\\\\")
                for side, client in self.clients.items()
                for key, value in client.items()
            },
            **self.extra,
        }
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return self.file

    def make_topic(self, partitions: int = 1, **config: str) -> None:
        """Create the source topic, and wait for it."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = self.guarded.admin(Side.SOURCE)
        admin.client.create_topics([NewTopic(self.topic, partitions, 1, config=settings)])[self.topic].result(30)
        eventually(lambda: self.topic in admin.metadata().topics)

    def acls(self, rows: Iterable[Row], user: str | Mapping[Side, str]) -> dict[Side, list[AclBinding]]:
        """ACLs that grant exactly these rows, on the names of this world."""
        flow = self.flow()
        names = {On.TOPICS: self.topic, On.REMOTE_TOPICS: self.remote, On.GROUPS: self.group}
        found: dict[Side, list[AclBinding]] = {side: [] for side in Side}
        for row in rows:
            who = user if isinstance(user, str) else user[row.side]
            kind = KINDS[row.on.kind]
            name = "kafka-cluster" if row.on is On.CLUSTER else names.get(row.on) or str(name_of(flow, row.on))
            acl = AclBinding(kind, name, "LITERAL", f"User:{who}", "*", row.operation.value, "ALLOW")
            if acl not in found[row.side]:
                found[row.side].append(acl)
        return found


def connected(cluster: Cluster, **more: object) -> dict[str, object]:
    """Settings of an ordinary client of confluent-kafka; `more` with `_` for `.`."""
    return for_confluent(cluster, role="consumer", extra={key.replace("_", "."): value for key, value in more.items()})


def _acls(admin: Admin) -> set[AclBinding]:
    anything = AclBindingFilter(ResourceType.ANY, None, "ANY", None, None, "ANY", "ANY")  # type: ignore[arg-type]
    try:
        return set(admin.client.describe_acls(anything).result(30))
    except KafkaException:
        return set()
