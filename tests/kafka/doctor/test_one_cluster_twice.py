"""Doctor reports a cluster that a file lists under two aliases with different addresses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from mirrorless.cli import root
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster


def clusters_of(report: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(report)["flows"].get("clusters", [])
    return found


def test_two_addresses_of_one_cluster(source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path) -> None:
    port = source.bootstrap_servers.rpartition(":")[2]
    lines = (
        "clusters = east, west, hub",
        f"east.bootstrap.servers = 127.0.0.1:{port}",
        f"west.bootstrap.servers = localhost:{port}",
        f"hub.bootstrap.servers = {target.bootstrap_servers}",
        "east->hub.enabled = true",
        "west->hub.enabled = true",
        "topics = none",
        "emit.heartbeats.enabled = false",
        "replication.factor = 1",
    )
    file = tmp_path / "mm2.properties"
    file.write_text("\n".join(lines))
    assert not any("same address" in warning for warning in load(file).warnings)

    reported = CliRunner().invoke(root, ["doctor", str(file), "--json"])
    shown = CliRunner().invoke(root, ["doctor", str(file)])

    fix = "use one alias for the cluster, or set west.mirrorless.cluster.id if they differ"
    text = f"east and west are the same cluster ({source.cluster_id}), or one has a copied id"
    (finding,) = clusters_of(reported.stdout)
    assert (finding["check"], finding["status"], finding["text"], finding["fix"]) == ("aliases", "warning", text, fix)
    assert f"aliases: {text}\n" in shown.output
    file.write_text("\n".join((*lines, "west.mirrorless.cluster.id = another")))
    assert clusters_of(CliRunner().invoke(root, ["doctor", str(file), "--json"]).stdout) == []
