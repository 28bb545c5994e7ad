"""Verify has what differs beside topics: differences of kinds that are synced, notes of the others."""

from __future__ import annotations

import pytest

from mirrorless.metadata import kind_results
from mirrorless.metadata.actions import ClusterDifference
from mirrorless.metadata.kind import Kind
from mirrorless.verify.findings import DifferenceKind, VerificationResult
from mirrorless.verify.metadata_diff import Metadata, compare_metadata
from mirrorless.verify.repair import repair_plan
from tests.unit.verify.test_what_is_not_compared import FLOW, INTERNAL_A, INTERNAL_B, FakeAdmin, admins

ONE = ClusterDifference(
    kind="hats",
    on="user x",
    what="colour",
    source_has="red",
    target_has="none",
    text="paint it red",
    reason="a has it",
    change={"colour": "red"},
)


def compared(*synced: str, topics: str = "") -> Metadata:
    source, target = (
        FakeAdmin("a", ["orders", "payments", *INTERNAL_A]),
        FakeAdmin("b", ["a.orders", "a.payments", *INTERNAL_B]),
    )
    flow = FLOW.model_copy(update={"sync_kinds": synced})
    return compare_metadata(flow, admins(source, target), wanted=lambda topic: topic.startswith(topics))


@pytest.fixture(autouse=True)
def _hats(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind(
        name="hats",
        about="hats",
        left="",
        compare=lambda _: [ONE],
        apply=lambda _, some: [None for _ in some],
        reads="DESCRIBE",
        writes="ALTER",
    )
    monkeypatch.setattr(kind_results, "KINDS", (kind,))


def test_a_difference_of_a_kind_that_is_synced_is_one_that_apply_repairs() -> None:
    found = compared("hats")
    (one,) = [each for each in found.differences if each.kind is DifferenceKind.KIND]
    assert (one.place, one.text) == ("user x", "hats: colour: source red, target none")
    whole = VerificationResult(flow="a->b", began_ms=0, ended_ms=0, differences=(one,))
    (step,) = repair_plan(whole, file="f")
    assert step.action == "mirrorless apply f"


def test_of_another_kind_it_is_a_note() -> None:
    found = compared()
    assert not [each for each in found.differences if each.kind is DifferenceKind.KIND]
    assert "not moved: hats: paint it red (hats is not among mirrorless.sync.kinds)" in found.notes


def test_with_some_topics_only_nothing_else_is_compared() -> None:
    assert compared("hats", topics="orders").kinds == {}
