"""Two clusters that check ACLs, whose clients without a login may do everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.moving import APPLICATIONS, AUTHORIZER
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster


@pytest.fixture(scope="session")
def authorizing_clusters() -> Iterator[Mapping[str, EmbeddedCluster]]:
    specs = [ClusterSpec(name=name, settings=AUTHORIZER, secure=(APPLICATIONS,)) for name in ("source", "target")]
    with start_clusters(specs) as started:
        yield started


@pytest.fixture
def world(authorizing_clusters: Mapping[str, EmbeddedCluster], tmp_path: Path) -> World:
    return World(authorizing_clusters["source"], authorizing_clusters["target"], tmp_path)
