"""Which flows append to the topics that a fence covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.operations.steps.fence import appends_to
from mirrorless.settings import load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = old, new, third
old.bootstrap.servers = old:1
new.bootstrap.servers = new:1
third.bootstrap.servers = third:1
old->new.enabled = true
third->old.enabled = true
third->old.topics = orders, clicks
"""
KEPT = "replication.policy.class = IdentityReplicationPolicy\nheartbeats.replication.enabled = false\n"


@pytest.mark.parametrize(
    ("more", "topics", "blocked"),
    [
        ("", ["orders", "payments"], False),
        ("", ["orders", "third.orders"], True),
        (KEPT, ["orders"], True),
        (KEPT, ["payments"], False),
    ],
)
def test_a_flow_that_appends_to_fenced_topics_is_blocked(
    tmp_path: Path, more: str, topics: list[str], blocked: bool
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + more)
    assert appends_to(load(path).flow("third->old"), topics) is blocked
