"""What a cluster is called in place of its id: said of a cluster, in mm2.properties and in Connect's JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from mirrorless.errors import ConfigurationError
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

BASE = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\n"


def test_of_a_cluster_in_every_flow(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(f"{BASE}B->A.enabled = true\nB.mirrorless.cluster.id = second\n")

    settings = load(file)

    assert [(flow.source.cluster_id, flow.target.cluster_id) for flow in settings.flows] == [
        (None, "second"),
        ("second", None),
    ]
    assert {cluster.alias: cluster.cluster_id for cluster in settings.clusters} == {"A": None, "B": "second"}
    assert all("mirrorless.cluster.id" not in cluster.client for cluster in settings.clusters)
    assert settings.warnings == ()
    file.write_text(f"{BASE}B->A.enabled = true\n")
    assert [flow.connections for flow in load(file).flows] != [flow.connections for flow in settings.flows]


def test_in_the_json_of_connect(tmp_path: Path) -> None:
    file = tmp_path / "connector.json"
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
        "target.cluster.mirrorless.cluster.id": "second",
    }
    file.write_text(json.dumps({"name": "copy", "config": config}))

    (flow,) = load(file).flows

    assert (flow.source.cluster_id, flow.target.cluster_id) == (None, "second")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("mirrorless.cluster.id = x", "must be set for a cluster; write A.mirrorless.cluster.id"),
        ("A->B.mirrorless.cluster.id = x", "must be set for a cluster; write A.mirrorless.cluster.id"),
        ("B.mirrorless.cluster.id =", "is empty; set a name for the cluster, or remove the line"),
        ("B.mirrorless.clusterid = x", "did you mean mirrorless.cluster.id?"),
    ],
)
def test_where_it_says_nothing(tmp_path: Path, line: str, reason: str) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(f"{BASE}{line}\n")

    with pytest.raises(ConfigurationError, match=reason.replace("?", r"\?")):
        load(file)
