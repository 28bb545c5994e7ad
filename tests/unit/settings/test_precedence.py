"""Client settings of a flow's ends come from where MirrorMaker 2 takes them (section 2.5 of the reference)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters.client_settings import for_confluent, for_kafka_python
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.clusters.client_settings import Role

BASE = """
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
"""


def client_id(folder: Path, text: str, *, side: str, role: Role) -> str:
    path = folder / "mm2.properties"
    path.write_text(BASE + text)
    flow = load(path).flow("A->B")
    return str(for_confluent(flow.source if side == "source" else flow.target, role=role)["client.id"])


@pytest.mark.parametrize(
    ("lines", "side", "role"),
    [
        # the flow's own beats the cluster's, which beats what the flow says of all its consumers
        (["A->B.source.consumer.", "A.consumer.", "A->B.consumer."], "source", "consumer"),
        (["A.consumer.", "A->B.consumer."], "source", "consumer"),
        (["A->B.consumer."], "source", "consumer"),
        (["A->B.source.admin.", "A.admin.", "A->B.admin."], "source", "admin"),
        (["A.producer.", "A->B.producer."], "source", "producer"),
        (["A->B.target.consumer.", "B.consumer.", "A->B.consumer."], "target", "consumer"),
        (["A->B.target.admin.", "B.admin."], "target", "admin"),
        # what writes the copy is the worker's producer
        (
            ["A->B.producer.override.", "B.producer.", "A->B.target.producer.", "A->B.producer."],
            "target",
            "producer",
        ),
        (["B.producer.", "A->B.target.producer.", "A->B.producer."], "target", "producer"),
        (["B.", "A->B.target.producer.", "A->B.producer."], "target", "producer"),
        # other ends, other roles, other flows
        (
            ["A.", "B.consumer.", "A->B.target.consumer.", "A.producer.", "B->A.source.consumer."],
            "source",
            "consumer",
        ),
    ],
)
def test_the_client_id(tmp_path: Path, lines: list[str], side: str, role: Role) -> None:
    for order in (lines, lines[::-1]):
        text = "".join(f"{prefix}client.id = {lines.index(prefix)}\n" for prefix in order)
        assert client_id(tmp_path, text, side=side, role=role) == "0"


@pytest.mark.parametrize(
    ("key", "rack"),
    [
        ("A.client.rack", "az1"),
        ("A.consumer.client.rack", "az1"),
        ("A->B.consumer.client.rack", "az1"),
        ("A->B.source.consumer.client.rack", "az1"),
        ("A.admin.client.rack", None),
        ("B.client.rack", None),
        ("B.consumer.client.rack", None),
        ("A->B.target.consumer.client.rack", None),
    ],
)
def test_the_rack_of_the_copy_is_that_of_the_sources_consumers(tmp_path: Path, key: str, rack: str | None) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + f"{key} = az1\n")
    flow = load(path).flow("A->B")
    assert for_kafka_python(flow.source, role="consumer").get("client_rack") == rack


def test_a_setting_of_the_flow_beats_one_for_all_flows_and_one_of_the_worker_that_of_its_cluster(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mm2.properties"
    for lines in (["A->B.tasks.max = 3", "tasks.max = 5"], ["tasks.max = 5", "A->B.tasks.max = 3"]):
        path.write_text("\n".join([BASE, *lines]))
        assert load(path).flow("A->B").tasks_max == 3
    path.write_text(f"{BASE}B.offset.storage.topic = of-b\n")
    assert load(path).flow("A->B").offset_storage_topic == "of-b"
    path.write_text(f"{BASE}B.offset.storage.topic = of-b\noffset.storage.topic = of-all\n")
    assert load(path).flow("A->B").offset_storage_topic == "of-all"


def test_other_flows_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + "B->A.enabled = true\nA->B.source.consumer.client.id = only\n")
    settings = load(path)

    assert for_confluent(settings.flow("A->B").source, role="consumer")["client.id"] == "only"
    assert for_confluent(settings.flow("B->A").target, role="consumer")["client.id"] == "mirrorless"
    assert for_confluent(settings.clusters[0], role="consumer")["client.id"] == "mirrorless"


@pytest.mark.parametrize(
    ("text", "protocols"),
    [
        # in the order consumer, admin
        ("security.protocol = SSL", ("SSL", "SSL")),
        ("security.protocol = SSL\nA.security.protocol = PLAINTEXT", ("PLAINTEXT", "PLAINTEXT")),
        ("A.security.protocol = SSL\nA.consumer.security.protocol = PLAINTEXT", ("PLAINTEXT", "SSL")),
        ("A->B.source.cluster.security.protocol = SSL", ("SSL", "SSL")),
        # the cluster's counts for each role, and a role beats `source.cluster.`
        ("A.security.protocol = SSL\nA->B.source.cluster.security.protocol = PLAINTEXT", ("SSL", "SSL")),
        ("security.protocol = SSL\nA->B.consumer.security.protocol = PLAINTEXT", ("SSL", "SSL")),
        ("security.protocol = SSL\nA->B.source.consumer.security.protocol = PLAINTEXT", ("PLAINTEXT", "SSL")),
    ],
)
def test_security(tmp_path: Path, text: str, protocols: tuple[str, str]) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + text)
    source = load(path).flow("A->B").source

    told = tuple(for_confluent(source, role=role)["security.protocol"] for role in ("consumer", "admin"))
    assert told == protocols


def test_a_flow_may_say_where_its_ends_are(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "clusters = A, B\nA->B.enabled = true\n"
        "A->B.source.cluster.bootstrap.servers = a:1\nA->B.target.cluster.bootstrap.servers = b:1\n"
    )
    settings = load(path)

    assert [cluster.bootstrap_servers for cluster in settings.clusters] == ["a:1", "b:1"]


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("", "earliest"),
        ("A.consumer.auto.offset.reset = latest", "latest"),
        ("A->B.consumer.auto.offset.reset = latest", "latest"),
        ("A->B.consumer.auto.offset.reset = latest\nA.consumer.auto.offset.reset = earliest", "earliest"),
        ("A->B.source.consumer.auto.offset.reset = latest\nA.consumer.auto.offset.reset = earliest", "latest"),
        ("B.consumer.auto.offset.reset = latest", "earliest"),
    ],
)
def test_where_partitions_begin(tmp_path: Path, text: str, reset: str) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + text)

    assert load(path).flow("A->B").auto_offset_reset == reset
