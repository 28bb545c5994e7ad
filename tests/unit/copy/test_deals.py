"""The records of deals, and what a run copies by them while others follow."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.planning import dealing, run_order
from mirrorless.copy.planning.dealing import Dealer, DealtShare
from mirrorless.copy.planning.run_order import RunOrder
from mirrorless.errors import ClusterUnavailable, GapKind
from mirrorless.progress.deals import Deal, hash_share
from mirrorless.progress.records import Halt, Known, parse
from mirrorless.progress.run_marks import RunMarks, Share, deal_key, is_mark, key_of
from tests.support.reports import report
from tests.unit.copy.test_run_marks import FLOW, NOW_MS, VALID_MS

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition

HERE = "here"
P: TopicPartition = ("t", 0)
OF = 3


def by_hash(share: int, of: int = OF) -> list[TopicPartition]:
    """Six partitions that hashing gives to a share."""
    found = [("t", number) for number in range(100) if hash_share(("t", number), of) == share]
    return found[:6]


def moving(number: int, place: TopicPartition, *, former: int, to: int) -> Deal:
    return Deal(number=number, of=OF, shares={place: to}, moved={place: former})


class Log:
    """The partition of the marks, with the clock of its readers."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.now = 1_000.0
        self.is_away = False

    def deal(self, one: Deal, *, key: bytes | None = None) -> bytes:
        self.records.append((key or deal_key(FLOW, HERE, one), one.to_json()))
        return self.records[-1][0]

    def delete(self, key: bytes) -> None:
        self.records.append((key, None))

    def mark(self, run: str, share: int, deal: int, *, of: int = OF) -> None:
        said = {"renewedMs": NOW_MS + (self.now - 1_000) * 1_000, "validMs": VALID_MS, "engine": "functions"}
        said |= {"share": [share, of], "deal": deal, "deployment": HERE}
        self.records.append((key_of(FLOW, run), json.dumps(said).encode()))

    def compacted(self) -> Log:
        """The same log after compaction: the last record of each key, without tombstones."""
        last = {key: number for number, (key, _) in enumerate(self.records)}
        other = Log()
        kept = [one for number, one in enumerate(self.records) if number in last.values() and one[1] is not None]
        other.records = cast("Any", kept)
        return other

    def marks(self) -> RunMarks:
        found = RunMarks("A")
        for offset, (key, value) in enumerate(self.records):
            assert found.take(key, value, offset, now=self.now, is_news=False)
        return found


class Order:
    """The order of one run, which reads the log when it looks, and shows a deal in its mark."""

    def __init__(self, log: Log, share: Share) -> None:
        self._log, self._share = log, share
        self.shown = 0
        self.marks = log.marks()

    @property
    def deal(self) -> Deal | None:
        return self.marks.deal(HERE, self._share.of)

    def adopt(self, deal: Deal | None) -> None:
        self.shown = deal.number if deal else 0

    def look(self) -> None:
        if self._log.is_away:
            raise ClusterUnavailable("no answer", cluster="B")
        self.marks = self._log.marks()

    def unreleased(self, deal: Deal) -> set[int]:
        now_ms = NOW_MS + round((self._log.now - 1_000) * 1_000)
        valid = self.marks.valid(FLOW, now_ms=now_ms, now=self._log.now, deployment=HERE)
        return {mark.share.number for mark in valid if mark.share.of == deal.of and mark.deal < deal.number}


class Run:
    """A run of a share between its leases."""

    def __init__(self, log: Log, number: int) -> None:
        self.dealt, self.order = DealtShare(Share(number, OF)), Order(log, Share(number, OF))

    def plans(self) -> Run:
        self.order.look()
        self.dealt.begin(cast("Any", self.order))
        return self

    def has(self, place: TopicPartition = P) -> bool:
        return self.dealt.has(place)

    def is_over(self) -> bool:
        self.order.look()
        return self.dealt.is_over(cast("Any", self.order))


# Records.


def test_a_deal_is_read_as_it_was_written() -> None:
    one = Deal(number=7, of=16, shares={("t", 0): 15, ("t", 3): 0, ("ü", 1): 9}, moved={("t", 3): 11, ("gone", 2): 1})
    key = deal_key(FLOW, HERE, one)
    assert Deal.parse(json.loads(key)[1], json.loads(one.to_json())) == one
    assert is_mark(key)
    assert parse(key, one.to_json()) is None


