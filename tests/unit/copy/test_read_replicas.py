"""The closest replica (KIP-392): followers send records, and only leaders show what a log does not have."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.errors import GapKind
from mirrorless.kafka_python.connection_manager import ExtraConnection
from tests.support.fake_cluster import Follower
from tests.support.fake_flow import FakeFlow
from tests.unit.copy.test_fetcher import Fetching

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.kafka_python.connection_manager import Node

LEADER, NEAR, OTHER = 1, 2, 3
RACK = "use1-az1"
PLACE = ("t", 0)


class Near(Fetching):
    """A fetcher in the rack of broker 2, which follows; broker 1 leads."""

    def __init__(self, flow: FakeFlow, *, bounded: bool = False, behind: int = 0, start: int = 0) -> None:
        flow.source.rack = RACK
        flow.source.followers[PLACE, NEAR] = self.follower = Follower(behind=behind, start=start)
        flow.source.followers[PLACE, OTHER] = Follower()
        flow.source.nearest[PLACE] = NEAR
        super().__init__(flow, bounded=bounded)

    def copy_for(self, seconds: float, *, at: int = 0, leader_epoch: int | None = None) -> PartitionCopy:
        """Copy as a lease does, which assigns partitions every second."""
        copy = self.resume(at=at, leader_epoch=leader_epoch)
        self.more(seconds)
        return copy

    def more(self, seconds: float) -> None:
        while seconds > 0:
            self.fetcher.assign()
            self.run(min(1.0, seconds))
            seconds -= 1.0

    def offsets(self) -> list[int]:
        """Offsets of all records in the queue; small batches are merged."""
        return [offset for first, last in self.queued() for offset in range(first, last + 1)]

    @property
    def asked(self) -> list[tuple[Node, str]]:
        """Connection and rack of each fetch, without repetitions."""
        found: list[tuple[Node, str]] = []
        for node, rack, _ in self.source.fetches:
            if (node, rack) not in found[-1:]:
                found.append((node, rack))
        return found

    def nothing_is_wrong(self) -> bool:
        return (self.events.heard, self.events.gaps) == ([], [])


def produced(flow: FakeFlow, records: int = 4) -> None:
    for number in range(records):
        flow.produce(b"%d" % number)


def everything(records: int = 4) -> list[int]:
    return list(range(records))


def test_the_replica_that_the_leader_names_is_read(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    copy = near.copy_for(5.0)
    assert near.offsets() == everything()
    assert near.asked == [(LEADER, RACK), (NEAR, RACK)]
    assert copy.stats.fetched_bytes == copy.stats.follower_bytes > 0
    assert near.nothing_is_wrong()


def test_without_a_rack_the_leader_is_read(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    flow.source.rack = ""
    copy = near.copy_for(5.0)
    assert (near.offsets(), near.asked) == (everything(), [(LEADER, "")])
    assert (copy.stats.fetched_bytes > 0, copy.stats.follower_bytes) == (True, 0)


def test_an_answer_that_names_a_replica_is_no_hole(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    flow.source.hanging.add(NEAR)
    copy = near.copy_for(8.0)
    assert (copy.fetch_from, copy.source_end, copy.is_behind, copy.state) == (0, 4, True, PartitionState.COPYING)
    assert near.nothing_is_wrong()


def test_a_follower_that_hangs_is_left(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    flow.source.hanging.add(NEAR)
    near.copy_for(15.0)
    assert near.offsets() == everything()
    flow.source.hanging.clear()
    near.more(2.0)
    assert near.offsets() == everything()
    assert near.nothing_is_wrong()


def test_empty_answers_of_a_follower_are_no_hole_and_its_end_is_not_the_sources(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow, behind=2)
    copy = near.resume()
    near.more(1.5)
    assert (near.offsets(), copy.source_end, copy.is_behind) == (everything(2), 4, True)
    near.more(3.0)
    assert near.offsets() == everything()
    assert copy.state is PartitionState.COPYING  # its queue is not sent here
    assert (ExtraConnection(LEADER, 2), "") in near.asked
    assert near.nothing_is_wrong()


def test_a_follower_that_was_left_is_read_again(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow, behind=2)
    near.copy_for(6.0)
    near.follower.behind = 0
    near.more(5.0)
    assert near.asked[-1] == (NEAR, RACK)
    produced(flow, 2)
    near.more(2.0)
    assert near.offsets() == everything(6)


def test_a_follower_that_ends_before_the_position_is_not_asked_all_the_time(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.follower.hidden = 2
    copy = near.copy_for(60.0, at=4)
    assert (copy.fetch_from, copy.source_end, copy.state) == (4, 4, PartitionState.CAUGHT_UP)
    # A broker answers at once if the position is after its end, so the partition is left out for half a second.
    assert sum(node == NEAR for node, _, _ in flow.source.fetches) <= 4 * 60
    assert near.nothing_is_wrong()


def test_a_follower_that_learns_the_end_a_moment_later_stays(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.follower.hidden = 2
    near.copy_for(2.0, at=4)
    near.follower.hidden = 0
    produced(flow, 2)
    near.more(2.0)
    assert near.offsets() == [4, 5]
    assert near.asked[-1] == (NEAR, RACK)
    assert (ExtraConnection(LEADER, 2), "") not in near.asked


def test_lag_is_that_of_the_leader_while_the_follower_stands_still(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    copy = near.copy_for(2.0)
    near.follower.behind = 3
    produced(flow, 3)
    near.more(1.1)
    assert (copy.fetch_from, copy.source_end, copy.is_behind) == (4, 7, True)


@pytest.mark.parametrize(
    "code",
    [1, 3, 6, 9, 29, 56, 74, 75, 78, 100],
    ids=[
        "OFFSET_OUT_OF_RANGE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "NOT_LEADER_OR_FOLLOWER",
        "REPLICA_NOT_AVAILABLE",
        "TOPIC_AUTHORIZATION_FAILED",
        "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_ID",
    ],
)
def test_an_error_of_a_follower_is_a_reason_to_ask_the_leader(flow: FakeFlow, code: int) -> None:
    produced(flow)
    near = Near(flow)
    near.follower.errors = deque([code])
    near.copy_for(0.5)
    assert near.offsets() == everything()
    assert near.asked[:3] == [(LEADER, RACK), (NEAR, RACK), (ExtraConnection(LEADER, 2), "")]
    near.more(3.0)
    assert near.asked[-2:] == [(LEADER, RACK), (NEAR, RACK)]
    assert near.nothing_is_wrong()


def test_a_log_that_only_the_follower_calls_truncated_is_not(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow, behind=1)
    near.follower.diverges = True
    near.copy_for(0.2, at=1, leader_epoch=0)
    assert near.offsets() == everything()[1:]
    assert near.nothing_is_wrong()


def test_records_that_only_the_follower_has_deleted_are_read_from_the_leader(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow, start=2)
    near.copy_for(5.0)
    assert near.offsets() == everything()
    assert near.nothing_is_wrong()


def test_records_that_the_leader_has_deleted_too_are_a_gap(flow: FakeFlow) -> None:
    produced(flow)
    flow.source.log("t").delete_before(2)
    near = Near(flow, start=2)
    near.copy_for(5.0)
    (gap,) = near.events.gaps
    assert (gap.kind, gap.offset, gap.records) == (GapKind.RETENTION, 0, 2)


def test_records_that_only_the_follower_still_has_are_copied(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    copy = near.copy_for(1.0)
    copy.interrupt("failed", now=0)
    flow.source.log("t").start = 2
    near.fetcher.assign()
    copy.drop_queue()
    copy.resume_at(0, epoch=0, sequence=0, last_downstream=-1, node=1)
    near.fetcher.add(copy)
    near.more(1.0)
    assert near.offsets() == everything()
    assert near.nothing_is_wrong()


def test_a_follower_that_cannot_be_reached_costs_no_resume(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    flow.source.down.add(NEAR)
    near.copy_for(30.0)
    assert near.offsets() == everything()
    assert sum(node == NEAR for node, _, _ in flow.source.fetches) < 10  # the pauses grow
    assert flow.source.refreshed > 0
    assert near.nothing_is_wrong()


def test_a_replica_that_is_not_in_the_metadata_or_offline_is_not_read(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    flow.source.offline.add(NEAR)
    near.copy_for(5.0)
    assert near.offsets() == everything()
    assert NEAR not in {node for node, _ in near.asked}
    assert near.nothing_is_wrong()


def test_a_replica_that_goes_offline_is_left(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.copy_for(2.0)
    flow.source.offline.add(NEAR)
    near.more(1.5)
    del flow.source.fetches[:]
    near.more(2.0)
    assert NEAR not in {node for node, _ in near.asked}


def test_the_leader_is_asked_again_after_the_age_of_metadata(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.copy_for(250.0)
    assert near.asked == [(LEADER, RACK), (NEAR, RACK)]
    near.more(100.0)
    assert near.asked == [(LEADER, RACK), (NEAR, RACK)] * 2
    del flow.source.nearest[PLACE]
    near.more(300.0)
    assert near.asked[-1] == (LEADER, RACK)  # it is the nearest itself by now
    assert near.offsets() == everything()


def test_another_replica_is_read_where_the_leader_names_another(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.follower.errors = deque([9])
    flow.source.nearest[PLACE] = NEAR
    near.copy_for(0.5)
    flow.source.nearest[PLACE] = OTHER
    near.more(4.0)
    assert near.asked[-1] == (OTHER, RACK)


def test_a_new_leader_is_asked_again(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.copy_for(2.0)
    flow.source.leaders[PLACE] = OTHER
    near.more(2.0)
    assert near.asked[2:] == [(OTHER, RACK), (NEAR, RACK)]
    flow.source.leaders[PLACE] = NEAR
    del flow.source.nearest[PLACE]
    produced(flow, 1)
    near.more(2.0)
    assert near.offsets() == everything(5)
    assert near.nothing_is_wrong()


def test_an_answer_of_a_broker_that_leads_no_more_shows_nothing(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    flow.source.rack = ""
    flow.source.followers[PLACE, LEADER] = Follower(start=3)
    near.resume()
    near.run(0.0005)  # the request is on its way
    flow.source.leaders[PLACE] = OTHER
    near.run(0.1)
    assert near.offsets() == everything()
    assert near.nothing_is_wrong()


def test_a_follower_that_was_left_shows_no_hole(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.follower.cleaned = {2, 3}
    copy = near.resume()
    near.more(0.9)
    flow.source.hanging.add(LEADER)
    near.follower.errors.append(9)
    near.more(0.9)
    assert (near.offsets(), copy.fetch_from) == ([0, 1], 2)
    flow.source.hanging.clear()
    near.more(0.1)
    assert near.offsets() == everything()


def test_a_hole_at_the_end_is_passed_once_the_leader_has_shown_it(flow: FakeFlow) -> None:
    produced(flow, 1)
    flow.source.log("t").skip(4)
    near = Near(flow)
    copy = near.copy_for(10.0)
    assert (copy.fetch_from, near.offsets()) == (5, [0])
    assert (ExtraConnection(LEADER, 2), "") in near.asked
    near.more(10.0)
    assert near.asked[-1] == (NEAR, RACK)
    assert near.nothing_is_wrong()


def test_a_selector_that_names_replicas_to_everyone_hides_no_record(flow: FakeFlow) -> None:
    produced(flow)
    flow.source.names_to_all = True
    near = Near(flow)
    near.follower.behind = 2
    copy = near.copy_for(30.0)
    assert (near.offsets(), copy.fetch_from) == ([0, 1], 2)
    assert "names broker 2 to a consumer without a rack" in (copy.error or "")
    near.follower.behind = 0
    near.more(70.0)
    assert near.offsets() == everything()
    assert near.nothing_is_wrong()


def test_a_selector_that_names_an_unusable_replica_to_everyone_is_not_asked_all_the_time(flow: FakeFlow) -> None:
    produced(flow)
    flow.source.names_to_all = True
    near = Near(flow)
    near.follower.errors = deque([9] * 1_000)
    near.copy_for(20.0)
    assert len(flow.source.fetches) < 100


def test_an_open_transaction_is_the_leaders(flow: FakeFlow) -> None:
    produced(flow, 1)
    log = flow.source.log("t")
    log.produce([b"x"], transaction=7)
    near = Near(flow)
    copy = near.copy_for(3.0)
    held_by = copy.held_by
    assert held_by is not None
    assert (held_by.offset, near.offsets()) == (1, [0])
    log.end_transaction(7, first=1, commit=True)
    near.more(3.0)
    assert near.offsets() == [0, 1]
    assert copy.open_transaction is None


def test_a_bounded_copy_ends_at_the_leaders_end(flow: FakeFlow) -> None:
    produced(flow, 9)
    Near(flow, behind=5)
    (report,) = flow.run()
    assert (report.state, report.records, report.lag_records) == ("caught up", 9, 0)
    assert flow.copied() == [b"%d" % number for number in range(9)]
    assert 0 < report.follower_bytes < report.fetched_bytes


def test_a_topic_that_may_not_be_followed_is_read_from_its_leader(flow: FakeFlow) -> None:
    produced(flow, 10)
    flow.followable = False
    near = Near(flow)
    near.follower.cleaned = {2, 3}  # as compaction of the follower alone
    (report,) = flow.run()
    assert flow.copied() == [b"%d" % number for number in range(10)]
    assert (report.state, report.gaps, report.follower_bytes) == ("caught up", 0, 0)


def test_a_batch_that_only_the_follower_has_damaged_is_read_from_the_leader(flow: FakeFlow) -> None:
    produced(flow)
    near = Near(flow)
    near.follower.damaged = True
    near.copy_for(5.0)
    assert near.offsets() == everything()
    assert near.nothing_is_wrong()


def test_partitions_of_a_follower_that_stands_still_are_read_from_their_leaders_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = FakeFlow(monkeypatch, partitions=40)
    for partition in range(40):
        flow.produce(b"0", partition=partition)
        flow.source.followers[("t", partition), NEAR] = Follower(behind=1)
        flow.source.nearest["t", partition] = NEAR
    near = Near(flow, behind=1)
    for partition in range(40):
        near.resume(partition)
    near.more(6.0)
    assert all(copy.queue for copy in near.copies.values())


def test_pauses_do_not_grow_beyond_the_age_of_metadata(flow: FakeFlow) -> None:
    near = Near(flow)
    (copy,) = near.copies.values()
    for _ in range(2_000):
        near.fetcher._replicas.leave(copy, now=0.0)
    assert near.fetcher._replicas.broker_for(copy, now=flow.source.client.metadata_max_age_s + 1) == (LEADER, False)
