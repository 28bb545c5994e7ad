"""Counting the source's records: where the log ends, where storage is slow, where a new leader lags, and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.copy.resume.source_walk import SourceWalk, count, find, walk
from mirrorless.errors import CorruptBatch, Gap, GapKind
from mirrorless.progress.records import Progress, SourcePartition
from mirrorless.protocol.cluster_client import EARLIEST_LOCAL
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.protocol.requests import Fetched, Offset
    from tests.support.fake_flow import FakeFlow

VALUES = [b"%d" % number for number in range(20)]


@pytest.fixture
def copy(flow: FakeFlow) -> PartitionCopy:
    """A source of four batches of five records, with a hole of ten offsets in the middle."""
    for at in range(0, 20, 5):
        flow.produce(*VALUES[at : at + 5])
        if at == 5:
            flow.source.log("t").skip(10)
    return flow.copy_of()


def walked(flow: FakeFlow, copy: PartitionCopy, offset: int, records: int) -> SourceWalk:
    return flow.loop.run(walk(flow.source.client, copy, offset, records))


@pytest.mark.parametrize(
    ("offset", "records", "ends_at"),
    [(0, 5, 5), (0, 7, 7), (3, 2, 5), (3, 9, 22), (8, 2, 10), (8, 3, 21), (20, 10, 30)],
)
def test_a_walk_counts_records_and_not_offsets(
    flow: FakeFlow, copy: PartitionCopy, offset: int, records: int, ends_at: int
) -> None:
    assert walked(flow, copy, offset, records).offset == ends_at


def test_a_walk_opens_only_the_batches_that_are_counted_in_part(flow: FakeFlow, copy: PartitionCopy) -> None:
    log = flow.source.log("t")
    log.batches[1] = log.batches[1]._replace(body=b"cannot be read" + log.batches[1].body[14:])
    assert walked(flow, copy, 0, 12).offset == 22
    with pytest.raises(CorruptBatch):
        walked(flow, copy, 6, 1)


def test_a_walk_says_how_many_records_the_source_lacks(flow: FakeFlow, copy: PartitionCopy) -> None:
    last = walked(flow, copy, 0, 5).record
    flow.source.log("t").truncate(5)
    assert walked(flow, copy, 0, 7)._replace(leader_epoch=0) == SourceWalk(5, last, 0, cleaned=False, missing=2)
    assert walked(flow, copy, 5, 2)._replace(leader_epoch=0) == SourceWalk(5, None, 0, cleaned=False, missing=2)


def test_records_that_retention_deleted_are_a_gap(flow: FakeFlow, copy: PartitionCopy) -> None:
    flow.source.log("t").delete_before(5)
    with pytest.raises(
        Gap, match="the target holds 7 records from here on, but the source has no records there"
    ) as gap:
        walked(flow, copy, 0, 7)
    assert (gap.value.kind, gap.value.offset) == (GapKind.RETENTION, 0)


def test_counting_and_finding_stay_within_their_offsets(flow: FakeFlow, copy: PartitionCopy) -> None:
    source = flow.source.client
    assert flow.loop.run(count(source, copy, start=3, end=22)) == 9
    record = walked(flow, copy, 0, 12).record
    assert record is not None
    assert flow.loop.run(find(source, copy, record, start=0, end=30)) == 22
    assert flow.loop.run(find(source, copy, record, start=0, end=21)) is None
    assert flow.loop.run(count(source, copy, start=10, end=20)) == 0


class Backlog:
    """Four batches of 25 records that were copied, and responses to a walk that can be changed."""

    def __init__(self, flow: FakeFlow, monkeypatch: pytest.MonkeyPatch) -> None:
        self.flow = flow
        for batch in range(4):
            flow.produce(*(b"%d %d" % (batch, number) for number in range(25)))
        flow.run()
        self._monkeypatch = monkeypatch

    def progress(self, offset: int, sequence: int) -> None:
        """Have the progress topic say another position."""
        progress = Progress(offset, sequence=sequence, epoch=0, last_downstream=sequence - 1)
        for value in (None, progress.to_bytes()):  # an older one would be ignored
            self.flow.writer.write(SourcePartition("A", "t", 0).progress_key(), value)

    def answer_with_nothing(self, *, times: int, stable: int | None = None) -> None:
        """Have the next responses to a walk be without records."""
        fetch_one = self.flow.source.fetch_one
        left = [times]

        async def empty(node: int, wanted: Any, **how: Any) -> Fetched:  # noqa: ANN401
            answer = await fetch_one(node, wanted, **how)
            if how.get("max_wait_ms") and left[0]:
                left[0] -= 1
                answer = answer._replace(records=b"")
                return answer if stable is None else answer._replace(last_stable_offset=stable)
            return answer

        self._monkeypatch.setattr(self.flow.source, "fetch_one", empty)


@pytest.fixture
def backlog(flow: FakeFlow, monkeypatch: pytest.MonkeyPatch) -> Backlog:
    return Backlog(flow, monkeypatch)


def test_slow_tiered_storage_is_no_end(backlog: Backlog, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = backlog.flow
    flow.produce(*[b"new"] * 50)
    backlog.progress(24, 25)
    backlog.answer_with_nothing(times=3)
    offsets = flow.source.offsets

    async def tiered(node: int, places: Any, *, at: int, isolation: int = 0) -> dict[Any, Offset]:  # noqa: ANN401
        found = await offsets(node, places, at=at, isolation=isolation)
        return {place: one._replace(offset=140) if at == EARLIEST_LOCAL else one for place, one in found.items()}

    monkeypatch.setattr(flow.source, "offsets", tiered)
    (report,) = flow.run(seconds=0.1, pass_gaps=True)
    assert (report.state, report.records, report.gaps) == ("resuming", 0, 0)
    assert report.error == "the source returned no records at offset 25: its tiered storage is slow"
    (report,) = flow.run(pass_gaps=True)
    assert (report.state, report.records, report.gaps) == ("caught up", 50, 0)
    assert len(flow.copied()) == 150


def test_a_leader_that_knows_of_less_for_a_moment_is_asked_again(backlog: Backlog) -> None:
    """What the target lost is counted on the source, to go back by as much: counted short, records were repeated."""
    backlog.progress(99, 110)
    backlog.flow.produce(*[b"more"] * 10)
    backlog.answer_with_nothing(times=2, stable=50)
    (report,) = backlog.flow.run(pass_gaps=True)
    assert (report.state, report.gaps, report.first_offset) == ("caught up", 1, 90)


def test_a_count_that_stays_short_is_believed_in_the_end(flow: FakeFlow, copy: PartitionCopy) -> None:
    source = flow.source.client
    for _ in range(7):
        with pytest.raises(NotNow, match="the source's leader has no records after offset 30 yet"):
            flow.loop.run(count(source, copy, start=25, end=40))
        copy.retry.failed(0)
    assert flow.loop.run(count(source, copy, start=25, end=40)) == 5
