"""A hot partition does not share its slot with everything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.copy.planning.lease_planner import deal


@given(st.lists(st.integers(0, 10**12), max_size=200), st.integers(1, 16))
def test_every_item_is_dealt_once_and_no_slot_is_empty(weights: list[int], slots: int) -> None:
    piles = deal(range(len(weights)), slots=slots, weight=weights.__getitem__)
    assert sorted(item for pile in piles for item in pile) == list(range(len(weights)))
    assert len(piles) == min(slots, len(weights)) or (not any(weights) and piles) or len(piles) <= slots
    assert all(piles)


def test_one_hot_partition_has_a_slot_to_itself() -> None:
    weights = [1_000_000] + [100] * 50
    piles = deal(range(51), slots=3, weight=weights.__getitem__)
    assert [0] in piles
    assert sorted(map(len, piles)) == [1, 25, 25]


def test_idle_partitions_spread() -> None:
    assert sorted(map(len, deal(range(9), slots=3, weight=lambda _: 0))) == [3, 3, 3]
