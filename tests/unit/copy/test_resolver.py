"""Where a partition continues: the target is asked, an epoch announced, the source walked; both clusters in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mirrorless.batches.stamp import stamp
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.resume.resolver import AskAgain
from mirrorless.errors import Gap, GapKind, PartitionError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.records import Announcement, Halt, LeaveOut, Progress, SourcePartition
from mirrorless.protocol.leaders import NotNow

if TYPE_CHECKING:
    from mirrorless.copy.partition.state import PartitionCopy
    from tests.support.fake_flow import FakeFlow

WHERE = SourcePartition("A", "t", 0)
VALUES = [b"%d" % number for number in range(10)]


def fill(flow: FakeFlow, count: int = 10) -> None:
    for value in VALUES[:count]:
        flow.produce(value)


def append(flow: FakeFlow, *numbers: int, epoch: int = 0, sequence: int = 0, producer: int | None = None) -> None:
    """Append these records of the source to the target, as a copy in this epoch does."""
    for at, number in enumerate(numbers):
        header, body = flow.source.log("t").batches[number]
        ours = flow.copy_of().producer_id if producer is None else producer
        batch = stamp(header, body, producer_id=ours, producer_epoch=epoch, base_sequence=sequence + at)
        assert flow.target.log("A.t").append(batch).error_code == 0


def announce(flow: FakeFlow, *, epoch: int = 0, start: int = 0, downstream: int = 0, topic: int = 1) -> Announcement:
    """Announce an epoch as of a source topic's id."""
    wanted = Announcement(
        epoch=epoch,
        start=start,
        downstream=downstream,
        kind=EpochKind.FIRST_COPY,
        reason="first copy",
        topic_id=f"00000000-0000-0000-0000-{topic:012}",
        source_end=10,
    )
    return flow.loop.run(flow.epochs().announce(("t", 0), wanted))


def write(flow: FakeFlow, progress: Progress) -> None:
    flow.writer.write(WHERE.progress_key(), progress.to_bytes())


def settle(flow: FakeFlow, copy: PartitionCopy | None = None) -> PartitionCopy | AskAgain:
    """Ask the target once and do what is decided; returns the copy once it is resumed."""
    copy = flow.copy_of() if copy is None else copy
    resolver = flow.resolver()

    async def once() -> AskAgain | None:
        (decided,) = (await resolver.decisions(1, [copy])).values()
        if isinstance(decided, BaseException):
            raise decided
        return await resolver.settle(copy, 1, *decided)

    again = flow.loop.run(once())
    assert (again is None) == (copy.state is PartitionState.COPYING)
    return again or copy


def resume(flow: FakeFlow, copy: PartitionCopy | None = None, *, epochs: int = 0) -> PartitionCopy:
    """Resume a copy, after as many epochs were announced."""
    copy = flow.copy_of() if copy is None else copy
    for _ in range(epochs):
        assert isinstance(settle(flow, copy), AskAgain)
    assert settle(flow, copy) is copy
    return copy


def position(copy: PartitionCopy) -> tuple[int, int, int, int | None]:
    """Epoch, source offset and sequence to continue at, and the target's last offset."""
    assert copy.acked is not None
    return copy.epoch, copy.fetch_from, copy.next_sequence, copy.acked.last_downstream


def test_a_copy_that_is_halted_while_its_position_is_looked_for_is_not_resumed(flow: FakeFlow) -> None:
    fill(flow)
    copy = flow.copy_of()
    copy.halt_with("another process has claimed it")
    assert isinstance(settle(flow, copy), AskAgain)
    assert copy.state is PartitionState.HALTED


def test_the_first_copy_announces_epoch_0_at_the_beginning(flow: FakeFlow) -> None:
    fill(flow)
    flow.source.log("t").delete_before(3)
    copy = resume(flow)
    assert position(copy) == (0, 3, 0, -1)
    announced = flow.known()["t", 0].announced[0]
    assert (announced.start, announced.downstream, announced.source_end) == (3, 0, 10)
    assert copy.written == copy.acked


