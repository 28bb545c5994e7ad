"""Doctor reports a cluster that is listed under two aliases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.doctor.aliases import one_cluster_twice
from mirrorless.settings import Cluster, load

if TYPE_CHECKING:
    from pathlib import Path

BASE = """
clusters = A, B, C
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
C.bootstrap.servers = c:1
A->C.enabled = true
"""


@pytest.mark.parametrize(
    ("line", "ids", "found", "asked"),
    [
        ("B->C.enabled = true", {"A": "x", "B": "x", "C": "y"}, ["A and B"], "AB"),
        ("B->C.enabled = true", {"A": "x", "B": "z", "C": "y"}, [], "AB"),
        ("B->C.enabled = true", {"A": None, "B": None, "C": "y"}, [], "AB"),
        ("B.mirrorless.cluster.id = b", {"A": "x", "B": "x", "C": "y"}, [], ""),
        ("A->B.enabled = true", {"A": "x", "B": "y", "C": "y"}, ["B and C"], "BC"),
    ],
)
def test_two_aliases_with_one_id(
    tmp_path: Path, line: str, ids: dict[str, str | None], found: list[str], asked: str
) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + line)
    seen = []

    def ask(cluster: Cluster) -> str | None:
        seen.append(cluster.alias)
        return ids[cluster.alias]

    findings = one_cluster_twice(load(path), ask)

    assert [one.text.partition(" are the same cluster")[0] for one in findings] == found
    assert sorted(seen) == list(asked)
