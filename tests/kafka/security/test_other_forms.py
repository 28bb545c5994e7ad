"""Files that run MirrorMaker 2 elsewhere run here: Strimzi's resources, a standalone worker, and Connect's JSON.

Each logs in to the source with SCRAM over TLS and to the target with a certificate, in its own way of keeping secrets.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from mirrorless.client import MirrorClient
from mirrorless.settings import Cluster
from tests.kafka.security.conftest import SCRAM
from tests.support.processes import Mirrorless
from tests.support.world import World, fill, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.kafka.security.conftest import Secured

USER: Final = "mirror-maker"
PASSWORD: Final = "a-password-of-no-one"  # noqa: S105 -- of brokers that live for one test
PACKAGE: Final = "org.apache.kafka.connect.mirror."
BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
RECORDS: Final = 300


@dataclass(frozen=True)
class Form:
    """A configuration: its files, the name of the connector that copies, and Connect's offsets topic."""

    files: list[Path]
    connector: str
    offsets_topic: str
    heartbeats: bool = False


@pytest.fixture
def world(secured: Secured, tmp_path: Path) -> World:
    admin = AdminClient({"bootstrap.servers": secured.source.bootstrap_servers})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
    admin.alter_user_scram_credentials([user])[USER].result(30)
    return World(secured.source, secured.target, tmp_path)


def strimzi(world: World, secured: Secured) -> Form:
    """A KafkaMirrorMaker2 in Strimzi's `v1`, with its Secrets in another file."""
    pem = secured.authority.as_pem(secured.client).read_text()
    certificates = "".join(_blocks(pem, "CERTIFICATE"))
    (key,) = _blocks(pem, "PRIVATE KEY")
    values = {
        "mirror-on-primary": {"password": PASSWORD},
        "cluster-ca": {"ca.crt": secured.authority.certificate.read_text()},
        "mirror-user": {"user.crt": certificates, "user.key": key},
    }
    secrets = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
        }
        for name, data in values.items()
    ]
    tls = "tls: {trustedCertificates: [{secretName: cluster-ca, pattern: '*.crt'}]}"
    resource = f"""
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata: {{name: mirror}}
spec:
  version: 4.1.0
  replicas: 1
  target:
    alias: {world.target_alias}
    bootstrapServers: {secured.target.secure_servers("mtls")}
    groupId: {world.target_alias}-group
    configStorageTopic: {world.target_alias}-configs
    offsetStorageTopic: {world.target_alias}-offsets
    statusStorageTopic: {world.target_alias}-status
    config: {{offset.storage.replication.factor: 1}}
    {tls}
    authentication:
      type: tls
      certificateAndKey: {{secretName: mirror-user, certificate: user.crt, key: user.key}}
  mirrors:
    - source:
        alias: {world.source_alias}
        bootstrapServers: {secured.source.secure_servers("scram")}
        {tls}
        authentication:
          type: scram-sha-512
          username: {USER}
          passwordSecret: {{secretName: mirror-on-primary, password: password}}
      sourceConnector:
        tasksMax: 2
        config:
          replication.factor: -1
          offset-syncs.topic.replication.factor: 1
          heartbeats.replication.enabled: false
      checkpointConnector:
        config: {{checkpoints.topic.replication.factor: 1, sync.group.offsets.enabled: true}}
      topicsPattern: "{world.topics[0]}"
      groupsPattern: "{world.topics[0]}-.*"
"""
    files = [world.folder / "mirror.yaml", world.folder / "secrets.yaml"]
    files[0].write_text(resource)
    files[1].write_text("---\n".join(json.dumps(one) + "\n" for one in secrets))
    name = f"{world.flow}.MirrorSourceConnector"
    return Form(files, connector=name, offsets_topic=f"{world.target_alias}-offsets")


def standalone(world: World, secured: Secured) -> Form:
    """The files of connect-standalone: a worker, which keeps its progress in a file, and two connectors."""
    secret = world.folder / "secret.properties"
    secret.write_text(f"password = {PASSWORD}\n")
    source, checkpoints, _ = _connectors(world, secured, password=f"${{file:{secret}:password}}")
    worker = {
        "bootstrap.servers": secured.target.secure_servers("mtls"),
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        "offset.storage.file.filename": str(world.folder / "connect.offsets"),
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        **secured.target_settings(),
        **{f"producer.{key}": value for key, value in secured.target_settings().items() if key != "bootstrap.servers"},
    }
    files = []
    for number, settings in enumerate((worker, source, checkpoints)):
        files.append(world.folder / f"{number}.properties")
        files[-1].write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return Form(files, connector=source["name"], offsets_topic=world.progress_topic)


