"""Partitions are dealt to shares by size: as few as possible are moved, and none while shares are nearly equal."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.planning.dealing import QUARTER, deal, differ, excess, sums
from mirrorless.progress.deals import hash_share

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition


def places(number: int, *, topic: str = "t") -> list[TopicPartition]:
    return [(f"{topic}{one // 6}", one % 6) for one in range(number)]


def by_hash(found: list[TopicPartition], of: int) -> dict[TopicPartition, int]:
    return {place: hash_share(place, of) for place in found}


def moves(before: dict[TopicPartition, int], after: dict[TopicPartition, int]) -> int:
    return sum(after[place] != share for place, share in before.items())


@pytest.mark.parametrize(("number", "of"), [(60, 5), (24, 5), (24, 10)])
def test_equal_partitions_that_hashing_has_placed_are_within_a_quarter(number: int, of: int) -> None:
    for case in range(200):
        found = places(number, topic=f"topic{case}-")
        weights = dict.fromkeys(found, 1e6)
        before = by_hash(found, of)
        after = deal(weights, before, of)
        assert not differ(sums(weights, after, of))
        # No more than those that are too many for their share.
        counts = sums(dict.fromkeys(found, 1.0), before, of)
        mean = number // of
        assert moves(before, after) <= sum(max(0, count - mean) for count in counts)
        assert deal(weights, after, of) == after


def test_nothing_is_moved_within_a_quarter_and_everything_is_level_after_a_move() -> None:
    chance = random.Random(5)
    for _ in range(500):
        of = chance.randint(2, 16)
        found = places(chance.randint(of, 20 * of))
        weights = {place: chance.paretovariate(1.2) * 1e6 for place in found}
        before = by_hash(found, of)
        after = deal(weights, before, of)
        shares = sums(weights, before, of)
        if max(shares) <= (1 + QUARTER) * sum(shares) / of:
            assert after == before
        assert max(sums(weights, after, of)) <= max(shares)
        assert excess(sums(weights, after, of)) <= excess(shares)
        again = deal(weights, after, of)
        assert again == after, "a deal is followed by another one"


def test_a_quarter_more_is_not_too_much() -> None:
    weights = {("t", 0): 125.0, ("t", 1): 75.0, ("t", 2): 0.0}
    before = {("t", 0): 0, ("t", 1): 1, ("t", 2): 0}
    assert deal(weights, before, 2) == before
    weights[("t", 2)] = 15.0  # 140 of 215
    assert deal(weights, before, 2)["t", 2] == 1


def test_a_hot_partition_keeps_little_beside_it_and_the_others_are_dealt_to_the_rest() -> None:
    found = places(31)
    weights = dict.fromkeys(found, 10e6)
    hot = found[0]
    weights[hot] = 500e6
    after = deal(weights, by_hash(found, 4), 4)
    beside = [place for place in found if after[place] == after[hot] and place != hot]
    assert len(beside) <= 2  # a tenth of the mean
    rest = [one for share, one in enumerate(sums(weights, after, 4)) if share != after[hot]]
    assert not differ(rest)
    assert deal(weights, after, 4) == after


def test_a_hot_partition_that_has_its_share_moves_nothing() -> None:
    weights = {("hot", 0): 900.0} | {("t", one): 10.0 for one in range(9)}
    before = {("hot", 0): 0} | {("t", one): 1 + one % 3 for one in range(9)}
    assert deal(weights, before, 4) == before


@pytest.mark.parametrize("busy", [0, 3])
def test_a_thousand_idle_partitions_stay_where_they_are(busy: int) -> None:
    found = places(1_000)
    before = by_hash(found, 5)
    weights = dict.fromkeys(found, 0.0)
    of_zero = [place for place in found if before[place] == 0][:busy]
    weights |= dict.fromkeys(of_zero, 100e6)
    after = deal(weights, before, 5)
    assert all(after[place] == before[place] for place in found if place not in of_zero)
    assert len({after[place] for place in of_zero}) == busy


def test_new_partitions_go_to_the_smallest_share() -> None:
    before = {("t", 0): 0, ("t", 1): 1, ("t", 2): 2}
    weights = {("t", 0): 100.0, ("t", 1): 90.0, ("t", 2): 95.0, ("new", 0): 8.0, ("new", 1): 1.0, ("new", 2): 4.0}
    after = deal(weights, before, 3)
    assert after == before | {("new", 0): 1, ("new", 2): 2, ("new", 1): 1}
    idle = deal(dict.fromkeys(places(40), 0.0), {}, 4)
    assert [list(idle.values()).count(share) for share in range(4)] == [10] * 4


def test_the_deal_of_twenty_thousand_partitions_takes_little_time() -> None:
    found = places(20_000)
    chance = random.Random(1)
    weights = {place: chance.expovariate(1e-6) for place in found}
    after = deal(weights, dict.fromkeys(found, 0), 16)
    assert not differ(sums(weights, after, 16))