def test_a_deal_of_twenty_thousand_partitions_is_far_below_a_megabyte() -> None:
    single = {(f"customer-{number * 7919 % 65_537}.orders.events-v2", 0): number % 16 for number in range(20_000)}
    several = {(f"orders.events-{number // 50}", number % 50): number * 7 % 16 for number in range(20_000)}
    for shares in (single, several):
        assert len(Deal(number=1, of=16, shares=shares, moved=shares).to_json()) < 300_000


@pytest.mark.parametrize(
    "value",
    [b"5", b"{}", b'{"dealt": "?"}', b'{"dealt": "e30="}', Deal(number=1, of=9, shares={P: 8}).to_json()],
)
def test_a_malformed_deal_does_not_count(value: bytes) -> None:
    marks = RunMarks("A")
    key = deal_key(FLOW, HERE, Deal(number=1, of=3))
    assert marks.take(key, value, 1, now=0.0, is_news=True)
    assert marks.deal(HERE, 3) is None


def test_an_earlier_version_ignores_deals_as_malformed_marks() -> None:
    """It reads `renewedMs` of every record with this prefix."""
    assert "renewedMs" not in json.loads(Deal(number=1, of=3).to_json())


def test_the_first_deal_with_a_number_counts_for_each_reader_also_after_compaction() -> None:
    """A run that was suspended before its write writes the number that another one has taken."""
    log = Log()
    one = log.deal(moving(1, P, former=0, to=1))
    log.deal(moving(2, P, former=1, to=2))
    log.deal(moving(2, P, former=1, to=0))
    log.deal(moving(1, P, former=0, to=0))
    for reader in (log, log.compacted()):
        found = reader.marks().deal(HERE, OF)
        assert found is not None
        assert (found.number, found.share_of(P)) == (2, 2)
    assert set(log.marks().earlier_deals(HERE, OF)) == {one, log.records[3][0]}
    log.delete(one)
    found = log.compacted().marks().deal(HERE, OF)
    assert found is not None
    assert found.share_of(P) == 2
    assert len(log.marks().earlier_deals(HERE, OF)) == 1


def test_each_number_of_functions_and_each_deployment_has_its_own_deals() -> None:
    log = Log()
    log.deal(moving(1, P, former=0, to=1))
    assert log.marks().deal(HERE, 4) is None
    assert log.marks().deal("there", OF) is None
    assert log.marks().dealt_at(HERE, OF) == log.now


def test_a_mark_of_an_earlier_version_shows_no_deal() -> None:
    log = Log()
    log.mark("one", 0, 4)
    marks = log.marks()
    (mark,) = marks.valid(FLOW, now_ms=NOW_MS, now=log.now)
    assert mark.deal == 4
    said = {"renewedMs": NOW_MS, "validMs": VALID_MS}
    assert marks.take(key_of(FLOW, "old"), json.dumps(said).encode(), 9, now=0.0, is_news=True)
    assert marks.valid(FLOW, now_ms=NOW_MS, now=0.0)[-1].deal == 0


# What a run copies.


def test_without_a_deal_and_for_what_it_does_not_name_the_hash_decides() -> None:
    log = Log()
    run = Run(log, 1).plans()
    assert all(run.has(place) for place in by_hash(1))
    moved = by_hash(1)[0]
    log.deal(moving(1, moved, former=1, to=2))
    assert run.is_over()
    run.plans()
    assert not run.has(moved)
    assert all(run.has(place) for place in by_hash(1)[1:])
    assert not any(run.has(place) for place in by_hash(2))


def test_a_moved_partition_belongs_to_nobody_until_its_former_owner_s_mark_shows_the_deal() -> None:
    log = Log()
    place = by_hash(0)[0]
    log.mark("giver", 0, 0)
    giver, taker, other = (Run(log, number).plans() for number in range(3))
    log.deal(moving(1, place, former=0, to=1))
    # The one who loses it ends its lease, and shows the deal once it copies nothing.
    assert giver.is_over()
    assert giver.order.shown == 0
    # The one who gets it continues with what it has, and so does the one that is not concerned.
    assert not taker.is_over()
    assert not other.is_over()
    assert (taker.order.shown, other.order.shown) == (1, 1)
    assert not taker.has(place)
    # One that plans meanwhile does not get it either, and looks for it from then on.
    late = Run(log, 1).plans()
    assert not late.has(place)
    assert not late.is_over()
    giver.plans()
    assert (giver.order.shown, giver.has(place)) == (1, False)
    log.mark("giver", 0, 1)
    for one in (taker, late):
        assert one.is_over()
        assert one.plans().has(place)
        assert not one.is_over()
    assert not other.is_over()