def test_a_second_writer_begins_where_the_first_announced(flow: FakeFlow) -> None:
    fill(flow)
    resume(flow, copy := flow.copy_of())
    flow.source.log("t").delete_before(5)
    other = flow.copy_of(flow.row(known=None))
    resume(flow, other)
    assert position(other) == position(copy) == (0, 0, 0, -1)


def test_exact_progress_continues_without_a_walk(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2)
    write(flow, Progress(last_offset=2, sequence=3, epoch=0, last_downstream=2))
    assert position(resume(flow)) == (0, 3, 3, 2)
    assert flow.source.requests["fetch_one"] == 0


@pytest.mark.parametrize("remembered", [True, False])
def test_progress_that_is_older_than_the_target_walks_the_source(flow: FakeFlow, *, remembered: bool) -> None:
    fill(flow, 4)
    flow.source.log("t").skip(3)
    flow.produce(b"after the hole")
    announce(flow)
    append(flow, 0, 1, 2, 3, 4)
    flow.target.log("A.t").forgets = not remembered
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    assert position(resume(flow)) == (0, 8, 5, 4)


def test_progress_that_was_never_written_is_counted_from_the_announcement(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow, start=2)
    append(flow, 2, 3, 4)
    assert position(resume(flow)) == (0, 5, 3, 2)


def test_records_of_an_epoch_that_is_not_announced_are_not_explained(flow: FakeFlow) -> None:
    fill(flow)
    append(flow, 0, 1)
    with pytest.raises(Gap, match="the target holds records of epoch 0, which the progress topic does not announce"):
        resume(flow)


def test_progress_is_read_again_where_a_gap_is_suspected(flow: FakeFlow) -> None:
    fill(flow)
    append(flow, 0, 1)
    copy = flow.copy_of()
    announce(flow)
    copy.suspect(copy.gap("unexplained", GapKind.UNEXPLAINED))
    assert position(resume(flow, copy)) == (0, 2, 2, 1)


def test_what_is_not_replicated_yet_is_waited_for(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2)
    flow.target.log("A.t").replicated = 1
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    again = settle(flow)
    assert isinstance(again, AskAgain)
    assert again.reason == "2 records on the leader of the remote partition are not replicated yet"
    flow.target.log("A.t").replicated = None
    assert position(resume(flow)) == (0, 3, 3, 2)


def test_a_target_that_lost_records_is_a_gap(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2, 3)
    write(flow, Progress(last_offset=3, sequence=4, epoch=0, last_downstream=3))
    flow.target.log("A.t").truncate(2)
    with pytest.raises(Gap, match="the remote partition ends at 2, before the acknowledged record 3") as gap:
        resume(flow)
    assert (gap.value.kind, gap.value.records) == (GapKind.TARGET_LOST, 2)


def test_a_lost_part_of_the_target_is_copied_again_in_the_next_epoch(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2, 3)
    write(flow, Progress(last_offset=3, sequence=4, epoch=0, last_downstream=3))
    flow.target.log("A.t").truncate(2)
    copy = flow.copy_of()
    copy.skip_gap(copy.gap("lost", GapKind.TARGET_LOST, records=2))
    assert position(resume(flow, copy, epochs=1)) == (1, 2, 0, 1)
    assert (copy.stats.gaps, copy.skip, copy.suspected) == (1, None, None)
    assert copy.announced[1].kind is EpochKind.TARGET_LOST
    assert copy.stats.events == [
        "t-0: epoch 1: the target lost acknowledged records: the remote partition ends at 2, before the acknowledged "
        "record 3: the target lost records, or the remote topic was deleted and recreated; the copy continues at 2"
    ]


def test_a_source_topic_that_was_created_again_is_a_gap(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1)
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    flow.source.create("t")
    with pytest.raises(
        Gap, match=r"the source topic was deleted and recreated: its id is .*, the copied one had"
    ) as gap:
        resume(flow)
    assert gap.value.kind is GapKind.CREATED_AGAIN
    flow.produce(b"new")
    copy = flow.copy_of()
    copy.skip_gap(gap.value)
    assert position(resume(flow, copy, epochs=1)) == (1, 0, 0, 1)


