"""Two clusters that check ACLs, whose clients without a login may do everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.local.broker import SecureListener
from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster


_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
APPLICATIONS = SecureListener(
    name="APP",
    protocol="SASL_PLAINTEXT",
    settings={
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": f'{_PLAIN} required user_app="of-tests";',
    },
)
"""Where applications log in, as a user who needs rights."""


@pytest.fixture(scope="session")
def authorizing_clusters() -> Iterator[Mapping[str, EmbeddedCluster]]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    specs = [ClusterSpec(name=name, settings=settings, secure=(APPLICATIONS,)) for name in ("source", "target")]
    with start_clusters(specs) as started:
        yield started


@pytest.fixture
def world(authorizing_clusters: Mapping[str, EmbeddedCluster], tmp_path: Path) -> World:
    return World(authorizing_clusters["source"], authorizing_clusters["target"], tmp_path)