def test_a_partition_of_a_run_that_was_killed_is_copied_when_its_mark_has_expired() -> None:
    log = Log()
    place = by_hash(0)[0]
    log.mark("killed", 0, 0)
    taker = Run(log, 1).plans()
    log.deal(moving(1, place, former=0, to=1))
    assert not taker.is_over()
    log.now += VALID_MS / 1_000 - 1
    assert not taker.plans().has(place)
    log.now += 2
    log.mark("next of 0", 0, 1)  # which claimed after the deal, and has read it
    assert taker.is_over()
    assert taker.plans().has(place)


def test_a_run_that_is_not_ready_to_read_the_marks_waits_with_what_it_got() -> None:
    """Marks that it did not read may have been renewed."""
    log = Log()
    place = by_hash(0)[0]
    run = Run(log, 1)
    log.deal(moving(1, place, former=0, to=1))
    run.order.look()
    log.is_away = True
    run.dealt.begin(cast("Any", run.order))
    assert not run.has(place)
    log.is_away = False
    assert run.is_over()
    assert run.plans().has(place)


def test_a_run_that_was_suspended_over_a_deal_copies_nothing_that_was_moved() -> None:
    """Its mark has expired meanwhile: it knows when it wakes (`MarkWriter.is_stale`), and plans by the newest deal."""
    log = Log()
    place, other = by_hash(0)[:2]
    log.mark("suspended", 0, 0)
    suspended = Run(log, 0).plans()
    assert suspended.has(place)
    log.deal(moving(1, place, former=0, to=1))
    log.now += VALID_MS / 1_000 + 1
    log.mark("next of 0", 0, 1)
    assert Run(log, 1).plans().has(place)
    log.deal(Deal(number=2, of=OF, shares={place: 1, other: 2}, moved={other: 0}))
    assert suspended.is_over()
    suspended.plans()
    assert suspended.order.shown == 2
    assert not suspended.has(place)
    assert not suspended.has(other)


def test_a_deal_after_which_another_one_was_missed_ends_the_lease() -> None:
    log = Log()
    run = Run(log, 1).plans()
    log.deal(moving(1, P, former=1, to=2))
    log.deal(replace(moving(2, P, former=2, to=0), moved={}))
    assert run.is_over()


def test_what_was_held_back_is_planned_when_the_next_deal_comes() -> None:
    """Which is written only after each valid mark showed the one before."""
    log = Log()
    place = by_hash(0)[0]
    log.mark("giver", 0, 0)
    log.deal(moving(1, place, former=0, to=1))
    run = Run(log, 1).plans()
    assert not run.has(place)
    log.mark("giver", 0, 1)
    log.deal(Deal(number=2, of=OF, shares={place: 1}))
    assert run.is_over()
    assert run.plans().has(place)


def test_a_topic_that_was_recreated_has_no_deal_and_the_hash_decides() -> None:
    log = Log()
    place = by_hash(0)[0]
    log.deal(moving(3, place, former=0, to=1))
    run = Run(log, 1).plans()
    assert (run.has(place), run.order.shown) == (True, 3)
    log.records.clear()
    assert run.is_over()
    run.plans()
    assert (run.has(place), run.order.shown) == (False, 0)


# When share 0 deals.


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def rows(ends: dict[TopicPartition, int], *, lag: int = 0) -> list[LeaseRow]:
    return [
        LeaseRow(topic=place[0], partition=place[1], remote_topic="r", source_end=end, last_offset=end - lag - 1)
        for place, end in ends.items()
    ]


def dealer(rates: dict[TopicPartition, int], *, of: int = OF) -> tuple[Dealer, Clock]:
    """One that has seen two plans, a minute apart."""
    clock = Clock()
    one = Dealer(of, clock=clock)
    one.planned(rows(dict.fromkeys(rates, 5_000)))
    clock.now += 60
    one.planned(rows({place: 5_000 + 60 * rate for place, rate in rates.items()}))
    return one, clock


def test_what_arrives_between_two_plans_is_dealt() -> None:
    hot = dict.fromkeys(by_hash(0), 1_000)
    one, _ = dealer(hot | dict.fromkeys(by_hash(1), 1))
    found = one.next_deal(None, None)
    assert found is not None
    assert (found.number, found.of) == (1, OF)
    assert [[found.shares[place] for place in hot].count(share) for share in range(OF)] == [2, 2, 2]
    assert found.moved == {place: 0 for place in hot if found.shares[place] != 0}
    assert one.next_deal(found, -dealing.EVERY_S) is None