def test_an_epoch_after_retention_begins_at_the_first_record_left(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1)
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    flow.source.log("t").delete_before(6)
    copy = flow.copy_of()
    copy.skip_gap(copy.gap("retention", GapKind.RETENTION, offset=2))
    assert position(resume(flow, copy, epochs=1)) == (1, 6, 0, 1)


def test_a_gap_that_another_run_has_passed_is_not_skipped(flow: FakeFlow) -> None:
    """It had read the records before retention deleted them, or had passed offsets that have no records to copy."""
    fill(flow)
    announce(flow)
    append(flow, 0, 1)
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    copy = flow.copy_of()
    append(flow, 2, 3, 4, 5, 6, 7, sequence=2)
    flow.source.log("t").delete_before(6)
    copy.skip_gap(copy.gap("retention", GapKind.RETENTION, offset=2))
    assert isinstance(settle(flow, copy), AskAgain)
    assert (copy.skip, copy.newest_epoch) == (None, 0)
    assert position(resume(flow, copy)) == (0, 8, 8, 7)


def test_a_source_that_ends_before_the_position_is_a_gap_although_nothing_is_fetched(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2)
    write(flow, Progress(last_offset=2, sequence=3, epoch=0, last_downstream=2))
    flow.source.log("t").truncate(1)
    with pytest.raises(Gap, match="the source ends at 1, 2 offsets before the copy's position") as gap:
        resume(flow, flow.copy_of(flow.row(source_end=1)))
    assert gap.value.kind is GapKind.TRUNCATED


def test_a_source_that_lost_what_the_target_holds_is_a_gap(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2, 3)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    flow.source.log("t").truncate(2)
    with pytest.raises(Gap, match="the target holds 2 records from here on, but the source ends at 2") as gap:
        resume(flow)
    assert gap.value.kind is GapKind.TRUNCATED


