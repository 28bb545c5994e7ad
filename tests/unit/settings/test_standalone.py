"""Connectors and a worker as properties files, as for connect-standalone, are read like Connect's JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import load
from mirrorless.settings.load import understand

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "org.apache.kafka.connect.mirror."
ENDS = """
source.cluster.alias = A
target.cluster.alias = B
source.cluster.bootstrap.servers = a:1
target.cluster.bootstrap.servers = b:1
"""
SOURCE = f"""
name = orders
connector.class = {PACKAGE}MirrorSourceConnector
topics = orders, pay.*
tasks.max = 4
source.cluster.security.protocol = SSL
source.cluster.ssl.truststore.password = swordfish
source.consumer.client.id = reader
{ENDS}"""
CHECKPOINT = f"name = offsets\nconnector.class = {PACKAGE}MirrorCheckpointConnector\ngroups = billing\n{ENDS}"
WORKER = """
bootstrap.servers = b:1
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.file.filename = /tmp/connect.offsets
producer.client.id = writer
plugin.path = /opt/connect
security.protocol = SSL
"""
DISTRIBUTED = WORKER.replace("offset.storage.file.filename = /tmp/connect.offsets", "offset.storage.topic = offsets")


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"{number}.properties" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize(
    "texts", [(WORKER, SOURCE, CHECKPOINT), (CHECKPOINT, SOURCE, WORKER)], ids=["as given to Connect", "in any order"]
)
def test_a_worker_and_its_connectors(tmp_path: Path, texts: tuple[str, ...]) -> None:
    paths = write(tmp_path, *texts)
    settings = load(*paths)
    flow = settings.flow("A->B")

    assert (flow.topics, flow.groups, flow.tasks_max) == (("orders", "pay.*"), ("billing",), 4)
    assert (flow.connector_name, flow.emit_heartbeats_enabled) == ("orders", False)
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == ("a:1", "b:1")
    assert flow.source.client["security.protocol"] == "SSL"
    assert flow.source.client["consumer.client.id"] == "reader"
    assert dict(flow.target.client) == {"producer.client.id": "writer"}
    worker = paths[texts.index(WORKER)]
    assert (
        f"{worker}:5: offset.storage.file.filename=/tmp/connect.offsets: progress in a file is not read"
        in "\n".join(settings.warnings)
    )
    assert [note.partition("=")[0] for note in settings.notes] == [
        f"{worker}:{line}: B.{key}" for line, key in ((3, "key.converter"), (4, "value.converter"), (7, "plugin.path"))
    ]


def test_a_connector_alone(tmp_path: Path) -> None:
    (path,) = write(tmp_path, SOURCE)
    understood = understand(path)

    assert understood.settings is not None
    assert understood.settings.flow("A->B").topics == ("orders", "pay.*")
    found = {one.key: one for one in understood.flows["A->B"]}
    assert (found["topics"].origin, found["topics"].written) == (f"{path}:4", "topics")
    (end,) = (one for one in understood.clients["A->B", "source"] if one.key == "security.protocol")
    assert (end.origin, end.written) == (f"{path}:6", "source.cluster.security.protocol")


def test_a_connector_in_json_with_a_distributed_worker(tmp_path: Path) -> None:
    (worker,) = write(tmp_path, DISTRIBUTED)
    lines = [line.partition(" = ") for line in SOURCE.split("\n") if line]
    source = tmp_path / "source.json"
    source.write_text(json.dumps({key: value for key, _, value in lines}))
    settings = load(worker, source)

    assert settings.flow("A->B").offset_storage_topic == "offsets"
    assert settings.warnings == ()


def test_a_connector_without_the_target_s_brokers_has_the_worker_s(tmp_path: Path) -> None:
    settings = load(*write(tmp_path, WORKER, SOURCE.replace("target.cluster.bootstrap.servers = b:1", "")))
    target = settings.flow("A->B").target

    assert (target.bootstrap_servers, target.client["security.protocol"]) == ("b:1", "SSL")


def test_a_worker_of_another_cluster_is_reported(tmp_path: Path) -> None:
    paths = write(tmp_path, WORKER.replace("b:1", "c:1"), SOURCE)

    line = (
        f"{paths[0]}:2: bootstrap.servers=c:1: the worker writes to these brokers, but orders has "
        "target.cluster.bootstrap.servers=b:1, which is used"
    )
    assert line in load(*paths).warnings


def test_an_error_has_file_and_key(tmp_path: Path) -> None:
    (path,) = write(tmp_path, SOURCE.replace("tasks.max = 4", "tasks.max = many"))
    with pytest.raises(ConfigurationError) as raised:
        load(path)

    assert (
        str(raised.value)
        == f"{path}:{raised.value.line}: tasks.max=many: must be a whole number in the range of 32 bits"
    )
    assert "swordfish" not in repr(understand(path))


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ((WORKER, WORKER, SOURCE), "1.properties: several files may only be connectors"),
        ((SOURCE, "clusters = A, B\n"), "1.properties: several files may only be connectors"),
        ((WORKER, "connector.class = io.Jdbc\n"), "the file has no connector of MirrorMaker 2; supported: "),
        ((SOURCE + "enabled = false\n",), "enabled"),
        ((CHECKPOINT + "enabled = false\n",), "the file has no connector of MirrorMaker 2; supported: "),
    ],
)
def test_files_that_cannot_be_read_together(tmp_path: Path, texts: tuple[str, ...], line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(*write(tmp_path, *texts))

    assert line in str(raised.value)
