"""Deals a flow's partitions to the functions that copy it, and knows which ones a share copies by the last deal.

A moved partition belongs to no run for a moment: its former owner ends its lease, and shows the deal in its mark from
then on; the new owner plans again when no valid mark of the former one shows an earlier deal. A run that begins writes
its mark before it reads the marks, so it knows each deal that was read before its mark was.
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ClusterUnavailable
from mirrorless.progress.deals import MOST_SHARES, Deal, hash_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.copy.planning.run_order import RunOrder
    from mirrorless.progress.run_marks import Share

QUARTER: Final = 0.25
"""Nothing is moved as long as the largest share exceeds the mean by no more."""
LEFT: Final = 0.1
"""What may be left of the difference when partitions are moved: otherwise the next deal would follow soon."""
EVERY_S: Final = 180.0
"""A deal interrupts leases, so the next one follows after so long at the earliest."""
AHEAD_S: Final = 300.0
"""A partition's weight is what it has left to copy, and what arrives in so many seconds."""
WORTH_BYTES: Final = 10_000_000
"""A deal takes at least so much from shares that are too large, 33 KB/s, and at least a tenth of the mean."""
_RATE_S: Final = 20.0
_OLD_S: Final = 900.0
"""A rate is over the time between two plans, which is longer than the one and shorter than the other."""
_SAMPLE_RECORDS: Final = 1_000
_RECORD_BYTES: Final = 1_000.0
"""Taken for the size of a record until so many were copied."""


def sums(weights: Mapping[TopicPartition, float], shares: Mapping[TopicPartition, int], of: int) -> list[float]:
    """Add up the weights of each share."""
    found = [0.0] * of
    for place, weight in weights.items():
        if place in shares:
            found[shares[place]] += weight
    return found


def differ(shares: Sequence[float]) -> bool:
    """Whether the largest of some shares exceeds the mean by more than a quarter."""
    return max(shares) > (1 + QUARTER) * sum(shares) / len(shares)


def excess(shares: Sequence[float]) -> float:
    """Return by how much shares exceed the mean, in all."""
    mean = sum(shares) / len(shares)
    return sum(max(0.0, one - mean) for one in shares)


def deal(
    weights: Mapping[TopicPartition, float], before: Mapping[TopicPartition, int], of: int
) -> dict[TopicPartition, int]:
    """Return the share of each partition that has a weight; `before` is where it is now, without those that are new.

    A partition stays where it is as long as shares differ by no more than a quarter. Otherwise as few as possible are
    moved, one by one from the largest share to the smallest. A share that has little but one large partition is left as
    it is. New partitions go to the smallest share, the heaviest first.
    """
    shares = {place: before[place] for place in weights if place in before}
    total = sums(weights, shares, of)
    counts = [0] * of
    for share in shares.values():
        counts[share] += 1
    for place in sorted(weights.keys() - shares.keys(), key=lambda place: (-weights[place], place)):
        smallest = min(range(of), key=lambda one: (total[one], counts[one]))
        shares[place] = smallest
        total[smallest] += weights[place]
        counts[smallest] += 1
    _level(weights, shares, total)
    return shares


def _level(weights: Mapping[TopicPartition, float], shares: dict[TopicPartition, int], total: list[float]) -> None:
    """Move partitions until no share exceeds the mean by much, but for those that cannot be smaller."""
    piles: list[list[tuple[float, TopicPartition]]] = [[] for _ in total]
    for place, share in shares.items():
        if weights[place]:
            piles[share].append((weights[place], place))
    for pile in piles:
        pile.sort()
    left, most = set(range(len(total))), QUARTER
    while len(left) > 1:
        heavy, light = max(left, key=total.__getitem__), min(left, key=total.__getitem__)
        mean, gap, pile = sum(total[one] for one in left) / len(left), total[heavy] - total[light], piles[heavy]
        if total[heavy] <= (1 + most) * mean:
            return
        found = _nearest(pile, gap / 2)
        if pile[found][0] >= gap or total[heavy] - pile[-1][0] <= LEFT * mean:
            left.discard(heavy)
            continue
        weight, place = pile.pop(found)
        insort(piles[light], (weight, place))
        shares[place] = light
        total[heavy] -= weight
        total[light] += weight
        most = LEFT


def _nearest(pile: Sequence[tuple[float, TopicPartition]], wanted: float) -> int:
    """Return the index of the partition whose weight is nearest; a share above the mean has one."""
    above = bisect_left(pile, wanted, key=lambda one: one[0])
    return min((one for one in (above - 1, above) if 0 <= one < len(pile)), key=lambda one: abs(pile[one][0] - wanted))


