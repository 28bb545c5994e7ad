"""A password or certificates that are replaced while `mirrorless run` copies: it continues with the new ones."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.kafka.security.conftest import SCRAM, USER, USER_PASSWORD
from tests.kafka.security.test_secure_copy import secure_world
from tests.support.certificates import PASSWORD, Authority
from tests.support.processes import Mirrorless
from tests.support.world import fill

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster
    from tests.kafka.security.conftest import Secured
    from tests.support.world import World

REFUSED = "Failed authentication"
SOON_S = 15.0
"""A second to see the files, and what a new plan and new connections take on a busy machine."""


def change_password(cluster: EmbeddedCluster, password: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    changed = UserScramCredentialUpsertion(USER, info, password.encode())
    admin.alter_user_scram_credentials([changed])[USER].result(30)


def wait_for(world: World, topic: str, records: int, *, seconds: float = 90) -> float:
    """Wait for so many records of the remote topic; returns how long that took."""
    began = time.monotonic()
    consumer = Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": "test"})
    try:
        while time.monotonic() - began < seconds:
            try:
                if consumer.get_watermark_offsets(TopicPartition(world.remote(topic), 0), timeout=5)[1] >= records:
                    return time.monotonic() - began
            except KafkaException:
                pass
            time.sleep(0.2)
    finally:
        consumer.close()
    raise AssertionError(f"{records} records are not copied after {seconds} s")


def troubles(run: Mirrorless, alias: str) -> list[str]:
    return [line["error"] for line in run.lines("Trouble") if line["flow"] == f"cluster {alias}"]


def restart(cluster: EmbeddedCluster) -> None:
    cluster.stop_broker(1)
    cluster.start_broker(1)


def test_a_password_that_is_changed_is_used(secured: Secured, tmp_path: Path) -> None:
    secret = tmp_path / "secret.properties"
    secret.write_text("password=old\n")
    change_password(secured.source, "old")
    login = f'{SCRAM} username="{USER}" password="${{file:{secret}:password}}";'
    source = secured.source_settings() | {"sasl.jaas.config": login}
    world = secure_world(secured, tmp_path, source, secured.target_settings())
    topic = world.topic()
    fill(secured.source, topic, [b"one"])
    log = secured.source.broker(1).log
    try:
        with Mirrorless(world.file) as run:
            wait_for(world, topic, 1)
            before = log.read_text().count(REFUSED)
            change_password(secured.source, "new")
            restart(secured.source)  # connections that are open stay open
            fill(secured.source, topic, [b"two"])
            until = time.monotonic() + 60
            while log.read_text().count(REFUSED) == before:
                assert time.monotonic() < until, "the login was not tried"
                time.sleep(0.2)
            secret.write_text("password=new\n")
            took_s = wait_for(world, topic, 2)
            assert took_s < SOON_S
            assert len(troubles(run, world.source_alias)) <= 2, "it was down, then it refused the login"
    finally:
        change_password(secured.source, USER_PASSWORD)


@pytest.mark.nightly
def test_certificates_that_are_replaced_in_their_files_are_used(secured: Secured, tmp_path: Path) -> None:
    client, trust = tmp_path / "client.p12", tmp_path / "ca.pem"
    shutil.copy(secured.client, client)
    shutil.copy(secured.authority.certificate, trust)
    target = {
        "bootstrap.servers": secured.target.secure_servers("mtls"),
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": f"${{directory:{tmp_path}:ca.pem}}",
        "ssl.keystore.location": str(client),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": PASSWORD,
    }
    world = secure_world(secured, tmp_path, secured.source_settings(), target)
    topic = world.topic()
    fill(secured.source, topic, [b"one"])
    other = Authority.make(tmp_path / "other")
    of_broker = secured.authority.folder / "broker.p12", secured.authority.trust_store()
    kept = [path.read_bytes() for path in of_broker]
    try:
        with Mirrorless(world.file) as run:
            wait_for(world, topic, 1)
            shutil.copy(other.issue("broker"), of_broker[0])
            shutil.copy(other.trust_store(), of_broker[1])
            renewed = other.issue("client")
            restart(secured.target)
            fill(secured.source, topic, [b"two"])
            time.sleep(10)
            shutil.copy(renewed, client)
            shutil.copy(other.certificate, trust)
            took_s = wait_for(world, topic, 2)
            assert took_s < SOON_S
            assert len(troubles(run, world.target_alias)) <= 2
    finally:
        for path, content in zip(of_broker, kept, strict=True):
            path.write_bytes(content)
        restart(secured.target)
