"""What one partition's copy makes of the target's answers."""

from __future__ import annotations

import pytest

from mirrorless.batches.stamp import Stamped
from mirrorless.copy.partition.handover import Handover, can_continue
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.partition.pending import Pending
from mirrorless.copy.partition.send_window import BATCHES_IN_FLIGHT
from mirrorless.copy.partition.state import PartitionCopy
from mirrorless.copy.partition.stats import PartitionStats
from mirrorless.errors import Gap, GapKind
from mirrorless.progress.records import Announcement, Halt, Known, Progress

DAY_MS = 86_400_000


def copy_at(offset: int, *, sequence: int = 0, last_downstream: int = -1) -> PartitionCopy:
    row = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=1_000)
    copy = PartitionCopy(row, 1 << 61, {})
    copy.resume_at(offset, epoch=0, sequence=sequence, last_downstream=last_downstream, node=1)
    return copy


def batch(copy: PartitionCopy, records: int, *, timestamp_ms: int = 0) -> Pending:
    base = copy.fetch_from
    pending = Pending(
        Stamped(b"by", b"tes", 5), base, base + records - 1, records, copy.next_sequence, timestamp_ms, -1
    )
    copy.enqueue(pending, now_ms=0)
    return copy.next_to_send()


def test_acknowledgements_move_the_progress() -> None:
    copy = copy_at(10, sequence=5, last_downstream=4)
    first, second = batch(copy, 3), batch(copy, 2)
    copy.acknowledge(first, 5, now_ms=0)
    assert copy.progress() == Progress(last_offset=12, sequence=8, epoch=0, last_downstream=7)
    copy.acknowledge(second, 8, now_ms=0)
    assert copy.progress() == Progress(last_offset=14, sequence=10, epoch=0, last_downstream=9)
    assert (copy.stats.records, copy.stats.copied_bytes, copy.stats.first_offset) == (5, 10, 10)


def test_markers_behind_the_last_record_count_as_done_once_all_is_acknowledged() -> None:
    copy = copy_at(0)
    pending = batch(copy, 4)
    copy.advance(6, -1)
    assert copy.progress() == Progress(last_offset=-1, sequence=0, epoch=0, last_downstream=-1)
    copy.acknowledge(pending, 0, now_ms=0)
    assert copy.progress() == Progress(last_offset=5, sequence=4, epoch=0, last_downstream=3)


def test_what_failed_is_never_progress() -> None:
    copy = copy_at(0)
    batch(copy, 4)
    copy.advance(6, -1)
    copy.window.answered()  # it failed
    copy.interrupt("refused", now=0)
    assert copy.progress() == Progress(last_offset=-1, sequence=0, epoch=0, last_downstream=-1)


def arrive(copy: PartitionCopy, pending: Pending, base_offset: int, *, now_ms: int) -> None:
    copy.window.answered()
    copy.acknowledge(pending, base_offset, now_ms=now_ms)


def test_one_batch_alone_until_the_target_knows_the_producer() -> None:
    copy, now_ms = copy_at(0), 10 * DAY_MS
    first = batch(copy, 1, timestamp_ms=now_ms)
    assert not copy.window.has_room(now_ms)
    arrive(copy, first, 0, now_ms=now_ms)
    for sent in range(BATCHES_IN_FLIGHT):
        assert copy.in_flight == sent
        assert copy.window.has_room(now_ms)
        batch(copy, 1, timestamp_ms=now_ms)
    assert not copy.window.has_room(now_ms)


def test_one_batch_alone_after_every_resume() -> None:
    copy, now_ms = copy_at(0), 10 * DAY_MS
    arrive(copy, batch(copy, 1, timestamp_ms=now_ms), 0, now_ms=now_ms)
    copy.interrupt("the leader moved", now=0)
    copy.resume_at(1, epoch=0, sequence=1, last_downstream=0, node=2)
    batch(copy, 1, timestamp_ms=now_ms)
    assert not copy.window.has_room(now_ms)


@pytest.mark.parametrize("timestamp_ms", [-1, 0, 9 * DAY_MS])
def test_one_batch_alone_where_the_target_may_have_forgotten_the_producer(timestamp_ms: int) -> None:
    copy, now_ms = copy_at(0), 10 * DAY_MS
    arrive(copy, batch(copy, 1, timestamp_ms=now_ms), 0, now_ms=now_ms)
    old = batch(copy, 1, timestamp_ms=timestamp_ms)
    assert not copy.window.has_room(now_ms)
    arrive(copy, old, 1, now_ms=now_ms)
    # What comes next is young, but what is remembered of the producer is not.
    young = batch(copy, 1, timestamp_ms=now_ms)
    assert not copy.window.has_room(now_ms)
    arrive(copy, young, 2, now_ms=now_ms)
    batch(copy, 1, timestamp_ms=now_ms)
    assert copy.window.has_room(now_ms)


