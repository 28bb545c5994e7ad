"""The page has what the flow is late with, and one row for all that it does not move."""

from __future__ import annotations

from mirrorless.clusters.cluster_requests import NotThere
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind_results import KindResult
from mirrorless.metadata.kinds import KINDS
from mirrorless.web.kinds_reader import kind_problems

KIND = next(one for one in KINDS if one.apply is not None)
ONE = ClusterDifference(
    kind=KIND.name,
    on="user x",
    what="rate",
    source_has="1",
    target_has="2",
    text="set rate to 1",
    reason="",
    change={"x": 1},
)


def test_a_kind_that_is_synced_has_a_row_with_the_command() -> None:
    (row,) = kind_problems("a->b", [KindResult(kind=KIND, is_synced=True, found=[ONE])], "mm2.properties")
    assert (row.kind, row.text) == ("rights and limits", "set rate to 1.")
    assert row.fixes[0].command == "mirrorless apply mm2.properties --flow 'a->b'"


def test_what_is_not_moved_is_one_row_for_all_kinds() -> None:
    results = [KindResult(kind=one, is_synced=False, found=[ONE, ONE]) for one in KINDS]
    (row,) = kind_problems("a->b", results, "mm2.properties")
    assert all(f"{one.name}: 2 differences" in row.text for one in KINDS)


def test_a_right_that_is_missing_is_a_problem_only_if_the_kind_is_synced() -> None:
    hidden = NotThere("no right to see it", lacks_right=True)
    assert not list(kind_problems("a->b", [KindResult(kind=KIND, is_synced=False, found=hidden)], "x"))
    (row,) = kind_problems("a->b", [KindResult(kind=KIND, is_synced=True, found=hidden)], "x")
    assert row.kind == "not readable"
