"""One difference of every kind at once: plan, verify and drill name each, and apply moves what is synced."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from confluent_kafka.admin import (
    AclBindingFilter,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from mirrorless.cli import root
from mirrorless.clusters.acls import Acl, AclResource, create_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.quotas import QuotaEntity, quotas_of, set_quotas
from mirrorless.kafka_python.messages import AlterClientQuotasRequest
from mirrorless.metadata.kinds import KINDS
from mirrorless.offsets.checkpoint_pass import Checkpoints
from mirrorless.settings import Cluster
from tests.support.offsets import commit, flow_of
from tests.support.secured import eventually
from tests.support.world import delete, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.support.world import World


def plain(cluster: EmbeddedCluster) -> Cluster:
    return Cluster(alias=cluster.name, bootstrap_servers=cluster.bootstrap_servers)


@cache
def _client(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def client(cluster: EmbeddedCluster) -> AdminClient:
    """A client that lives on: a request of one that is closed has no answer."""
    return _client(cluster.bootstrap_servers)


def set_configs(cluster: EmbeddedCluster, kind: ResourceType, name: str, **values: str | None) -> None:
    changes = [
        ConfigEntry(
            key.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for key, value in values.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=changes)
    client(cluster).incremental_alter_configs([resource])[resource].result()


def grant(cluster: EmbeddedCluster, resource: AclResource, *acls: Acl) -> None:
    assert set(create_acls(Admin(plain(cluster)), acls, resource).values()) == {None}


def run(*words: str) -> Any:  # noqa: ANN401 -- a document in JSON
    done = CliRunner().invoke(root, [*words, "--json"])
    assert done.stdout, done.output
    return json.loads(done.stdout)


def planned(world: World) -> Any:  # noqa: ANN401 -- as above
    return run("plan", str(world.file))["flows"][world.flow]


@contextmanager
def planted(world: World, orders: str, user: str) -> Iterator[None]:
    """One difference of every kind on the source; what concerns whole clusters is removed again."""
    source = world.source
    one = Acl(topic=orders, pattern="LITERAL", principal=f"User:{user}", host="*", operation="READ", permission="ALLOW")
    writes = replace(one, operation="WRITE")
    prefixed = replace(one, topic=orders[:-1], pattern="PREFIXED", operation="DESCRIBE_CONFIGS")
    grant(source, AclResource.TOPIC, one, writes, prefixed)
    grant(source, AclResource.GROUP, replace(one, topic=f"{orders}-a"))
    grant(source, AclResource.CLUSTER, replace(one, topic="kafka-cluster", operation="IDEMPOTENT_WRITE"))
    quota = QuotaEntity((("user", user),))
    assert set_quotas(plain(source), [(quota, {"producer_byte_rate": 1e9})]) == [None]
    scram = UserScramCredentialUpsertion(user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"of-tests")
    client(source).alter_user_scram_credentials([scram])[user].result()
    set_configs(source, ResourceType.TOPIC, orders, retention_ms="123456789")
    client(source).create_partitions([NewPartitions(orders, 2)])[orders].result()
    broker = str(min(client(world.target).list_topics(timeout=30).brokers))
    set_configs(world.target, ResourceType.BROKER, broker, message_max_bytes="2000000")
    try:
        yield
    finally:
        set_configs(world.target, ResourceType.BROKER, broker, message_max_bytes=None)
        gone = UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512)
        client(source).alter_user_scram_credentials([gone])[user].result()
        for cluster in (world.source, world.target):
            ours = AclBindingFilter(ResourceType.ANY, None, "ANY", f"User:{user}", None, "ANY", "ANY")  # type: ignore[arg-type]
            client(cluster).delete_acls([ours])[ours].result()
            _without_quota(cluster, quota)


def _without_quota(cluster: EmbeddedCluster, entity: QuotaEntity) -> None:
    entry = AlterClientQuotasRequest.EntryData
    who = [entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts]
    ops = [entry.OpData(key="producer_byte_rate", value=0.0, remove=True)]
    with closing(admin_client(plain(cluster))) as admin:
        admin.ask_any_broker(AlterClientQuotasRequest(entries=[entry(entity=who, ops=ops)], validate_only=False))


def test_plan_verify_and_drill_name_a_difference_of_every_kind(world: World) -> None:
    orders, gone = world.topic(1), world.topic(1)
    user = f"app-{orders}"
    fill(world.source, orders, [b"%d" % number for number in range(100)])
    synced = [kind.name for kind in KINDS if kind.apply is not None and not kind.deletes]
    flow = flow_of(world, groups=f"{orders}.*", **{"sync.group.offsets.enabled": "true"})
    world.copy_to_the_end()
    commit(world.source, f"{orders}-a", {(orders, 0): 31})
    with closing(Checkpoints(flow)) as passes:
        passes.emit()
    commit(world.target, f"{orders}-a", {(world.remote(orders), 0): 60})
    missing = world.topic(1)
    delete(world.source, gone)
    with planted(world, orders, user):
        eventually(lambda: {one["kind"] for one in planned(world)["not_moved"]} == {kind.name for kind in KINDS})

        plan = planned(world)
        assert {one["action"] for one in plan["actions"]} == {"CreateTopic", "GrowTopic", "AlterConfigs", "AddAcl"}

        flow_of(world, **{"mirrorless.sync.kinds": ", ".join(synced)})
        plan = planned(world)
        assert {one.get("kind") for one in plan["actions"]} == {None, *synced}
        assert {one["kind"] for one in plan["not_moved"]} == {kind.name for kind in KINDS} - set(synced)

        (verified,) = run("verify", str(world.file), "--with", "python")["flows"]
        texts = [one["text"] for one in verified["differences"]]
        for named in ("topic", "partitions", "config", "ACL", "group offset", *synced):
            assert any(text.startswith(named) for text in texts), (named, texts)
        for kind in KINDS:
            if kind.name not in synced:
                assert any(note.startswith(f"not moved: {kind.name}: ") for note in verified["notes"]), kind.name

        drilled = run("drill", str(world.file), "--to", world.target_alias)["flows"][world.flow]
        checks = {one["check"]: one for one in drilled["checks"]}
        assert {name for name, one in checks.items() if one["status"] == "failed"} >= {
            "topics and partitions",
            "configs",
            "topic ACLs",
            "committed on the target",
            "rights of principals",
            *synced,
        }
        assert {kind.name: checks[kind.name]["status"] for kind in KINDS if kind.name not in synced} == {
            kind.name: "warning" for kind in KINDS if kind.name not in synced
        }

        applied = run("apply", str(world.file))["flows"][world.flow]
        assert [one["error"] for one in applied["actions"]] == [None] * len(applied["actions"])
        eventually(lambda: not any(one.get("kind") for one in planned(world)["actions"]))
        now = quotas_of(plain(world.target))
        assert isinstance(now, dict)
        assert now[QuotaEntity((("user", user),))] == {"producer_byte_rate": 1e9}
        assert world.remote(missing) in client(world.target).list_topics(timeout=30).topics