def test_one_plan_says_nothing_and_a_deal_is_followed_by_none_for_minutes() -> None:
    hot = dict.fromkeys(by_hash(0), 1_000)
    fresh = Dealer(OF)
    fresh.planned(rows(hot))
    assert fresh.next_deal(None, None) is None
    one, clock = dealer(hot)
    last = Deal(number=4, of=OF, shares=dict.fromkeys(hot, 2))
    assert one.next_deal(last, clock.now) is None
    clock.now += dealing.EVERY_S
    found = one.next_deal(last, clock.now - dealing.EVERY_S)
    assert found is not None
    assert found.number == 5
    assert set(found.moved.values()) == {2}


def test_few_bytes_are_not_dealt() -> None:
    one, _ = dealer(dict.fromkeys(by_hash(0), 1))
    assert one.next_deal(None, None) is None


def test_the_backlog_counts_but_for_what_is_halted() -> None:
    clock = Clock()
    one = Dealer(OF, clock=clock)
    ends = dict.fromkeys(by_hash(0), 100_000)
    one.planned(rows(ends, lag=50_000))
    clock.now += 60
    one.planned(rows(ends, lag=50_000))
    assert one.next_deal(None, None) is not None
    halted = Known(halt=Halt(epoch=0, offset=5, kind=GapKind.RETENTION, reason="records are missing"))
    one.planned([replace(row, known=halted.to_json()) for row in rows(ends, lag=50_000)])
    assert one.next_deal(None, None) is None


def test_records_count_by_the_size_of_their_topics() -> None:
    hot = by_hash(0)
    one, _ = dealer(dict.fromkeys(hot, 100) | {("large", number): 100 for number in range(3)})
    one.lease_ended(
        [report("t", records=10_000, copied_bytes=10_000), report("large", records=5_000, copied_bytes=5_000_000_000)]
    )
    found = one.next_deal(None, None)
    assert found is not None
    large = {place: share for place, share in found.shares.items() if place[0] == "large"}
    assert sorted(large.values()) == [0, 1, 2]
    assert not [place for place in found.moved if place[0] == "t"]


def test_new_partitions_are_dealt_with_the_next_deal_and_what_is_gone_is_the_hash_s() -> None:
    hot = dict.fromkeys(by_hash(0), 1_000)
    new = by_hash(1)[0]
    gone = by_hash(2)[0]
    one, _ = dealer(hot | {new: 1_000})
    last = Deal(number=1, of=OF, shares=dict.fromkeys(hot, 0) | {gone: 1})
    found = one.next_deal(last, -1_000.0)
    assert found is not None
    assert found.shares[new] in {1, 2}
    assert gone not in found.shares
    assert found.moved[gone] == 1
    assert found.share_of(gone) == 2


# Which run may deal.


def test_only_the_first_run_of_share_0_deals_and_when_all_others_copy_by_the_last_deal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log()
    monkeypatch.setattr(run_order, "MarkReader", lambda _: SimpleNamespace(marks=log.marks(), read=log.marks))
    monkeypatch.setattr(run_order, "MarkWriter", lambda *_, **__: SimpleNamespace(key=key_of(FLOW, "own"), claimed=0))
    monkeypatch.setattr(run_order, "time", SimpleNamespace(time=lambda: NOW_MS / 1_000, monotonic=lambda: log.now))

    def may(number: int = 0, *, besides: str = "") -> bool:
        if besides:
            log.mark(besides, 1, 0)
        order = RunOrder(FLOW, run="own", engine="functions", share=Share(number, OF), deployment=HERE)
        return order.may_deal()

    log.mark("own", 0, 0)
    log.mark("one", 1, 0)
    assert not may()  # share 2 has no run
    log.mark("two", 2, 0)
    assert may()
    assert not may(1)
    log.deal(moving(1, P, former=1, to=2))
    assert not may()
    log.mark("own", 0, 1)
    log.mark("one", 1, 1)
    assert not may()
    log.mark("two", 2, 1)
    assert may()
    assert not may(besides="next of 1")  # it may still plan by hash
    log.mark("next of 1", 1, 1)
    assert may()
    log.mark("of another number", 0, 1, of=4)
    assert not may()
    log.delete(key_of(FLOW, "of another number"))
    assert may()
    log.delete(key_of(FLOW, "own"))
    log.mark("earlier", 0, 1)
    log.mark("own", 0, 1)
    assert not may()