def connect_json(world: World, secured: Secured) -> Form:
    """Connect's answer to `GET /connectors?expand=info&expand=status`, with the worker's offsets topic."""
    topic = f"{world.target_alias}-connect-offsets"
    found = {}
    for config in _connectors(world, secured, password=PASSWORD):
        config |= {"offset.storage.topic": topic, "offset.storage.replication.factor": "1"}
        status = {"name": config["name"], "connector": {"state": "STOPPED"}, "tasks": []}
        found[config["name"]] = {"info": {"name": config["name"], "config": config, "tasks": []}, "status": status}
    file = world.folder / "connectors.json"
    file.write_text(json.dumps(found))
    return Form([file], connector=f"{world.topics[0]} source", offsets_topic=topic, heartbeats=True)


def _connectors(world: World, secured: Secured, *, password: str) -> list[dict[str, str]]:
    login = f'{SCRAM} username="{USER}" password="{password}";'
    source = secured.source_settings() | {"sasl.jaas.config": login}
    ends = {
        "source.cluster.alias": world.source_alias,
        "target.cluster.alias": world.target_alias,
        **{f"source.cluster.{key}": value for key, value in source.items()},
        **{f"target.cluster.{key}": value for key, value in secured.target_settings().items()},
    }
    own = {
        "MirrorSourceConnector": {
            "topics": world.topics[0],
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            "tasks.max": "2",
        },
        "MirrorCheckpointConnector": {
            "groups": f"{world.topics[0]}-.*",
            "checkpoints.topic.replication.factor": "1",
            "sync.group.offsets.enabled": "true",
        },
        "MirrorHeartbeatConnector": {"heartbeats.topic.replication.factor": "1"},
    }
    names = [f"{world.topics[0]} {one}" for one in ("source", "checkpoints", "heartbeats")]
    return [
        {"name": name, "connector.class": PACKAGE + kind, **ends, **settings}
        for name, (kind, settings) in zip(names, own.items(), strict=True)
    ]


def _blocks(pem: str, kind: str) -> list[str]:
    return re.findall(f"-----BEGIN {kind}-----\n.*?-----END {kind}-----\n", pem, re.DOTALL)


@pytest.mark.parametrize("form", [strimzi, standalone, connect_json])
def test_what_runs_elsewhere_runs_here(world: World, secured: Secured, form: Callable[[World, Secured], Form]) -> None:
    topic = world.topic(partitions=2)
    group = f"{topic}-billing"
    fill(world.source, topic, (b"%d" % number for number in range(RECORDS)), partitions=2)
    commit(world, topic, group, offset=40)
    made = form(world, secured)
    before = topics_of(world.target)

    for copied in (RECORDS, RECORDS + 20):
        with Mirrorless(*made.files, "--available-now", "--engine", "functions") as run:
            assert run.wait() == 0, run.text()
        assert PASSWORD not in run.text()
        assert world.assert_equal(topic) == copied
        fill(world.source, topic, [b"later"] * 20, partitions=2)

    names = {world.remote(topic), made.offsets_topic, f"{world.source_alias}.checkpoints.internal"}
    found = topics_of(world.target) - before
    assert names <= found
    # Besides these, only what other processes of Mirrorless may share.
    assert found - names <= {"heartbeats", f"mm2-configs.{world.source_alias}.internal", "__consumer_offsets"}
    assert ("heartbeats" in topics_of(world.target)) or not made.heartbeats
    assert f"mm2-offset-syncs.{world.target_alias}.internal" in topics_of(world.source)
    keys = {
        (name, place["partition"])
        for records in read(world.target, made.offsets_topic).values()
        for name, place in (json.loads(record.key or b"") for record in records)
        if "partition" in place
    }
    assert {(made.connector, number) for number in range(2)} <= keys
    with MirrorClient(plain(world)) as client:
        assert client.translate_offsets(world.source_alias, group) == {(world.remote(topic), 0): (40, "")}


def commit(world: World, topic: str, group: str, *, offset: int) -> None:
    client = Consumer({"bootstrap.servers": world.source.bootstrap_servers, "group.id": group})
    client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    client.close()


def topics_of(cluster: EmbeddedCluster) -> set[str]:
    return set(AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60).topics)


def plain(world: World) -> Cluster:
    return Cluster(alias=world.target_alias, bootstrap_servers=world.target.bootstrap_servers)
