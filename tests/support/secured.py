"""The builder of a world with authorizers: flows between three clusters whose users need rights."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException
from confluent_kafka.admin import AclBinding, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest

from mirrorless.clusters.acls import Acl, NoAcls, create_acls, delete_acls, topic_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.settings import Cluster, Flow, load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

_numbers = itertools.count()
MIRROR = "mirror"
"""A user without rights."""
VIEWER = "viewer"
"""A user who may see ACLs."""


class Secured:
    """Flows whose aliases and topics no other test uses; `a`, `b` and `c` lead to clusters, as `alias` has them."""

    def __init__(self, clusters: Mapping[str, EmbeddedCluster], folder: Path) -> None:
        self._clusters = clusters
        self._folder = folder
        self._mark = f"n{next(_numbers):03}"
        self._admins: dict[str, Admin] = {}

    def alias(self, cluster: str) -> str:
        """The alias of a cluster in this test."""
        return f"{cluster}{self._mark}"

    def name(self, topic: str) -> str:
        """A topic's name in this test."""
        return f"{self._mark}-{topic}"

    def remote(self, topic: str, *hops: str) -> str:
        """The remote topic of `topic`, the last hop first."""
        return ".".join([*map(self.alias, hops), self.name(topic)])

    def cluster(self, cluster: str, user: str = "admin") -> Cluster:
        """A cluster's settings, as one of its users."""
        found = self._clusters[cluster]
        settings = found.client_settings(user)
        return Cluster(alias=self.alias(cluster), bootstrap_servers=found.bootstrap_servers, client=settings)

    def admin(self, cluster: str) -> Admin:
        """A client that may do everything; it lives as long as this, as what it was asked for may take a while."""
        if cluster not in self._admins:
            self._admins[cluster] = Admin(self.cluster(cluster))
        return self._admins[cluster]

    def file(self, *flows: tuple[str, str], users: Mapping[str, str] | None = None, **more: str) -> Path:
        """Write settings: flows by their clusters, the user for each cluster (`admin`), more keys with `_` for `.`."""
        names = dict.fromkeys(name for flow in flows for name in flow)
        lines = {"clusters": ", ".join(map(self.alias, names)), "replication.factor": "1"}
        for name in names:
            cluster = self.cluster(name, (users or {}).get(name, "admin"))
            lines[f"{cluster.alias}.bootstrap.servers"] = cluster.bootstrap_servers
            lines |= {f"{cluster.alias}.{key}": value for key, value in cluster.client.items()}
        lines |= {f"{self.alias(source)}->{self.alias(target)}.enabled": "true" for source, target in flows}
        lines |= {"heartbeats.replication.enabled": "false"}  # another test's topic of that name is on all clusters
        lines |= {"emit.offset-syncs.enabled": "false", "emit.checkpoints.enabled": "false"}
        lines |= {"topics": f"(.*\\\\.)?{self._mark}-.*", "offset.storage.replication.factor": "1"}
        lines |= {key.replace("_", "."): value for key, value in more.items()}
        path = self._folder / "mm2.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return path

    def flow(self, source: str, target: str, *, users: Mapping[str, str] | None = None, **more: str) -> Flow:
        """One flow, as its settings have it."""
        (found,) = load(self.file((source, target), users=users, **more)).flows
        return found

    def topic(self, cluster: str, topic: str, partitions: int = 1, **config: str) -> str:
        """Create a topic and wait for it; returns its name."""
        name = self.name(topic)
        self.make(cluster, name, partitions, **config)
        return name

    def make(self, cluster: str, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic of exactly this name and wait for it."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = self.admin(cluster)
        admin.client.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()
        eventually(lambda: name in admin.metadata().topics)
        eventually(lambda: name in topic_configs(admin, [name])[0])

    def remove(self, cluster: str, name: str) -> None:
        """Delete a topic and wait for it."""
        admin = self.admin(cluster)
        admin.client.delete_topics([name])[name].result()
        eventually(lambda: name not in admin.metadata().topics)

    def topics(self, cluster: str) -> dict[str, int]:
        """This test's topics on a cluster, with their partitions."""
        metadata = self.admin(cluster).metadata()
        return {name: len(one.partitions) for name, one in metadata.topics.items() if self._mark in name}

    def overrides(self, cluster: str, topic: str) -> dict[str, str | None]:
        """The configs that a topic has of its own."""
        found, _ = topic_configs(self.admin(cluster), [topic])
        return {name: one.value for name, one in found[topic].items() if one.origin == Origin.TOPIC}

    def set_config(self, cluster: str, topic: str, name: str, value: str | None) -> None:
        """Set a topic's config by hand, or with None delete it, and wait for it."""
        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        change = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        self.admin(cluster).client.incremental_alter_configs([resource])[resource].result()
        eventually(lambda: self.overrides(cluster, topic).get(name) == value)

    def grant(self, cluster: str, *acls: Acl) -> None:
        """Add ACLs and wait for them."""
        assert set(create_acls(self.admin(cluster), acls).values()) == {None}
        eventually(lambda: set(acls) <= self.acls(cluster))

    def let_see_acls(self, user: str) -> None:
        """Let a user describe the clusters themselves."""
        acl = AclBinding(ResourceType.BROKER, "kafka-cluster", "LITERAL", f"User:{user}", "*", "DESCRIBE", "ALLOW")
        for cluster in self._clusters:
            self.admin(cluster).client.create_acls([acl])[acl].result()
        eventually(lambda: not any(isinstance(topic_acls(self.cluster(one, user)), NoAcls) for one in self._clusters))

    def limit_changes(self, cluster: str, user: str, *, rate: float | None) -> None:
        """Set a user's quota of topics and partitions to create in a second (KIP-599), or with None remove it."""
        client = admin_client(self.cluster(cluster))
        entry = AlterClientQuotasRequest.EntryData
        who = entry.EntityData(entity_type="user", entity_name=user)
        limit = entry.OpData(key="controller_mutation_rate", value=rate or 0.0, remove=rate is None)
        request = AlterClientQuotasRequest(entries=[entry(entity=[who], ops=[limit])], validate_only=False)
        client.ask_any_broker(request)
        client.close()

    def revoke(self, cluster: str, *acls: Acl) -> None:
        """Remove ACLs and wait for it."""
        assert set(delete_acls(self.admin(cluster), acls).values()) == {None}
        eventually(lambda: not set(acls) & self.acls(cluster))

    def acls(self, cluster: str) -> frozenset[Acl]:
        """All topic ACLs of a cluster."""
        found = topic_acls(self.cluster(cluster))
        assert not isinstance(found, NoAcls)
        return found

    def acl(self, topic: str, operation: str, permission: str = "ALLOW", **more: str) -> Acl:
        """An ACL of a user of this test's own, on a topic of exactly this name."""
        own = {"principal": f"User:{self._mark}", "host": "*", "pattern": "LITERAL"}
        return Acl(topic=topic, operation=operation, permission=permission, **(own | more))


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until a broker knows what the controller was told."""
    until = time.monotonic() + 120
    while True:
        try:
            if holds():
                return
        except KafkaException:
            pass
        assert time.monotonic() < until, "did not happen in 30 s"
        time.sleep(0.05)
