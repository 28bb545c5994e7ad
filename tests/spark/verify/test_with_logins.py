"""Clusters whose clients have to log in: Spark reads them with the settings of the file, and ACLs are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from mirrorless.clusters.acls import Acl, create_acls
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.topics import create_topics
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from mirrorless.settings import load
from mirrorless.verify.comparison import ComparisonTerms, verify_flow
from mirrorless.verify.findings import DifferenceKind
from tests.support.metadata import discover_topics
from tests.support.planted import BEGAN_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from mirrorless.settings import Cluster, Flow


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    specs = [ClusterSpec(name=name, users={"admin": f"{name}-secret"}) for name in ("a", "b")]
    with start_clusters(specs) as clusters:
        lines = ["clusters = a, b", "a->b.enabled = true", "a->b.topics = orders", "replication.factor = 1"]
        lines += ["heartbeats.replication.enabled = false", "offset.storage.replication.factor = 1"]
        lines += ["offset-syncs.topic.replication.factor = 1"]
        for name, cluster in clusters.items():
            lines.append(f"{name}.bootstrap.servers = {cluster.bootstrap_servers}")
            lines += [f"{name}.{key} = {value}" for key, value in cluster.client_settings().items()]
        file: Path = tmp_path_factory.mktemp("logins") / "mm2.properties"
        file.write_text("\n".join(lines))
        yield load(str(file)).flows[0]


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    client = Producer(for_confluent(cluster, role="producer"))
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for value in values:
        client.produce(topic, value=value, timestamp=BEGAN_MS, on_delivery=delivered)
    assert client.flush(30) == 0
    assert failed == []


def test_records_and_acls(flow: Flow, spark: SparkSession) -> None:
    assert create_topics(Admin(flow.source), [NewTopic("orders", 1, 1)]) == {"orders": None}
    produce(flow.source, "orders", [b"1", b"2", b"3"])
    discover_topics(flow)
    produce(flow.target, "a.orders", [b"1", b"2", b"x"])
    acl = Acl(
        topic="orders", pattern="LITERAL", principal="User:reader", host="*", operation="READ", permission="ALLOW"
    )
    create_acls(Admin(flow.source), [acl])
    verdict, _ = verify_flow(spark, flow, ComparisonTerms(), say=lambda _: None)
    assert verdict.troubles == ()
    found = {one.kind: one for one in verdict.differences}
    assert set(found) == {DifferenceKind.ACL, DifferenceKind.CHANGED}
    assert found[DifferenceKind.ACL].what == "ALLOW READ on a.orders to User:reader"
    assert (found[DifferenceKind.CHANGED].upstream, found[DifferenceKind.CHANGED].fields) == (2, ("value",))
