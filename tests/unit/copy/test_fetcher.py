"""What is fetched, and what is done with each response: decisions of the fetcher, against a source in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.flow.memory_limits import MemoryLimits
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.slot.fetcher import Fetcher
from mirrorless.copy.slot.rate_limit import RateLimit
from mirrorless.copy.slot.send_queues import SendQueues
from mirrorless.errors import GapKind
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.batches.header import FormatError
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.errors import Gap, PartitionError
    from tests.support.fake_flow import FakeFlow


class Events:
    """Keeps what the fetcher finds, and does to the copies what the error policy would."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.gaps: list[Gap] = []

    def position_changed(self, copy: PartitionCopy) -> None:
        if not copy.queue and copy.state in (PartitionState.COPYING, PartitionState.CAUGHT_UP):
            copy.settle()

    def retry_later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        self.heard.append(f"retry: {error}")
        copy.interrupt(str(error), now=0)

    def leave_to_next_lease(self, copy: PartitionCopy, reason: str) -> None:
        self.heard.append(f"leave: {reason}")
        copy.interrupt(reason, now=0)

    def halt(self, copy: PartitionCopy, error: PartitionError, *, finish_queue: bool = False) -> None:
        self.heard.append(f"halt: {error}{' after its queue' if finish_queue else ''}")
        copy.halt_with(str(error), finish_queue=finish_queue)

    def gap_found(self, copy: PartitionCopy, gap: Gap) -> None:
        self.gaps.append(gap)
        copy.interrupt(str(gap), now=0)

    def hole_at_end(self, copy: PartitionCopy, stable: int) -> None:
        copy.pass_hole(stable)
        self.position_changed(copy)

    def batch_damaged(self, copy: PartitionCopy, error: FormatError) -> None:
        self.heard.append(f"damaged: {error}")
        copy.interrupt(str(error), now=0)


class Fetching:
    """A fetcher of a topic's partitions; nothing is sent to the target."""

    def __init__(
        self,
        flow: FakeFlow,
        *,
        bounded: bool = False,
        buffer_bytes: int = 64 << 20,
        bytes_per_second: float | None = None,
        exempt: bool = False,
        is_first: bool = True,
    ) -> None:
        self.flow, self.loop, self.source = flow, flow.loop, flow.source
        self.events = Events()
        self.queues = SendQueues(flow.target.client)
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        for partition in range(flow.partitions):
            copy = flow.copy_of(flow.row(partition, is_first=is_first))
            copy.bind_topics(flow.source.topic_id("t"), flow.target.topic_id("A.t"))
            self.copies[copy.place] = copy
        self.raised: list[BaseException] = []
        self.sends = 0
        self.fetcher = Fetcher(
            source=flow.source.client,
            copies=self.copies,
            queues=self.queues,
            send=self._send,
            events=self.events,
            bounded=bounded,
            memory=MemoryLimits(queued=buffer_bytes),
            budget=RateLimit(bytes_per_second, now=flow.loop.monotonic(), exempt=lambda _: exempt),
            sleep=flow.loop.sleep,
            spawn=self._spawn,
        )

    def _send(self) -> None:
        self.sends += 1

    def _spawn(self, work: object) -> None:
        async def watched() -> None:
            try:
                await work  # type: ignore[misc]
            except BaseException as error:  # noqa: BLE001
                self.raised.append(error)

        self.loop.call_soon(watched())

    def resume(self, partition: int = 0, *, at: int = 0, leader_epoch: int | None = None) -> PartitionCopy:
        """Have a partition fetched from an offset on."""
        copy = self.copies["t", partition]
        copy.resume_at(at, epoch=0, sequence=0, last_downstream=-1, node=1, leader_epoch=leader_epoch)
        self.fetcher.add(copy)
        return copy

    def queued(self, partition: int = 0) -> list[tuple[int, int]]:
        """First and last offset of each batch in the queue."""
        return [(one.base_offset, one.last_offset) for one in self.copies["t", partition].queue]

    def run(self, seconds: float = 0.1) -> None:
        self.loop.run_for(seconds)
        assert self.raised == []


@pytest.fixture
def fetching(flow: FakeFlow) -> Fetching:
    return Fetching(flow)


