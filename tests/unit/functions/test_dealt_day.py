"""A day of deals: how much the largest share has, and how often partitions are moved.

The table of docs/functions.md has the figures. Partitions have loads that differ (lognormal, sigma 0.5), and that
change: by the hour, together in a topic of six, and from minute to minute. Share 0 plans every two minutes.
"""

from __future__ import annotations

import math
import random
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pytest

from bench import cost
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.planning.dealing import Dealer
from mirrorless.progress.deals import Deal, hash_share
from tests.support.template import ROOT

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition

CASES: Final = 5
RECORDS_S: Final = 1_000
"""Of a partition, in the mean."""
PLAN_MIN: Final = 2
SIZES: Final = ((60, 5), (24, 5), (24, 10))


@dataclass(slots=True)
class Day:
    """The largest share in means, of each minute, and what was moved."""

    dealt: list[float] = field(default_factory=list)
    by_hash: list[float] = field(default_factory=list)
    deals: int = 0
    moved: int = 0


def simulate(partitions: int, functions: int, case: int) -> Day:
    """Let share 0 plan 720 times."""
    chance, day, now = random.Random(case), Day(), 0.0
    places = [(f"topic{case}-{number // 6}", number % 6) for number in range(partitions)]
    loads = {place: RECORDS_S * chance.lognormvariate(0, 0.5) for place in places}
    hours = {topic: chance.uniform(0, 24) for topic, _ in places}
    ends = dict.fromkeys(places, 0.0)
    dealer = Dealer(functions, clock=lambda: now)
    last: Deal | None = None
    dealt_at: float | None = None
    for minute in range(1_440):
        now = minute * 60.0
        rates = {
            place: load
            * (1 + 0.6 * math.sin((minute / 60 - hours[place[0]]) * math.pi / 12))
            * chance.uniform(0.8, 1.2)
            for place, load in loads.items()
        }
        for place, rate in rates.items():
            ends[place] += rate * 60
        if minute % PLAN_MIN == 0:
            dealer.planned(_row(place, round(end)) for place, end in ends.items())
            if (deal := dealer.next_deal(last, dealt_at)) is not None:
                last, dealt_at = deal, now
                day.deals += 1
                day.moved += len(deal.moved)
        current = last or Deal(number=0, of=functions)
        day.dealt.append(_largest(rates, {place: current.share_of(place) for place in places}, functions))
        day.by_hash.append(_largest(rates, {place: hash_share(place, functions) for place in places}, functions))
    return day


def _row(place: TopicPartition, end: int) -> LeaseRow:
    return LeaseRow(topic=place[0], partition=place[1], remote_topic="r", source_end=end, last_offset=end - 1)


def _largest(rates: dict[TopicPartition, float], shares: dict[TopicPartition, int], of: int) -> float:
    sums = [0.0] * of
    for place, share in shares.items():
        sums[share] += rates[place]
    return max(sums) * of / sum(sums)


def _row_of(partitions: int, functions: int) -> str:
    days = [simulate(partitions, functions, case) for case in range(CASES)]

    def most(by: str) -> float:
        """What suffices in 19 of 20 minutes of four days in five."""
        found: list[float] = sorted(statistics.quantiles(getattr(day, by), n=20)[18] for day in days)
        return found[CASES - 2]

    deals, moved = (statistics.median(getattr(day, name) for day in days) for name in ("deals", "moved"))
    return f"| {partitions} on {functions} | {most('by_hash'):.1f} | {most('dealt'):.2f} | {deals:.0f} | {moved:.0f} |"


@pytest.mark.parametrize(("partitions", "functions"), SIZES)
def test_the_page_has_what_a_day_of_deals_needs(partitions: int, functions: int) -> None:
    row = _row_of(partitions, functions)
    assert row in (ROOT / "docs" / "functions.md").read_text()
    if (partitions, functions) == SIZES[0]:
        assert float(row.split("|")[3]) <= cost.COPY_SKEW
