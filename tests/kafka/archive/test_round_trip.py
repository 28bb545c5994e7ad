"""A cluster is archived, and read again from the archive by clients that know nothing of it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

from click.testing import CliRunner

from mirrorless.archive.broker import ArchiveBroker
from mirrorless.archive.object_store import open_store
from mirrorless.archive.upkeep import Proof, faults
from mirrorless.archive.view import ArchiveView
from mirrorless.cli import root
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.configs import topic_configs
from mirrorless.settings.archives import SERVED_VARIABLE
from tests.support.identical import records_at
from tests.support.moving import plain
from tests.support.offsets import commit, committed
from tests.support.secured import eventually
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
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

    done = CliRunner().invoke(root, ["run", file, "--available-now"])
    assert (done.exit_code, '"note": "3 objects, 0.1 MB' in done.output) == (0, True), done.output
    assert invoke("write", file, "--available-now") == (0, "primary->vault: 0 objects, 0.0 MB, 1 seconds of state\n")
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


def test_two_writers_one_of_them_suspended_make_one_history(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path
) -> None:
    """And a third one is killed: objects of one name are created once, and no record is missing between them."""
    world = World(source, target, tmp_path)
    topic = world.topic(PARTITIONS)
    file = configure(world, f"{tmp_path}/vault")
    with Path(file).open("a") as more:
        more.write("\nmirrorless.archive.object.seconds = 0.5\n")
    fill(source, topic, [b"%d" % number for number in range(300)], partitions=PARTITIONS)
    command = [sys.executable, "-m", "mirrorless", "archive", "write", file]
    writers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(3)]
    try:
        eventually(lambda: len(list((tmp_path / "vault").rglob("*.log"))) >= PARTITIONS)
        writers[0].send_signal(signal.SIGSTOP)
        for number in range(12):
            fill(source, topic, [b"%d" % number] * 300, partitions=PARTITIONS)
            time.sleep(0.3)
        writers[1].kill()
        writers[0].send_signal(signal.SIGCONT)
        for number in range(12):
            fill(source, topic, [b"%d" % number] * 300, partitions=PARTITIONS)
            time.sleep(0.3)
    finally:
        for one in writers:
            one.send_signal(signal.SIGCONT)
            one.terminate()
        for one in writers:
            one.wait(60)
    status, said = invoke("write", file, "--available-now")
    assert status == 0, said
    store = open_store(f"file://{tmp_path}/vault")
    assert list(faults(store, Proof())) == []
    view = ArchiveView(store)
    assert view.lacking == {}
    with ArchiveBroker(view) as broker:
        archived = SimpleNamespace(bootstrap_servers=broker.address)
        assert records_at(archived, topic) == records_at(source, topic)  # type: ignore[arg-type]
    assert len(list((tmp_path / "vault").rglob("*.log"))) > 5 * PARTITIONS
