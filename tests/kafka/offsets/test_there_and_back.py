"""Active/active: a group fails over and back, three times; nothing is missed or, stopped in order, read twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.pair import TURNS, Pair

if TYPE_CHECKING:
    from pathlib import Path

    from mirrorless.local.embedded_kafka import EmbeddedCluster


@pytest.mark.nightly
@pytest.mark.timeout(400)
@pytest.mark.parametrize("uncommitted", [0, 4], ids=["stopped in order", "killed"])
def test_three_times_there_and_back(
    source: EmbeddedCluster, target: EmbeddedCluster, tmp_path: Path, uncommitted: int
) -> None:
    pair = Pair(source, target, tmp_path, group=f"there-and-back-{uncommitted}")
    outcome = pair.there_and_back(uncommitted=uncommitted, replicate=pair.replicate)
    assert outcome.missed == 0
    assert sum(outcome.again) <= 2 * uncommitted * TURNS
