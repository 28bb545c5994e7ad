"""An empty separator, which many files for the identity policy have, names internal topics as MirrorMaker 2 does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mirrorless.policy import policy_for
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
A->B.enabled = true
replication.policy.separator =
"""
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


def test_the_names_with_the_identity_policy(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + IDENTITY)
    settings = load(path)
    policy = policy_for(settings.flow("A->B"))

    assert settings.warnings == ()
    assert settings.flow("A->B").offset_storage_topic == "mm2-offsets.A.internal"
    assert (policy.offset_syncs_topic("B"), policy.checkpoints_topic("A")) == (
        ("mm2-offset-syncsBinternal", "Acheckpointsinternal")
    )
    assert (policy.format_remote_topic("A", "orders"), policy.topic_source("orders")) == ("orders", "A")
    assert policy.is_internal_topic("mm2-offset-syncsBinternal")
    assert policy.is_internal_topic("Acheckpointsinternal")
    assert not policy.is_internal_topic("orders")
    assert not policy.is_cycle("orders", "B")
    # As in MirrorMaker 2: each character is a part of the name.
    assert (policy.format_remote_topic("A", "heartbeats"), policy.topic_source("heartbeats")) == ("Aheartbeats", "h")


def test_the_names_with_the_separator_for_remote_topics_only(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + IDENTITY + "replication.policy.internal.topic.separator.enabled = false\n")
    policy = policy_for(load(path).flow("A->B"))

    assert (policy.offset_syncs_topic("B"), policy.checkpoints_topic("A")) == (
        ("mm2-offset-syncs.B.internal", "A.checkpoints.internal")
    )


def test_empty_aliases_of_a_connector_keep_names_and_progress(tmp_path: Path) -> None:
    path = tmp_path / "source.json"
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "",
        "target.cluster.alias": "",
        "replication.policy.separator": "",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
    }
    path.write_text(json.dumps({"name": "orders", "config": config}))
    flow = load(path).flow("source->target")

    assert (flow.replication_policy_class, flow.progress_alias) == ("IdentityReplicationPolicy", "")
