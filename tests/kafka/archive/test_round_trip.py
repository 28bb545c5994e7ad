"""A cluster is archived, and read again from the archive by clients that know nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.settings.archives import SERVED_VARIABLE
from tests.support.identical import records_at
from tests.support.moving import plain
from tests.support.offsets import commit, committed
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from mirrorless.local.embedded_kafka import EmbeddedCluster

PARTITIONS = 3


def transactions(cluster: EmbeddedCluster, topic: str, count: int) -> None:
    """Alternately commit and abort one record in each partition."""
    client = producer(cluster, **{"transactional.id": f"{topic}-tx"})
    client.init_transactions(60)
    for number in range(count):
        client.begin_transaction()
        for partition in range(PARTITIONS):
            client.produce(topic, key=b"%d" % partition, value=b"%d" % number, partition=partition)
        client.flush(30)
        if number % 2:
            client.abort_transaction(60)
        else:
            client.commit_transaction(60)


def configure(world: World, vault: str) -> str:
    """A flow into an archive, and one from it."""
    made = world.write_settings(
        **{"mirrorless.offsets": "identical", "replication.policy.class": "IdentityReplicationPolicy"}
    )
    text = made.read_text().replace(world.flow, "vault->restored").replace(f"{world.target_alias}.", "restored.")
    text = text.replace(f"clusters = {world.source_alias}, {world.target_alias}", "clusters = primary, vault, restored")
    lines = [
        text.replace(f"{world.source_alias}.", "primary."),
        f"vault.archive = file://{vault}",
        "primary->vault.enabled = true",
        f"primary->vault.topics = {', '.join(world.topics)}",
        f"groups = {world.topics[0]}.*",
    ]
    made.write_text("\n".join(lines))
    return str(made)


def invoke(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(root, ["archive", *words])
    return done.exit_code, done.output + (str(done.exception) if done.exception else "")


def test_a_cluster_is_restored_with_its_offsets_and_groups(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SERVED_VARIABLE, "")  # and forgotten at the end
    world = World(source, target, tmp_path)
    topic = world.topic(PARTITIONS, retention_ms="123456789")
    fill(source, topic, [b"%d" % number for number in range(3_000)], partitions=PARTITIONS)
    transactions(source, topic, 10)
    commit(source, f"{topic}-group", {(topic, 1): 40})
    file = configure(world, f"{tmp_path}/vault")

    assert invoke("write", file, "--available-now") == (0, "primary->vault: 3 objects, 0.1 MB, 1 seconds of state\n")
    before = records_at(source, topic)
    fill(source, topic, [b"later"] * 30, partitions=PARTITIONS)
    status, said = invoke("verify", file)
    assert (status, "vault: 0 faults in 3 objects" in said) == (0, True), said
    status, said = invoke("restore", file)
    assert status == 0, said
    assert records_at(target, topic) == before
    assert committed(target, f"{topic}-group") == {(topic, 1): 40}
    restored = topic_configs(Admin(plain(target)), [topic])[0][topic]
    assert restored["retention.ms"].value == "123456789"