def test_batches_are_queued_in_order_with_our_sequences(fetching: Fetching) -> None:
    fetching.flow.produce(b"a", b"b")
    fetching.flow.produce(b"c")
    copy = fetching.resume()
    fetching.run()
    assert fetching.queued() == [(0, 1), (2, 2)]
    assert [one.base_sequence for one in copy.queue] == [0, 2]
    assert (copy.fetch_from, copy.source_end, copy.state) == (3, 3, PartitionState.COPYING)
    assert fetching.queues.queued_bytes == copy.queued_bytes > 0
    assert fetching.sends > 0


def test_what_comes_later_is_fetched_too(fetching: Fetching) -> None:
    fetching.resume()
    fetching.run()
    fetching.flow.produce(b"a")
    fetching.run(1.0)
    assert fetching.queued() == [(0, 0)]


def test_a_bounded_lease_ends_where_the_source_ended_when_it_was_planned(flow: FakeFlow) -> None:
    flow.produce(b"a")
    flow.produce(b"b")
    fetching = Fetching(flow, bounded=True)
    flow.produce(b"c")
    fetching.resume()
    fetching.run()
    assert fetching.queued() == [(0, 0), (1, 1)]


def test_nothing_is_fetched_after_a_stop_and_an_answer_that_comes_later_is_dropped(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.resume()
    fetching.run(0.0005)  # the request is on its way
    fetching.fetcher.stop()
    fetching.run(1.0)
    assert (fetching.queued(), fetching.source.requests["fetch"]) == ([], 1)


def test_an_answer_for_a_copy_that_was_resumed_elsewhere_is_dropped(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.flow.produce(b"b")
    copy = fetching.resume()
    fetching.run(0.0005)
    copy.interrupt("failed", now=0)
    copy.resume_at(1, epoch=0, sequence=1, last_downstream=0, node=1)
    fetching.run(0.001)
    assert fetching.queued() == []
    fetching.run()
    assert fetching.queued() == [(1, 1)]


@pytest.mark.parametrize(
    ("code", "name"), [(6, "NOT_LEADER"), (3, "UNKNOWN_TOPIC"), (74, "FENCED_LEADER_EPOCH"), (100, "UNKNOWN_TOPIC_ID")]
)
def test_what_may_pass_is_retried(fetching: Fetching, code: int, name: str) -> None:
    fetching.source.fetch_errors["t", 0].append(code)
    fetching.resume()
    fetching.run()
    (heard,) = fetching.events.heard
    assert heard.startswith("retry: fetch: ")
    assert f"({code})" in heard, name


def test_a_missing_right_halts(fetching: Fetching) -> None:
    fetching.source.fetch_errors["t", 0].append(29)
    fetching.resume()
    fetching.run()
    (heard,) = fetching.events.heard
    assert heard.startswith("halt: t-0 at offset 0: the source refuses to be read: ")
    assert "grant READ on the topic" in heard


def test_a_lost_connection_is_retried_by_every_partition(make_flow: Callable[..., FakeFlow]) -> None:
    fetching = Fetching(make_flow(partitions=3))
    fetching.source.lost_fetches = 1
    for partition in range(3):
        fetching.resume(partition)
    fetching.run()
    assert fetching.events.heard == ["retry: KafkaConnectionError: connection lost"] * 3


def test_an_error_of_the_whole_request_halts(fetching: Fetching, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise kafka_errors.ClusterAuthorizationFailedError

    monkeypatch.setattr(fetching.source, "fetch", refused)
    fetching.resume()
    fetching.run()
    assert fetching.events.heard[0].startswith("halt: t-0 at offset 0: the source refuses to be read: ")


def test_without_a_leader_it_is_retried(fetching: Fetching) -> None:
    fetching.source.leaders["t", 0] = None
    fetching.resume()
    assert fetching.events.heard == ["retry: t-0 has no leader at the moment"]


def test_a_topic_that_was_created_again_is_resumed(fetching: Fetching) -> None:
    fetching.resume()
    fetching.run()
    fetching.source.create("t")
    fetching.run(1.0)
    assert fetching.events.heard == ["retry: t was deleted, or deleted and recreated"]


def test_a_new_leader_is_asked_once_the_partitions_are_assigned_again(fetching: Fetching) -> None:
    fetching.resume()
    fetching.run()
    fetching.source.leaders["t", 0] = 2
    fetching.fetcher.assign()
    fetching.flow.produce(b"a")
    fetching.run(1.0)
    assert fetching.queued() == [(0, 0)]


def test_a_target_whose_leader_has_moved_takes_nothing(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.flow.target.leaders["A.t", 0] = 2
    fetching.resume()
    fetching.run()
    assert fetching.events.heard == ["retry: A.t-0 has a new leader, or was deleted and recreated"]


# Gaps


def test_retention_was_faster(fetching: Fetching) -> None:
    for _ in range(3):
        fetching.flow.produce(b"a", b"b")
    fetching.source.log("t").delete_before(4)
    fetching.resume(at=1)
    fetching.run()
    (gap,) = fetching.events.gaps
    assert (gap.kind, gap.offset, gap.records) == (GapKind.RETENTION, 1, 3)
    assert "the source begins at 4, 3 offsets were deleted before they were copied" in str(gap)


def test_a_source_that_ends_before_the_position_was_truncated(fetching: Fetching) -> None:
    fetching.flow.produce(b"a", b"b")
    fetching.resume(at=5)
    fetching.run()
    (gap,) = fetching.events.gaps
    assert (gap.kind, gap.offset) == (GapKind.TRUNCATED, 2)


def test_a_log_that_diverges_from_what_was_read_was_truncated(fetching: Fetching) -> None:
    fetching.flow.produce(b"a", b"b", b"c")
    fetching.source.log("t").diverges_at = 2
    fetching.resume(at=3, leader_epoch=4)
    fetching.run()
    (gap,) = fetching.events.gaps
    assert (gap.kind, gap.offset) == (GapKind.TRUNCATED, 2)


def test_a_position_that_is_in_the_log_after_all_is_retried(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.source.fetch_errors["t", 0].append(1)
    fetching.resume()
    fetching.run()
    (heard,) = fetching.events.heard
    assert heard == "retry: fetch: OFFSET_OUT_OF_RANGE (1)"
    assert fetching.events.gaps == []


# Holes, transactions, limits


def test_offsets_without_records_are_passed(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.source.log("t").skip(4)
    fetching.flow.produce(b"b")
    copy = fetching.resume()
    fetching.run()
    assert fetching.queued() == [(0, 0), (5, 5)]
    assert copy.fetch_from == 6


def test_a_hole_at_the_end_is_passed_once_its_leader_was_asked_for_it_alone(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.source.log("t").skip(4)
    copy = fetching.resume(at=1)
    fetching.run(10.0)
    assert (copy.fetch_from, copy.state, fetching.events.heard) == (5, PartitionState.CAUGHT_UP, [])


def test_tiered_storage_that_answers_with_nothing_is_no_hole(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetching.flow.produce(b"a")
    fetching.source.log("t").skip(4)
    copy = fetching.resume(at=1)
    offsets = fetching.source.offsets

    async def local(node: int, places: list[TopicPartition], *, at: int, isolation: int = 0) -> object:
        found = await offsets(node, places, at=at, isolation=isolation)
        return {place: one._replace(offset=3) if at == -4 else one for place, one in found.items()}

    monkeypatch.setattr(fetching.source, "offsets", local)
    fetching.run(10.0)
    assert copy.fetch_from == 1
    assert copy.error == "the source answers with nothing at offset 1: its tiered storage is slow"


def test_an_open_transaction_holds_back_what_follows_it(fetching: Fetching) -> None:
    log = fetching.source.log("t")
    fetching.flow.produce(b"a")
    log.produce([b"x"], transaction=7)
    fetching.flow.produce(b"b")
    copy = fetching.resume()
    began = fetching.loop.monotonic()
    fetching.run(5.0)
    assert fetching.queued() == [(0, 0)]
    assert copy.held_by is not None
    assert (copy.held_by.offset, copy.held_by.log_end, copy.held_by.since - began < 1) == (1, 3, True)
    log.end_transaction(7, first=1, commit=True)
    fetching.run(5.0)
    assert fetching.queued() == [(0, 0), (1, 1), (2, 2)]
    assert copy.open_transaction is None


def test_a_position_after_an_open_transaction_is_not_asked_for_all_the_time(fetching: Fetching) -> None:
    log = fetching.source.log("t")
    log.produce([b"x"], transaction=7)
    fetching.flow.produce(b"b")
    fetching.resume(at=2)
    fetching.run(10.0)
    assert fetching.source.requests["fetch"] < 2 * 10.0 / 0.5 + 5


def test_a_throttled_leader_is_not_asked_and_the_time_is_counted(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.source.quiet[1] = 1.0
    copy = fetching.resume()
    fetching.run(1.0)
    assert fetching.source.requests["fetch"] == 0
    assert 900 <= copy.stats.fetch_throttle_ms <= 1_000
    fetching.source.quiet.clear()
    fetching.run(1.0)
    assert fetching.queued() == [(0, 0)]


@pytest.mark.parametrize(("exempt", "numbers"), [(True, [0, 1, 2]), (False, [0])])
def test_heartbeats_do_not_wait_for_the_limit(flow: FakeFlow, exempt: bool, numbers: list[int]) -> None:
    fetching = Fetching(flow, bytes_per_second=1, exempt=exempt)
    fetching.resume()
    for number in range(3):
        flow.produce(b"%d" % number)
        fetching.run(1.0)
    assert [first for first, _ in fetching.queued()] == numbers


def test_a_limit_of_bytes_per_second_is_kept(flow: FakeFlow) -> None:
    fetching = Fetching(flow, bytes_per_second=10_000)
    for _ in range(100):
        flow.produce(bytes(1_000))
    copy = fetching.resume()
    for _ in range(5):
        fetching.run(1.0)
        size = copy.queued_bytes
        copy.drop_queue()
        assert size <= 110_000
    assert fetching.source.requests["fetch"] <= 3


def test_a_full_buffer_stops_the_fetches(flow: FakeFlow) -> None:
    fetching = Fetching(flow, buffer_bytes=5_000)
    for _ in range(3):
        flow.produce(bytes(6_000))
    copy = fetching.resume()
    fetching.run(1.0)
    asked = fetching.source.requests["fetch"]
    flow.produce(bytes(6_000))
    fetching.run(1.0)
    assert (fetching.source.requests["fetch"], len(copy.queue)) == (asked, 3)
    fetching.queues.withdraw(copy)
    fetching.run(1.0)
    assert len(copy.queue) == 1


def test_a_damaged_batch_comes_after_what_is_good(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    fetching.flow.produce(b"b")
    log = fetching.source.log("t")
    log.batches[1] = log.batches[1]._replace(body=b"\xff" + log.batches[1].body[1:])
    copy = fetching.resume()
    copy.intake.verify()
    fetching.run()
    assert fetching.queued() == [(0, 0)]
    assert fetching.events.heard == ["damaged: the batch 1 to 1 does not match its checksum"]


def test_a_loop_halts_after_what_came_before_it(fetching: Fetching) -> None:
    fetching.flow.produce(b"a")
    log = fetching.source.log("t")
    fetching.flow.produce(b"b")
    log.batches[1] = log.batches[1]._replace(header=log.batches[1].header._replace(producer_id=99))
    fetching.copies["t", 0] = copy = fetching.flow.copy_of(fetching.flow.row(source_end=1))
    copy.bind_topics(fetching.source.topic_id("t"), fetching.flow.target.topic_id("A.t"))
    copy.opposite_id = 99
    fetching.resume()
    fetching.run()
    assert fetching.queued() == [(0, 0)]
    (heard,) = fetching.events.heard
    assert heard.startswith("halt: t-0 at offset 1: another flow copied this record here")
    assert heard.endswith("after its queue")


def test_old_records_are_left_to_the_run_that_was_first(flow: FakeFlow) -> None:
    fetching = Fetching(flow, is_first=False)
    flow.produce(b"young")
    flow.produce(b"old", age_ms=86_400_000)
    fetching.resume()
    fetching.run()
    (heard,) = fetching.events.heard
    assert heard.startswith("leave: another run of this flow copies t-0, whose next record is too old")


def test_partitions_take_turns(make_flow: Callable[..., FakeFlow]) -> None:
    fetching = Fetching(make_flow(partitions=50))
    for partition in range(50):
        for _ in range(3):
            fetching.flow.produce(bytes(500_000), partition=partition)
        fetching.resume(partition)
    for _ in range(300):
        fetching.run(0.05)
        for copy in fetching.copies.values():
            fetching.queues.withdraw(copy)
    assert {copy.fetch_from for copy in fetching.copies.values()} == {3}