def test_an_old_batch_behind_young_ones_is_waited_for() -> None:
    copy, now_ms = copy_at(0), 10 * DAY_MS
    arrive(copy, batch(copy, 1, timestamp_ms=now_ms), 0, now_ms=now_ms)
    young = batch(copy, 1, timestamp_ms=now_ms)
    assert copy.window.has_room(now_ms)
    batch(copy, 1, timestamp_ms=0)
    arrive(copy, young, 1, now_ms=now_ms)
    assert copy.in_flight == 1
    assert not copy.window.has_room(now_ms)


def test_a_batch_that_took_the_place_of_a_refused_one_is_a_hole() -> None:
    copy = copy_at(0)
    batch(copy, 3)
    second = batch(copy, 2)
    copy.interrupt("the first one was refused", now=0)
    with pytest.raises(Gap, match=r"t-0 at offset 0: the target appended source offset 3 at its offset 0") as gap:
        copy.acknowledge(second, 0, now_ms=0)
    assert (gap.value.kind, gap.value.records) == (GapKind.TARGET_HOLE, 3)


def test_a_target_that_takes_a_later_batch_without_the_one_before_is_a_gap() -> None:
    copy = copy_at(0)
    batch(copy, 3)
    second = batch(copy, 3)
    with pytest.raises(Gap, match=r"t-0 at offset 3: target acknowledged sequence 3 at offset 0, expected"):
        copy.acknowledge(second, 0, now_ms=0)


def test_an_offset_that_was_given_before_means_another_log() -> None:
    copy = copy_at(1_000, sequence=1_000, last_downstream=999)
    with pytest.raises(Gap, match="the remote topic was probably deleted and recreated"):
        copy.acknowledge(batch(copy, 3), 0, now_ms=0)


def test_answers_to_what_was_sent_before_a_failure_are_left_to_the_resume() -> None:
    copy = copy_at(0)
    batch(copy, 3)
    second = batch(copy, 3)
    copy.interrupt("refused", now=0)
    copy.acknowledge(second, 3, now_ms=0)
    assert copy.stats.records == 0


def at(last_offset: int, *, epoch: int | None = 0) -> Progress:
    return Progress(last_offset=last_offset, sequence=3, epoch=epoch, last_downstream=2)


BEGUN = Announcement(epoch=0, start=10, downstream=0, reason="begun")
TURNED = Announcement(epoch=1, start=10, downstream=0, reason="turned")


@pytest.mark.parametrize(
    ("known", "goes_on"),
    [
        (Known(progress=at(12)), True),
        (Known(progress=at(11)), True),  # written later than it was read
        (Known(progress=at(12), announced={0: BEGUN}), True),
        (Known(progress=at(12), announced={0: BEGUN, 1: TURNED}), False),
        (Known(progress=at(13)), False),  # somebody else is ahead
        (Known(progress=at(12, epoch=1)), False),
        (Known(progress=at(12, epoch=None)), False),  # MirrorMaker 2
        (Known(), False),  # somebody took it away
        (Known(progress=at(12), halt=Halt(epoch=0, offset=13, kind=GapKind.RETENTION, reason="r")), False),
    ],
)
def test_a_copy_goes_on_where_nobody_else_said_something(known: Known, goes_on: bool) -> None:
    copy = copy_at(10)
    copy.acknowledge(batch(copy, 3), 0, now_ms=0)
    row = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=1_000, known=known.to_json())
    assert can_continue(copy, row) is goes_on


def test_a_copy_goes_on_only_if_the_target_was_heard_of() -> None:
    row = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=1_000, known=Known(progress=at(9)).to_json())
    copy = copy_at(10)
    assert not can_continue(copy, row)
    batch(copy, 3)
    assert can_continue(copy, row)
    copy.halt_with("refused", finish_queue=True)
    assert not can_continue(copy, row)


def test_a_copy_with_a_failed_append_does_not_continue() -> None:
    row = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=1_000, known=Known(progress=at(9)).to_json())
    copy = copy_at(10)
    batch(copy, 3)
    copy.interrupt("refused", now=0)
    assert not can_continue(copy, row)


def test_a_void_epoch_of_its_own_does_not_end_a_copy() -> None:
    copy = copy_at(10)
    copy.learn_epoch(TURNED)
    copy.acknowledge(batch(copy, 3), 0, now_ms=0)
    known = Known(progress=at(12), announced={1: TURNED})
    row = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=1_000, known=known.to_json())
    assert can_continue(copy, row)


@pytest.mark.parametrize(
    ("reached", "known", "beyond"),
    [
        (at(12), at(11), at(12)),
        (at(12), at(13), at(13)),
        (at(12), at(11, epoch=1), at(11, epoch=1)),
        (at(12), at(11, epoch=None), at(11, epoch=None)),
        (at(12), None, None),
        (None, at(11), at(11)),
    ],
)
def test_what_a_copy_leaves_counts_within_its_epoch(
    reached: Progress | None, known: Progress | None, beyond: Progress | None
) -> None:
    assert Handover(PartitionStats(), reached, None).newest(known) == beyond
