"""Three clusters with users and the KRaft authorizer on, shared by the tests of metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.secured import MIRROR, VIEWER, Secured

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster

USERS = {"admin": "admin-secret", MIRROR: "mirror-secret", VIEWER: "viewer-secret"}


@pytest.fixture(scope="session")
def secured_clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, EmbeddedCluster]]:
    # A setting of the brokers' files, which is theirs and must never go over.
    settings = {"log.index.size.max.bytes": "1048576"}
    # A quota on new partitions that is felt at once.
    settings |= {"controller.quota.window.num": "2"}
    with start_clusters([ClusterSpec(name=name, users=USERS, settings=settings) for name in "abc"]) as started:
        Secured(started, tmp_path_factory.mktemp("grants")).let_see_acls(VIEWER)
        yield started


@pytest.fixture
def secured(secured_clusters: Mapping[str, EmbeddedCluster], tmp_path: Path) -> Secured:
    return Secured(secured_clusters, tmp_path)