def test_a_source_whose_log_was_rewritten_is_a_gap(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    flow.source.log("t").truncate(2)
    for value in (b"other", b"values"):
        flow.produce(value)
    with pytest.raises(Gap, match="the target's last record is not the one that the source has in its place"):
        resume(flow)


def clean(flow: FakeFlow, *numbers: int) -> None:
    log = flow.source.log("t")
    log.batches = [batch for number, batch in enumerate(log.batches) if number not in numbers]


def test_a_source_that_was_cleaned_in_between_is_searched_for_the_targets_last_record(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2, 3)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    clean(flow, 1)
    copy = flow.copy_of()
    assert position(resume(flow, copy)) == (0, 4, 4, 3)
    assert "the source was cleaned in between" in copy.stats.events[0]


def test_where_the_cleaner_took_that_record_some_are_copied_again(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2, 3)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    clean(flow, 1, 3)
    copy = flow.copy_of()
    assert position(resume(flow, copy, epochs=1)) == (1, 1, 0, 3)
    assert copy.announced[1].kind is EpochKind.SOURCE_CLEANED
    assert "records are copied again" in copy.announced[1].reason


def test_a_cleaned_source_that_seems_to_lack_records_is_asked_again_first(flow: FakeFlow) -> None:
    fill(flow, 4)
    announce(flow)
    append(flow, 0, 1, 2, 3)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    clean(flow, 2)
    copy = flow.copy_of()
    for _ in range(4):
        with pytest.raises(NotNow, match="1 records are missing in the source"):
            settle(flow, copy)
        copy.retry.failed(0)
    assert position(resume(flow, copy)) == (0, 4, 4, 3)


def test_mirrormaker_2s_position_begins_an_epoch(flow: FakeFlow) -> None:
    fill(flow)
    append(flow, 0, 1, 2, producer=5)
    write(flow, Progress(last_offset=2))
    assert position(resume(flow)) == (0, 3, 0, 2)
    assert flow.known()["t", 0].announced[0].kind is EpochKind.AFTER_MIRRORMAKER2


@pytest.mark.parametrize("forgets", [True, False], ids=["forgotten", "remembered"])
def test_records_of_another_writer_are_not_counted_as_the_copys(flow: FakeFlow, forgets: bool) -> None:
    """Before and after the copy's own, of which the progress knows the first."""
    fill(flow)
    announce(flow)
    append(flow, 0)
    append(flow, 5, producer=5)
    append(flow, 1, sequence=1)
    append(flow, 6, producer=5)
    flow.target.log("A.t").forgets = forgets
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    epoch, offset, sequence, last_downstream = position(resume(flow))
    assert (epoch, offset, sequence) == (0, 2, 2)
    assert last_downstream in (2, 3)


def test_a_hole_in_the_target_is_found_by_its_last_sequence(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0)
    flow.target.log("A.t").forgets = True
    append(flow, 3, sequence=3)
    flow.target.log("A.t").forgets = False
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    with pytest.raises(Gap, match="counts 2 records more than its log has") as gap:
        resume(flow)
    assert gap.value.kind is GapKind.TARGET_HOLE


def test_a_halt_of_an_earlier_lease_is_kept(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    halt = Halt(epoch=0, offset=1, kind=GapKind.TRUNCATED, reason="cut", records=3)
    flow.writer.write(WHERE.halt_key(), halt.to_bytes())
    copy = flow.copy_of()
    with pytest.raises(Gap, match="cut") as gap:
        settle(flow, copy)
    assert (gap.value.kind, gap.value.offset, gap.value.records) == (GapKind.TRUNCATED, 1, 3)
    assert copy.suspected is gap.value


LEFT_OUT = LeaveOut(offset=2, next_offset=4, size_bytes=70, reason="too large")


def test_records_are_left_out_once_everything_before_them_is_on_the_target(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1)
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    copy = flow.copy_of()
    copy.skip_records(LEFT_OUT)
    assert position(resume(flow, copy, epochs=1)) == (1, 4, 0, 1)
    assert copy.stats.left_out == 1
    assert copy.announced[1].reason == "left out offset 2 to 3, 70 bytes: too large"


def test_records_before_those_to_leave_out_are_copied_first(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0)
    write(flow, Progress(last_offset=0, sequence=1, epoch=0, last_downstream=0))
    copy = flow.copy_of()
    copy.skip_records(LEFT_OUT)
    assert position(resume(flow, copy)) == (0, 1, 1, 0)
    assert copy.skip is None


def test_records_are_not_left_out_before_that_is_written_down(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1)
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    copy = flow.copy_of()
    copy.skip_records(LEFT_OUT)
    flow.writer.broken = True
    with pytest.raises(NotNow, match="too large; the records to leave out could not be written down yet"):
        settle(flow, copy)
    assert copy.skip is LEFT_OUT


def test_an_epoch_is_announced_once_and_void_where_the_target_moved_on(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1)
    write(flow, Progress(last_offset=1, sequence=2, epoch=0, last_downstream=1))
    copy = flow.copy_of()
    copy.skip_records(LEFT_OUT)
    assert isinstance(settle(flow, copy), AskAgain)
    append(flow, 2, 3, sequence=2)  # another process could append them all the same
    assert position(resume(flow, copy)) == (0, 4, 4, 3)


def test_there_are_32768_epochs(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow, epoch=32_767)
    append(flow, 0, epoch=32_767)
    write(flow, Progress(last_offset=0, sequence=1, epoch=32_767, last_downstream=0))
    copy = flow.copy_of()
    copy.skip_gap(copy.gap("retention", GapKind.RETENTION))
    with pytest.raises(PartitionError, match="all 32,768 epochs of this copy are used up"):
        settle(flow, copy)


def test_a_topic_that_is_gone_is_no_decision(flow: FakeFlow) -> None:
    fill(flow)
    copy = flow.copy_of()
    del flow.target.logs["A.t", 0]
    with pytest.raises(kafka_errors.UnknownTopicOrPartitionError):
        settle(flow, copy)


def test_a_source_without_a_leader_is_asked_again(flow: FakeFlow) -> None:
    fill(flow)
    flow.source.leaders["t", 0] = None
    with pytest.raises(NotNow, match="t-0 has no leader at the moment"):
        settle(flow)


def test_the_last_batch_says_how_far_a_forgotten_producer_was(flow: FakeFlow) -> None:
    fill(flow)
    announce(flow)
    append(flow, 0, 1, 2)
    flow.target.log("A.t").forgets = True
    assert position(resume(flow)) == (0, 3, 3, 2)
