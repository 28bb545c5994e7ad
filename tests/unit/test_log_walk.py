"""What leaders answer to a walk of a log, for both who walk: the copy that resumes, and whoever translates offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from mirrorless import log_walk
from mirrorless.batches.record_counter import OffsetSearch, RecordCounter
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.partition.state import PartitionCopy
from mirrorless.copy.resume import source_walk
from mirrorless.errors import CorruptBatch, Gap, GapKind
from mirrorless.log_walk import Walk, Walker
from mirrorless.offsets.translation_service import counter_from
from mirrorless.progress.records import Known, Progress
from mirrorless.protocol import clients
from mirrorless.protocol.cluster_client import EARLIEST_LOCAL, ClusterClient
from mirrorless.protocol.leaders import NotNow
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE, Fetched, Offset
from mirrorless.settings import Cluster
from tests.support.log_bytes import batch, message

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition

PLACE = ("t", 0)
NOT_LEADER = 6
T = TypeVar("T")
LOG = ((10, batch(list(range(10)), leader_epoch=4)), (20, batch(list(range(10, 20)), leader_epoch=5)))


class Source:
    """The leader of one partition: `log` is pairs of next offset and bytes, of which an answer has one."""

    def __init__(self, *log: tuple[int, bytes], stable: int | None = None) -> None:
        self.log = log
        self.stable = log[-1][0] if stable is None else stable
        self.asked: list[tuple[int, int]] = []
        self.asked_alone = 0
        self.first_answers: list[dict[str, object]] = []
        self.first_local = 0
        self.leaderless = 0  # so many requests for metadata until there is a leader
        self.refreshed = 0

    def leader(self, place: TopicPartition) -> int | None:  # noqa: ARG002
        return 1 if self.refreshed >= self.leaderless else None

    def refresh_leaders(self) -> None:
        self.refreshed += 1

    def close(self) -> None:
        pass

    async def connect(self, *, timeout_ms: int, topics: object) -> None:
        pass

    async def offsets(self, node: int, places: Sequence[TopicPartition], *, at: int) -> dict[TopicPartition, Offset]:  # noqa: ARG002
        assert at == EARLIEST_LOCAL
        return {place: Offset(self.first_local, 0) for place in places}

    async def fetch_one(self, node: int, wanted: tuple[TopicPartition, int, int], **_: object) -> Fetched:
        self.asked_alone += 1
        return (await self.fetch(node, [wanted]))[0]

    async def fetch(self, node: int, wanted: Sequence[tuple[TopicPartition, int, int]], **_: object) -> list[Fetched]:  # noqa: ARG002
        ((place, offset, epoch),) = wanted
        self.asked.append((offset, epoch))
        records = next((some for behind, some in self.log if behind > offset), b"")
        answer = Fetched(place, 0, self.stable, [], records)
        return [answer._replace(**cast("Any", self.first_answers.pop(0))) if self.first_answers else answer]


class Net:
    """An event loop in which nothing waits."""

    def run(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        drive(function())

    async def sleep(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("T", end.value)
    raise AssertionError("it waits for something")


def copy(*, attempts: int = 0) -> PartitionCopy:
    one = PartitionCopy(LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=1_000), 1 << 61, {})
    one.retry.attempts = attempts
    return one


def client(source: Source) -> ClusterClient:
    return cast("ClusterClient", source)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Source, RecordCounter], Walk]:
    """Walk with a `Walker` for one counter, without pauses."""
    monkeypatch.setattr(log_walk, "_PAUSE_S", 0.0)
    monkeypatch.setattr(clients, "event_loop", Net)

    def walk(source: Source, counter: RecordCounter) -> Walk:
        monkeypatch.setattr(clients, "cluster_client", lambda *_, **__: source)
        one = Walk(PLACE, counter)
        walker = Walker(Cluster(alias="a", bootstrap_servers="a:1"))
        walker.walk([one], deadline=time.monotonic() + 5)
        walker.close()
        return one

    return walk


Walks = Callable[[Source, RecordCounter], Walk]


def test_a_walker_counts_over_several_answers(walked: Walks) -> None:
    source = Source(*LOG)
    walk = walked(source, RecordCounter(3, [5, 12, 20]))
    assert (walk.counter.counts, walk.trouble) == ({5: 2, 12: 9, 20: 17}, None)
    assert source.asked == [(3, -1), (10, 4)]


def test_a_copy_counts_over_several_answers() -> None:
    source = Source(*LOG)
    assert drive(source_walk.count(client(source), copy(), start=3, end=12)) == 9
    end = drive(source_walk.walk(client(source), copy(), 3, 9))
    assert (end.offset, end.leader_epoch, end.cleaned) == (12, 5, False)


def test_messages_of_old_formats_are_counted_by_a_walker(walked: Walks) -> None:
    log = (2, message(0) + message(1)), (4, message(2) + message(3))
    assert walked(Source(*log), RecordCounter(1, [3])).counter.counts == {3: 2}
    assert walked(Source(*log), OffsetSearch(0, [3])).counter.counts == {3: 3}


def test_messages_of_old_formats_are_counted_by_a_copy() -> None:
    source = Source((2, message(0) + message(1)), (4, message(2) + message(3)))
    assert drive(source_walk.count(client(source), copy(), start=1, end=3)) == 2
    assert drive(source_walk.walk(client(source), copy(), 0, 3)).offset == 3


def test_a_walker_does_not_take_slow_tiered_storage_for_the_end(walked: Walks) -> None:
    source = Source(*LOG)
    source.first_local = 15
    source.first_answers = [{"records": b""}] * 8
    walk = walked(source, RecordCounter(0, [20]))
    assert walk.counter.counts == {}
    assert walk.trouble == "offset 0: the source returned no records at offset 0: its tiered storage is slow"


def test_a_copy_does_not_take_slow_tiered_storage_for_the_end() -> None:
    source = Source(*LOG)
    source.first_local = 15
    source.first_answers = [{"records": b""}] * 2
    with pytest.raises(NotNow, match="tiered storage is slow"):
        drive(source_walk.walk(client(source), copy(), 0, 15))
    with pytest.raises(NotNow, match="tiered storage is slow"):
        drive(source_walk.count(client(source), copy(), start=0, end=15))


def test_a_walker_counts_up_to_a_hole_at_the_end(walked: Walks) -> None:
    source = Source(*LOG, stable=30)
    walk = walked(source, RecordCounter(0, [25, 30]))
    assert (walk.counter.counts, walk.trouble) == ({25: 20, 30: 20}, None)
    assert source.asked_alone == 1
    assert walked(source, OffsetSearch(0, [20])).counter.counts == {20: 20}


def test_a_copy_counts_up_to_a_hole_at_the_end() -> None:
    assert drive(source_walk.count(client(Source(*LOG, stable=30)), copy(), start=0, end=30)) == 20
    end = drive(source_walk.walk(client(Source(*LOG, stable=30)), copy(attempts=9), 0, 25))
    assert (end.offset, end.record, end.cleaned) == (20, None, True)


def test_an_answer_that_others_left_no_room_in_means_nothing() -> None:
    walk = Walk(PLACE, RecordCounter(0, [4]))
    for _ in range(20):
        walk.take(Fetched(PLACE, 0, 6, [], b""), crowded=True)
    assert not walk.over
    assert not walk.asks_alone


def test_a_walker_notices_that_the_log_was_cut(walked: Walks) -> None:
    source = Source(*LOG)
    source.first_answers = [{}, {"records": b"", "diverges_at": 7}]
    walk = walked(source, RecordCounter(0, [20], leader_epoch=3))
    assert source.asked == [(0, 3), (10, 4)]
    assert (walk.counter.counts, walk.trouble) == ({}, "offset 7: the source's log was truncated at 7")


def test_translation_begins_with_the_leader_epoch_of_the_progress() -> None:
    progress = Progress(last_offset=9, sequence=10, epoch=0, last_downstream=9, leader_epoch=4)
    assert counter_from(Known(progress=progress), 10, [20]).leader_epoch == 4
    assert counter_from(Known(progress=progress), 9, [20]).leader_epoch == -1
    assert counter_from(None, 10, [20]).leader_epoch == -1


def test_a_copy_notices_that_the_log_was_cut() -> None:
    source = Source(*LOG)
    source.first_answers = [{}, {"records": b"", "diverges_at": 7}]
    with pytest.raises(Gap, match="holds 5 records from here on, but the source's log was truncated at 7") as raised:
        drive(source_walk.walk(client(source), copy(), 0, 15, leader_epoch=3))
    assert source.asked == [(0, 3), (10, 4)]
    assert (raised.value.kind, raised.value.offset) == (GapKind.TRUNCATED, 7)


def test_a_walker_asks_again_while_a_leader_knows_of_less(walked: Walks) -> None:
    source = Source(*LOG)
    source.first_answers = [{"records": b"", "last_stable_offset": 0}] * 3
    assert walked(source, RecordCounter(0, [20])).counter.counts == {20: 20}


def test_a_walker_believes_a_log_that_ends_again_and_again(walked: Walks) -> None:
    walk = walked(Source(*LOG), RecordCounter(0, [1, 50]))
    assert (walk.counter.counts, walk.trouble) == ({1: 1, 50: 20}, None)
    search = walked(Source(*LOG), OffsetSearch(0, [20, 22]))
    assert search.counter.counts == {20: 20}
    assert search.trouble == "offset 20: the source ends 2 records too early"


def test_a_copy_believes_a_log_that_ends_again_and_again() -> None:
    with pytest.raises(NotNow, match="no records after offset 20 yet"):
        drive(source_walk.count(client(Source(*LOG)), copy(), start=0, end=50))
    patient = copy(attempts=source_walk.PATIENCE_AT_END)
    assert drive(source_walk.count(client(Source(*LOG)), patient, start=0, end=50)) == 20
    walked = drive(source_walk.walk(client(Source(*LOG)), copy(), 0, 22))
    assert (walked.offset, walked.missing) == (20, 2)


def test_records_that_retention_deleted_end_a_walk(walked: Walks) -> None:
    source = Source(*LOG)
    source.first_answers = [{"error_code": OFFSET_OUT_OF_RANGE}] * 2
    walk = walked(source, RecordCounter(0, [4]))
    assert walk.trouble == "offset 0: the source has no records there (OFFSET_OUT_OF_RANGE (1))"
    with pytest.raises(Gap, match="OFFSET_OUT_OF_RANGE") as raised:
        drive(source_walk.count(client(source), copy(), start=0, end=4))
    assert raised.value.kind is GapKind.RETENTION


def test_a_walker_survives_elections(walked: Walks) -> None:
    source = Source(*LOG)
    refused: list[dict[str, object]] = [{"error_code": NOT_LEADER}] * 3
    source.first_answers = [*refused, {}, *refused]
    assert walked(source, RecordCounter(0, [20])).counter.counts == {20: 20}
    source.first_answers = [{"error_code": NOT_LEADER}] * 4
    assert "NOT_LEADER" in str(walked(source, RecordCounter(0, [20])).trouble)


def test_a_walker_waits_for_a_leader(walked: Walks) -> None:
    source = Source(*LOG)
    source.leaderless = 3
    walk = walked(source, RecordCounter(0, [15]))
    assert (walk.counter.counts, walk.trouble) == ({15: 15}, None)


def test_an_offset_in_an_open_transaction_is_counted_at_once(walked: Walks) -> None:
    source = Source(*LOG)
    source.first_answers = [{}, {}, {"high_watermark": 30}]
    walk = walked(source, RecordCounter(0, [25]))
    assert (walk.counter.counts, walk.trouble) == ({25: 20}, None)
    assert len(source.asked) == 3


def test_what_cannot_be_read_ends_a_walk(walked: Walks) -> None:
    source = Source((1, b"\x00" * 16 + b"\x02" + b"\x00" * 50), stable=1)
    assert walked(source, RecordCounter(0, [1])).trouble == "offset 0: a batch length of 0 bytes"
    with pytest.raises(CorruptBatch, match="a batch length of 0 bytes"):
        drive(source_walk.count(client(source), copy(), start=0, end=1))


def test_a_copy_finds_a_record_again() -> None:
    source = Source((2, message(0, b"a") + message(1, b"b")), (4, batch([2, 3])))
    behind = drive(source_walk.walk(client(source), copy(), 0, 2))
    assert behind.record is not None
    assert drive(source_walk.find(client(source), copy(), behind.record, start=0, end=4)) == 2
    assert drive(source_walk.find(client(source), copy(), b"another", start=0, end=4)) is None
