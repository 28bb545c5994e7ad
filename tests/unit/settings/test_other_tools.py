"""Pipelines of Redpanda's migrator and replicators of Amazon MSK: what means the same is read, the rest is reported."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import Settings, load
from mirrorless.settings.migrator import _whole

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
input:
  redpanda_migrator:
    seed_brokers: [ "a:1" ]
    topics: [ "orders" ]
    sasl: [ { mechanism: PLAIN, username: u, password: swordfish } ]
output:
  redpanda_migrator:
    seed_brokers: [ "b:1" ]
"""
REPLICATOR: dict[str, Any] = {
    "KafkaClusters": [
        {"KafkaClusterAlias": "a", "ApacheKafkaCluster": {"BootstrapBrokerString": "a:1"}},
        {"KafkaClusterAlias": "b", "ApacheKafkaCluster": {"BootstrapBrokerString": "b:1"}},
    ],
    "ReplicationInfoList": [
        {
            "SourceKafkaClusterAlias": "a",
            "TargetKafkaClusterAlias": "b",
            "TargetCompressionType": "GZIP",
            "TopicReplication": {"TopicsToReplicate": ["orders"]},
        }
    ],
}


def loaded(folder: Path, text: str) -> Settings:
    path = folder / "file"
    path.write_text(text)
    return load(path)


def test_a_pipeline_keeps_names_and_moves_groups(tmp_path: Path) -> None:
    flow = loaded(tmp_path, PIPELINE).flow("source->target")

    assert (flow.topics, flow.replication_policy_class) == (("orders",), "IdentityReplicationPolicy")
    assert (flow.sync_group_offsets_enabled, flow.emit_heartbeats_enabled) == (True, False)
    assert flow.source.client["security.protocol"] == "SASL_PLAINTEXT"
    assert "swordfish" not in repr(flow)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("output:", "pipeline:\n  processors:\n    - mapping: root = this\noutput:", "records are copied unchanged"),
        ('seed_brokers: [ "b:1" ]', 'seed_brokers: [ "b:1" ]\n    topic: copy', "topics can only keep their names"),
        ('seed_brokers: [ "b:1" ]', 'seed_brokers: [ "b:1" ]\n    topic_prefix: copy', "is not supported"),
        ('"orders"', '"orders:0:10"', "partitions and offsets of a topic cannot be chosen"),
        ('"orders"', '"a,b"', "a comma separates patterns here"),
        ("username: u,", 'username: "${! env() }",', "expressions are not supported"),
        ('"a:1"', '"a"', "a is not host:port"),
    ],
)
def test_a_pipeline_that_means_something_else_is_refused(tmp_path: Path, before: str, after: str, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, PIPELINE.replace(before, after))

    assert line in str(raised.value)
    assert "swordfish" not in str(raised.value)


def test_a_pattern_that_is_searched_is_made_one_of_the_whole_name() -> None:
    cases: list[tuple[str, str]] = [
        ("^a$", "a"),
        ("^a", "a.*"),
        ("a$", ".*a"),
        ("a", ".*a.*"),
        ("a|b", ".*(?:a|b).*"),
        ("^a|b$", "(?=.*(?:^a|b$)).*"),
    ]
    assert [(pattern, _whole(pattern)) for pattern, _ in cases] == cases


def test_a_replicator(tmp_path: Path) -> None:
    settings = loaded(tmp_path, json.dumps(REPLICATOR))
    flow = settings.flow("a->b")

    assert (flow.topics, flow.source.bootstrap_servers) == (("orders",), "a:1")
    assert settings.heartbeats == ()
    path = "replicationInfoList[0].targetCompressionType"
    assert settings.warnings == (f"{settings.file}: {path}: has no effect: records keep the compression of the source",)


def test_a_replicator_without_addresses_names_the_command_that_shows_them(tmp_path: Path) -> None:
    arn = "arn:aws:kafka:eu-west-1:000000000000:cluster/a/1"
    clusters = [{"KafkaClusterAlias": "a", "AmazonMskCluster": {"MskClusterArn": arn}}]
    with pytest.raises(ConfigurationError) as raised:
        loaded(tmp_path, json.dumps(REPLICATOR | {"KafkaClusters": clusters}))

    assert str(raised.value).endswith(
        "kafkaClusters[0].bootstrapBrokerString: is missing; add the cluster's brokers as host:port, from aws kafka "
        f"get-bootstrap-brokers --cluster-arn {arn}"
    )
