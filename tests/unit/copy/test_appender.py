"""How batches are sent: several requests in flight, partitions in order; leaders that are throttled or lost."""

# ruff: noqa: ARG002 -- a fake takes what the real one takes
from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import CHECKSUM_STARTS_AT, BatchHeader
from mirrorless.batches.stamp import stamp
from mirrorless.copy.partition.pending import Pending
from mirrorless.copy.slot.appender import Appender
from mirrorless.copy.slot.send_queues import SendQueues
from mirrorless.kafka_python.connection_manager import ExtraConnection
from tests.support.fake_cluster import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.kafka_python.connection_manager import Node
    from tests.support.fake_flow import FakeFlow

KIB = 1 << 10


class Outcome:
    """Keeps what became of each batch, by partition; an acknowledgement moves the copy."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str]] = []
        self.raises: BaseException | None = None

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        if self.raises is not None:
            raise self.raises
        copy.acknowledge(pending, base_offset, now_ms=pending.max_timestamp_ms)
        self.heard.append((copy.row.partition, f"at {base_offset}"))

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None, records: int = 0) -> None:
        self.heard.append((copy.row.partition, f"code {code}"))

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        self.heard.append((copy.row.partition, str(error) or type(error).__name__))


class Sending:
    """An appender, and copies of 300 partitions."""

    def __init__(self, flow: FakeFlow, *, most_in_flight_bytes: int = 64 << 20) -> None:
        self.flow, self.loop, self.target = flow, flow.loop, flow.target
        self.queues = SendQueues(flow.target.client, most_in_flight_bytes=most_in_flight_bytes)
        self.outcome = Outcome()
        self.raised: list[BaseException] = []
        self.appender = Appender(
            flow.target.client,
            self.queues,
            self.outcome,
            holes=cast("Any", None),
            sleep=flow.loop.sleep,
            spawn=self._spawn,
        )
        self.copies = [flow.copy_of(flow.row(partition)) for partition in range(flow.partitions)]
        for copy in self.copies:
            copy.bind_topics(None, flow.target.topic_id("A.t"))
            copy.resume_at(0, epoch=0, sequence=0, last_downstream=-1, node=1)

    def _spawn(self, work: object) -> None:
        async def watched() -> None:
            try:
                await work  # type: ignore[misc]
            except BaseException as error:  # noqa: BLE001
                self.raised.append(error)

        self.loop.call_soon(watched())

    def queue(self, partition: int = 0, *, size_bytes: int = 1_000, age_ms: int = 0) -> bool:
        """Queue a batch of one record and offer it."""
        copy = self.copies[partition]
        offset, timestamp_ms = copy.fetch_from, self.loop.now_ms - age_ms
        body = bytes(size_bytes - 61)
        header = BatchHeader(offset, size_bytes - 12, -1, 2, 0, 0, 0, timestamp_ms, timestamp_ms, -1, -1, -1, 1)
        header = header._replace(checksum=checksum(header.pack()[CHECKSUM_STARTS_AT:], body))
        batch = stamp(header, body, producer_id=copy.producer_id, producer_epoch=0, base_sequence=copy.next_sequence)
        pending = Pending(batch, offset, offset, 1, copy.next_sequence, timestamp_ms, -1)
        self.queues.enqueue(copy, pending, now_ms=timestamp_ms)
        return self.queues.offer(copy)

    def remember(self) -> None:
        """Have the target acknowledge a batch of each copy, so that it remembers their producers."""
        for partition in range(len(self.copies)):
            self.queue(partition)
        self.appender.pump()
        self.loop.run_for(0.1)
        self.outcome.heard.clear()
        self.target.sent.clear()


@pytest.fixture
def sending(make_flow: Callable[..., FakeFlow]) -> Iterator[Sending]:
    found = Sending(make_flow(partitions=300))
    yield found
    assert found.raised == []


def partitions(sent: list[tuple[Node, list[TopicPartition]]]) -> list[list[int]]:
    return [[partition for _, partition in places] for _, places in sent]


def test_one_request_has_a_batch_of_every_partition(sending: Sending) -> None:
    for partition in range(200):
        sending.queue(partition)
    sending.appender.pump()
    assert partitions(sending.target.sent) == [list(range(200))]
    assert sending.queues.queued_bytes == 0
    sending.loop.run_for(0.01)
    assert sending.outcome.heard == [(partition, "at 0") for partition in range(200)]


def test_a_request_holds_two_mib_and_the_rest_goes_in_the_next(sending: Sending) -> None:
    for partition in range(5):
        sending.queue(partition, size_bytes=60 * KIB)
    sending.appender.pump()
    for partition in range(5, 45):
        sending.queue(partition, size_bytes=60 * KIB)
    sending.appender.pump()
    sizes = [len(places) for _, places in sending.target.sent]
    assert sum(sizes) == 45
    assert max(sizes) <= 34  # of 60 KiB each, in 2 MiB


def test_a_partition_sends_one_batch_until_its_producer_is_remembered_and_then_five(sending: Sending) -> None:
    for _ in range(7):
        sending.queue(0)
    sending.appender.pump()
    assert len(sending.target.sent) == 1
    sending.loop.run_for(0.0011)
    assert len(sending.target.sent) == 1 + 5
    assert sending.copies[0].in_flight == 5
    sending.loop.run_for(0.1)
    assert sending.outcome.heard == [(0, f"at {offset}") for offset in range(7)]


def test_old_records_are_sent_one_batch_after_the_other(sending: Sending) -> None:
    for _ in range(4):
        sending.queue(0, age_ms=86_400_000)
    sending.appender.pump()
    for sent in range(1, 5):
        assert (len(sending.target.sent), sending.copies[0].in_flight) == (sent, 1)
        sending.loop.run_for(0.0011)
    assert [at for _, at in sending.outcome.heard] == ["at 0", "at 1", "at 2", "at 3"]


def test_a_partition_keeps_its_connection_while_it_has_something_to_send(sending: Sending) -> None:
    sending.remember()
    for _ in range(5):
        for partition in range(2):
            sending.queue(partition, size_bytes=700 * KIB)
    sending.appender.pump()
    by_node: dict[object, set[int]] = {1: set(), ExtraConnection(1, 2): set()}
    for node, places in sending.target.sent:
        by_node[node] |= {partition for _, partition in places}
    assert sorted(map(sorted, by_node.values())) == [[0], [1]]


def test_small_batches_go_by_one_connection(sending: Sending) -> None:
    sending.remember()
    for partition in range(100):
        sending.queue(partition)
    sending.appender.pump()
    assert {node for node, _ in sending.target.sent} == {1}


def test_a_copy_whose_leader_has_moved_is_not_sent(sending: Sending) -> None:
    sending.target.leaders["A.t", 0] = 2
    assert not sending.queue(0)
    sending.appender.pump()
    assert sending.target.sent == []


def test_a_copy_whose_topic_was_created_again_is_not_sent(sending: Sending) -> None:
    sending.target.create("A.t", 300)
    assert not sending.queue(0)


def test_what_is_withdrawn_is_not_sent(sending: Sending) -> None:
    sending.queue(0)
    sending.queue(1)
    sending.queues.withdraw(sending.copies[0])
    assert sending.queues.queued_bytes == 1_000
    sending.appender.pump()
    assert partitions(sending.target.sent) == [[1]]


def test_an_error_is_its_partitions_alone(sending: Sending) -> None:
    sending.target.append_errors["A.t", 1].append(6)
    for partition in range(3):
        sending.queue(partition)
    sending.appender.pump()
    sending.loop.run_for(0.01)
    assert sending.outcome.heard == [(0, "at 0"), (1, "code 6"), (2, "at 0")]


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ANSWER_LOST])
def test_a_lost_connection_is_heard_of_by_each_partition(sending: Sending, fault: Fault) -> None:
    sending.target.faults.append(fault)
    for partition in range(3):
        sending.queue(partition)
    sending.appender.pump()
    assert sending.queues.in_flight == 1
    sending.loop.run_for(0.01)
    assert [partition for partition, _ in sending.outcome.heard] == [0, 1, 2]
    assert all("connection lost" in why for _, why in sending.outcome.heard)
    assert (sending.queues.in_flight, sending.copies[0].in_flight) == (0, 0)


def test_a_request_that_cannot_be_sent_holds_back_the_next_on_its_connection(sending: Sending) -> None:
    sending.target.faults += [Fault.NOT_SENT, Fault.NOT_SENT]
    for partition in range(4):
        sending.queue(partition)
        sending.appender.pump()
    assert [node for node, _ in sending.target.sent] == [1, ExtraConnection(1, 2)]
    sending.loop.run_for(0.01)
    assert dict(sending.outcome.heard) == {
        0: "KafkaConnectionError: connection lost",
        1: "KafkaConnectionError: connection lost",
        2: "at 0",
        3: "at 0",
    }


def test_a_second_connection_that_failed_is_avoided(sending: Sending) -> None:
    sending.remember()
    for partition in range(2):
        sending.queue(partition, size_bytes=700 * KIB)
    sending.target.faults += [None, Fault.NOT_SENT]
    sending.appender.pump()
    sending.loop.run_for(0.01)
    assert [node for node, _ in sending.target.sent] == [1, ExtraConnection(1, 2)]
    sending.target.sent.clear()
    for partition in range(2, 6):
        sending.queue(partition, size_bytes=700 * KIB)
    sending.appender.pump()
    sending.loop.run_for(0.01)
    assert {node for node, _ in sending.target.sent} == {1}


def test_a_throttled_leader_is_sent_nothing_and_then_one_request_at_a_time(sending: Sending) -> None:
    sending.remember()
    sending.target.quiet[1] = 2.0
    for _ in range(3):
        sending.queue(0)
    sending.appender.pump()
    sending.loop.run_for(1.9)
    assert sending.target.sent == []
    sending.target.quiet[1] = 0.0
    sending.loop.run_for(0.1005)
    assert len(sending.target.sent) == 1
    sending.loop.run_for(0.1)
    assert [at for _, at in sending.outcome.heard] == ["at 1", "at 2", "at 3"]


def test_throttling_is_counted_where_something_is_left_to_send(sending: Sending) -> None:
    for _ in range(2):
        sending.queue(0)
    sending.queue(1)
    sending.appender.pump()
    sending.target.quiet[1] = 0.5
    sending.loop.run_for(0.0011)
    assert [copy.stats.produce_throttle_ms for copy in sending.copies[:2]] == [500, 0]


def test_after_close_nothing_is_sent_and_what_is_in_flight_is_heard_of(sending: Sending) -> None:
    for _ in range(2):
        sending.queue(0)
    sending.appender.pump()
    sending.appender.close()
    sending.loop.run_for(1)
    assert (len(sending.target.sent), sending.outcome.heard) == (1, [(0, "at 0")])


def test_an_answer_that_leaves_a_partition_out_is_no_answer_for_it(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending.target, "append_at_once", lambda _node, _batches, heard: heard([]) or True)
    sending.queue(0)
    sending.appender.pump()
    assert sending.outcome.heard == [(0, "cluster target: the answer to an append left a partition out")]
    sending.loop.run_for(0.01)


def test_a_bug_ends_the_lease_and_not_the_client(sending: Sending) -> None:
    sending.outcome.raises = ZeroDivisionError()
    sending.queue(0)
    sending.appender.pump()
    sending.loop.run_for(0.01)
    assert sending.raised.pop() is sending.outcome.raises


def test_what_is_no_error_of_kafka_is_a_bug(sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ZeroDivisionError()
    monkeypatch.setattr(sending.target, "append_at_once", lambda _node, _batches, heard: heard(error) or True)
    sending.queue(0)
    sending.appender.pump()
    sending.loop.run_for(0.01)
    assert sending.raised.pop() is error


def test_a_leader_whose_queue_was_empty_is_sent_something_however_much_others_have_in_flight(
    make_flow: Callable[..., FakeFlow],
) -> None:
    flow = make_flow(partitions=8)
    for partition in range(4, 8):
        flow.target.leaders["A.t", partition] = 2
    sending = Sending(flow, most_in_flight_bytes=200 * KIB)
    for partition in range(4, 8):
        sending.copies[partition].resume_at(0, epoch=0, sequence=0, last_downstream=-1, node=2)
    for partition in range(8):
        sending.queue(partition, size_bytes=100 * KIB)
    sending.appender.pump()
    sending.loop.run_for(0.1)  # nothing else has it sent
    assert sorted(sending.outcome.heard) == [(partition, "at 0") for partition in range(8)]
    assert sending.queues.in_flight_bytes == sending.queues.queued_bytes == 0
