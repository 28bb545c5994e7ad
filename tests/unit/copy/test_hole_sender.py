"""Holes and batches of a partition take turns, in the order in which they were fetched, each alone at a hole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.batches.stamp import Stamped
from mirrorless.copy.partition.exact_state import ExactState
from mirrorless.copy.partition.pending import Pending, hole
from mirrorless.copy.slot.hole_sender import HoleSender
from mirrorless.copy.slot.send_queues import SendQueues
from tests.support.fake_flow import FakeFlow

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy


class Order:
    """Queues of one partition; `sent` has each batch and hole when it is sent, by source offsets."""

    def __init__(self, flow: FakeFlow) -> None:
        self.flow = flow
        self.queues = SendQueues(flow.target.client)
        self.copy = flow.copy_of()
        self.copy.exact = ExactState("source")
        self.copy.bind_topics(None, flow.target.topic_id("A.t"))
        self.copy.resume_at(0, epoch=0, sequence=0, last_downstream=-1, node=1)
        self.sent: list[tuple[str, int, int]] = []
        self.in_flight: list[Pending] = []
        self.holes: list[Any] = []
        self.sender = HoleSender(
            self.queues, cast("Any", self), cast("Any", self), spawn=cast("Any", self.holes.append)
        )

    # As `HoleWriter` and `HoleOutcome`

    async def write(self, copy: PartitionCopy, node: int, start: int, end: int) -> None:
        assert node == copy.node
        self.sent.append(("hole", start, end))

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        copy.acknowledge(pending, base_offset, now_ms=self.flow.loop.now_ms)

    def take(self, *parts: tuple[str, int, int]) -> None:
        """Queue what was fetched."""
        now_ms = self.flow.loop.now_ms
        for kind, start, end in parts:
            sequence = self.copy.next_sequence
            pending = hole(start, end, sequence=sequence, leader_epoch=-1, now_ms=now_ms)
            if kind == "batch":
                pending = Pending(Stamped(b"", b"x", 100), start, end - 1, end - start, sequence, now_ms, -1)
            self.queues.enqueue(self.copy, pending, now_ms=now_ms)
        assert self.queues.offer(self.copy)
        self.pump()

    def pump(self) -> None:
        self.sender.pump(self.pump)  # as for a connection whose turn is before that of this partition
        for queue in self.queues:
            while taken := self.queues.take_request(queue):
                ((_, pending),) = taken.values()
                self.sent.append(("batch", pending.base_offset, pending.last_offset + 1))
                self.in_flight.append(pending)
        self.sender.pump(self.pump)

    def acknowledge(self) -> None:
        """Have the target acknowledge the oldest batch."""
        pending = self.in_flight.pop(0)
        self.copy.window.answered()
        self.appended(self.copy, pending, pending.base_offset)
        self.pump()

    def finish_hole(self) -> None:
        """Have the target acknowledge the markers."""
        self.flow.loop.run(self.holes.pop(0))


@pytest.fixture
def order(monkeypatch: pytest.MonkeyPatch) -> Order:
    return Order(FakeFlow(monkeypatch))


BATCH, HOLE, NEXT, LAST = ("batch", 0, 2), ("hole", 2, 3), ("batch", 3, 5), ("hole", 5, 6)


def test_each_waits_for_the_one_before(order: Order) -> None:
    order.take(BATCH, HOLE, NEXT, LAST)
    assert (order.sent, order.holes) == ([BATCH], [])
    order.acknowledge()
    assert (order.sent, len(order.holes)) == ([BATCH], 1)
    order.pump()  # nothing is sent while markers are on their way
    assert order.sent == [BATCH]
    order.finish_hole()
    assert order.sent == [BATCH, HOLE, NEXT]
    order.acknowledge()
    order.finish_hole()
    assert order.sent == [BATCH, HOLE, NEXT, LAST]
    assert order.copy.acked is not None
    assert (order.copy.acked.last_offset, order.copy.acked.last_downstream, order.copy.acked.sequence) == (5, 5, 4)
    assert order.queues.in_flight == 0


def test_records_that_are_fetched_while_markers_are_on_their_way_are_no_hole(order: Order) -> None:
    order.take(BATCH, HOLE)
    order.acknowledge()
    order.take(NEXT)
    order.finish_hole()
    assert order.sent == [BATCH, HOLE, NEXT]
    order.take(LAST)
    assert order.holes == []
    order.acknowledge()
    order.finish_hole()
    assert order.sent == [BATCH, HOLE, NEXT, LAST]