class DealtShare:
    """Knows by which deal the leases of this process's runs are planned."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._deal: Deal | None = None
        self._held: Mapping[TopicPartition, int] = {}
        self._released = 0
        self._next: tuple[int, Mapping[TopicPartition, int]] = 0, {}

    def begin(self, order: RunOrder) -> None:
        """Take the last deal, before a lease is planned: nothing is copied by the run of `order`."""
        self._deal = last = order.deal
        order.adopt(last)
        self._held, self._next = {}, (0, {})
        if last is None or last.number == self._released:
            return
        if gained := last.moved_to(self._share.number):
            try:
                order.look()  # marks that were not renewed may be renewed, and not read yet
                unreleased = order.unreleased(last)
            except ClusterUnavailable:
                unreleased = set(gained.values())
            self._held = {place: former for place, former in gained.items() if former in unreleased}
        if not self._held:
            self._released = last.number

    def has(self, place: TopicPartition) -> bool:
        """Whether the lease copies a partition."""
        last = self._deal
        share = hash_share(place, self._share.of) if last is None else last.share_of(place)
        return share == self._share.number and place not in self._held

    def is_over(self, order: RunOrder) -> bool:
        """Whether another lease is to be planned, by the marks and deals as read last.

        A deal that takes nothing from the share is in the run's mark at once, and is followed when it gives something.
        """
        newest, own = order.deal, self._deal
        before, now = (one.number if one else 0 for one in (own, newest))
        if newest is None or before == now:
            return before != now or (newest is not None and self._is_released(newest, self._held, order))
        if self._next[0] != now:  # asked many times a second
            if self._held or now != before + 1 or newest.takes_from(self._share.number):
                return True
            order.adopt(newest)
            self._next = now, newest.moved_to(self._share.number)
        return self._is_released(newest, self._next[1], order)

    def _is_released(self, deal: Deal, gained: Mapping[TopicPartition, int], order: RunOrder) -> bool:
        return bool(gained) and not order.unreleased(deal) & set(gained.values())


class Dealer:
    """Of share 0: weighs the flow's partitions from plan to plan, and deals them again when shares differ."""

    def __init__(self, of: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._of = of
        self._clock = clock
        self._before: tuple[float, Mapping[TopicPartition, int]] | None = None
        self._rates: dict[TopicPartition, float] = {}
        self._lags: dict[TopicPartition, int] = {}
        self._copied: dict[str, tuple[int, int]] = {}

    def planned(self, rows: Iterable[LeaseRow]) -> None:
        """Take a plan of all partitions."""
        now, rows = self._clock(), list(rows)
        ends = {row.place: row.source_end for row in rows}
        self._lags = {row.place: 0 if _is_halted(row) else row.lag_records for row in rows}
        since, before = self._before or (now, {})
        if self._before is None or now - since > _OLD_S:
            self._before, self._rates = (now, ends), {}
        elif now - since >= _RATE_S:
            self._rates = {place: max(0, end - before.get(place, end)) / (now - since) for place, end in ends.items()}
            self._before = now, ends

    def lease_ended(self, reports: Sequence[Report]) -> None:
        """Take how large the records of each topic are."""
        for one in reports:
            records, size = self._copied.get(one.topic, (0, 0))
            self._copied[one.topic] = records + one.records, size + one.copied_bytes

    def next_deal(self, last: Deal | None, dealt_at: float | None) -> Deal | None:
        """Return the deal that follows the `last` one, None if none is needed; `dealt_at` is when that was read."""
        is_early = dealt_at is not None and self._clock() - dealt_at < EVERY_S
        if is_early or not self._rates or self._of > MOST_SHARES:
            return None
        current = last or Deal(number=0, of=self._of)
        weights = self._weights()
        actual = {place: current.share_of(place) for place in weights}
        shares = sums(weights, actual, self._of)
        if not differ(shares):
            return None
        # Of the first deal no partition is new: hashing has placed them all.
        before = actual if last is None else {place: one for place, one in actual.items() if place in last.shares}
        dealt = deal(weights, before, self._of)
        gain = excess(shares) - excess(sums(weights, dealt, self._of))
        if gain < max(WORTH_BYTES, LEFT * sum(shares) / self._of):
            return None
        moved = {place: actual[place] for place, share in dealt.items() if share != actual[place]}
        # What is not planned any more is copied by hash if it appears again.
        gone = {place: share for place, share in current.shares.items() if place not in dealt}
        moved |= {place: share for place, share in gone.items() if share != hash_share(place, self._of)}
        return Deal(number=current.number + 1, of=self._of, shares=dealt, moved=moved)

    def _weights(self) -> dict[TopicPartition, float]:
        records, copied = (sum(one) for one in zip((0, 0), *self._copied.values(), strict=False))
        mean = copied / records if records >= _SAMPLE_RECORDS else _RECORD_BYTES
        sizes = {topic: size / count for topic, (count, size) in self._copied.items() if count >= _SAMPLE_RECORDS}
        return {
            place: (lag + self._rates.get(place, 0.0) * AHEAD_S) * sizes.get(place[0], mean)
            for place, lag in self._lags.items()
        }


def _is_halted(row: LeaseRow) -> bool:
    """Whether what a partition has left is not copied; asked of those that have much left."""
    if row.lag_records < _SAMPLE_RECORDS:
        return False
    return row.said().shown_halt is not None
