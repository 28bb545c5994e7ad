"""Three clusters write to one topic at once; the short form of `make active-active`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, start_clusters
from tests.support.active_active import ActiveActiveTerms, run_active_active

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(300)


@pytest.mark.nightly
def test_each_cluster_has_every_record_once_and_no_group_is_ahead(tmp_path: Path) -> None:
    with start_clusters([ClusterSpec(name=name) for name in "ABC"], directory=tmp_path) as clusters:
        terms = ActiveActiveTerms(seconds=20, rate=300, partitions=2, kill_every_s=8)
        outcome = run_active_active(clusters, tmp_path, terms)
    assert outcome.faults == []
    assert set(outcome.offsets.values()) == {sum(outcome.written.values())}
    assert outcome.kills >= 2
