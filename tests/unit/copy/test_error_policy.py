"""What becomes of a partition after each answer and error: decisions of the error policy, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.batches.header import FormatError
from mirrorless.batches.stamp import Stamped
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.partition.pending import Pending
from mirrorless.copy.slot.error_policy import ErrorPolicy
from mirrorless.copy.slot.send_queues import SendQueues
from mirrorless.errors import AppendRefused, GapKind
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.records import Announcement, Halt, LeaveOut
from tests.support.fake_flow import FakeLimits

if TYPE_CHECKING:
    from mirrorless.errors import Gap
    from tests.support.fake_flow import FakeFlow

RESUMING, COPYING, CAUGHT_UP, HALTED = (
    PartitionState.RESUMING,
    PartitionState.COPYING,
    PartitionState.CAUGHT_UP,
    PartitionState.HALTED,
)


class Case:
    """A policy, and one copy that is copying from offset 10 on."""

    def __init__(self, flow: FakeFlow, *, pass_gaps: bool = False, leave_out: bool = False) -> None:
        self.flow = flow
        for number in range(20):
            flow.produce(b"%d" % number)
        self.queues = SendQueues(flow.target.client)
        self.tracker = flow.tracker()
        self.limits = FakeLimits(flow.target)
        self.limits.seen = 400
        self.policy = ErrorPolicy(
            source=flow.source.client,
            target=flow.target.client,
            queues=self.queues,
            tracker=self.tracker,
            limits=cast("Any", self.limits),
            pass_gaps=pass_gaps,
            leave_out=leave_out,
        )
        self.copy = flow.copy_of()
        self.policy.begin(self.copy)
        self.policy.take_due(flow.loop.monotonic())
        self.resume()

    def resume(self) -> None:
        self.policy.to_resume.pop(self.copy, None)
        self.copy.bind_topics(self.flow.source.topic_id("t"), self.flow.target.topic_id("A.t"))
        self.copy.resume_at(10, epoch=0, sequence=10, last_downstream=9, node=1)

    def queue(self, records: int = 2, *, size_bytes: int = 1_000) -> Pending:
        """Queue a batch."""
        base, timestamp_ms = self.copy.fetch_from, self.flow.loop.now_ms
        pending = Pending(
            Stamped(b"", b"", size_bytes), base, base + records - 1, records, self.copy.next_sequence, timestamp_ms, -1
        )
        self.queues.enqueue(self.copy, pending, now_ms=timestamp_ms)
        assert self.queues.offer(self.copy)
        return pending

    def send(self, records: int = 2, *, size_bytes: int = 1_000) -> Pending:
        """Queue a batch and send it; the answer has come."""
        self.queue(records, size_bytes=size_bytes)
        (queue,) = [queue for queue in self.queues if queue.ready]
        ((_, pending),) = self.queues.take_request(queue).values()
        self.copy.window.answered()
        return pending

    @property
    def fate(self) -> tuple[PartitionState, bool]:
        """The copy's state, and whether it is to be resumed."""
        return self.copy.state, self.copy in self.policy.to_resume

    def gap(self, kind: GapKind = GapKind.RETENTION) -> Gap:
        return self.copy.gap("records are missing", kind, offset=10)


@pytest.fixture
def case(flow: FakeFlow) -> Case:
    return Case(flow)


@pytest.fixture
def passing(flow: FakeFlow) -> Case:
    return Case(flow, pass_gaps=True)


@pytest.fixture
def tolerant(flow: FakeFlow) -> Case:
    return Case(flow, leave_out=True)


# Appends


def test_an_acknowledgement_moves_the_progress_and_clears_the_error(case: Case) -> None:
    case.copy.note_problem("slow")
    case.policy.appended(case.copy, case.send(2), 10)
    assert case.copy.acked is not None
    assert (case.copy.acked.last_offset, case.copy.acked.last_downstream, case.copy.error) == (11, 11, None)
    assert case.fate == (COPYING, False)


def test_the_last_acknowledgement_finishes_a_partition(case: Case) -> None:
    case.policy.appended(case.copy, case.send(10), 10)
    assert case.fate == (CAUGHT_UP, False)
    assert case.copy not in case.policy.unfinished


def test_an_acknowledgement_out_of_order_is_a_gap_to_look_at_again(case: Case) -> None:
    case.policy.appended(case.copy, case.send(2), 3)
    assert case.fate == (RESUMING, True)
    assert case.copy.suspected is not None
    assert case.copy.suspected.kind is GapKind.TARGET_LOST


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (6, "NOT_LEADER_OR_FOLLOWER (6)"),
        (7, "REQUEST_TIMED_OUT (7)"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION (3)"),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER (45)"),
        (46, "DUPLICATE_SEQUENCE_NUMBER (46)"),
        (47, "INVALID_PRODUCER_EPOCH (47)"),
        (59, "UNKNOWN_PRODUCER_ID (59)"),
    ],
)
def test_what_may_pass_is_resumed_after_a_pause(case: Case, code: int, name: str) -> None:
    pending = case.send()
    case.queue()
    case.policy.refused(case.copy, pending, code, None)
    assert case.fate == (RESUMING, True)
    assert case.copy.error is not None
    assert case.copy.error.startswith("append: ")
    assert f"({code})" in case.copy.error, name
    assert (list(case.copy.queue), case.queues.queued_bytes, case.copy.in_doubt) == ([], 0, True)
    assert case.flow.source.refreshed == case.flow.target.refreshed == 1
    assert case.policy.take_due(case.flow.loop.monotonic()) == []
    assert case.policy.take_due(case.flow.loop.monotonic() + 0.04) == [case.copy]


def test_pauses_double_up_to_two_seconds_and_begin_again_with_an_acknowledgement(case: Case) -> None:
    """Those of half a second and more end at a quarter of one, so that partitions are resumed together."""
    now = case.flow.loop.monotonic()
    pauses = []
    for _ in range(12):
        case.policy.retry_later(case.copy, "again")
        pauses.append(case.copy.retry.due - now)
    for attempt, pause in enumerate(pauses, 1):
        longest = min(2.0, 0.02 * 2**attempt)
        assert longest / 2 <= pause <= longest + (0.25 if longest >= 0.5 else 0)
    case.resume()
    case.policy.appended(case.copy, case.send(), 10)
    assert case.copy.retry.attempts == 0


def test_nothing_is_resumed_while_a_batch_is_in_flight(case: Case) -> None:
    case.queue()
    (queue,) = [queue for queue in case.queues if queue.ready]
    case.queues.take_request(queue)
    case.policy.retry_later(case.copy, "again")
    assert case.policy.take_due(case.flow.loop.monotonic() + 60) == []
    case.copy.window.answered()
    assert case.policy.take_due(case.flow.loop.monotonic() + 60) == [case.copy]


def test_after_a_failure_later_answers_decide_nothing(case: Case) -> None:
    first, second, third = case.send(), case.send(), case.send()
    case.policy.refused(case.copy, first, 45, None)
    due = case.copy.retry.due
    case.policy.refused(case.copy, second, 29, None)
    case.policy.unanswered(case.copy, kafka_errors.KafkaConnectionError("lost"))
    case.policy.appended(case.copy, third, 16)
    assert case.fate == (RESUMING, True)
    assert (case.policy.troubles, case.copy.retry.due) == (1, due)
    assert case.copy.acked is not None
    assert case.copy.acked.last_offset == 9


def test_a_batch_that_took_the_place_of_a_refused_one_is_a_hole(case: Case) -> None:
    first, second = case.send(), case.send()
    case.policy.refused(case.copy, first, 19, None)
    case.policy.appended(case.copy, second, 10)
    assert case.copy.suspected is not None
    assert case.copy.suspected.kind is GapKind.TARGET_HOLE


def test_a_lost_answer_is_resumed(case: Case) -> None:
    case.send()
    case.policy.unanswered(case.copy, kafka_errors.KafkaConnectionError("connection lost"))
    assert case.fate == (RESUMING, True)
    assert "connection lost" in (case.copy.error or "")


def test_a_checksum_that_the_target_refuses_is_compared_once_and_then_refused_for_good(case: Case) -> None:
    case.policy.refused(case.copy, case.send(), 2, None)
    assert case.fate == (RESUMING, True)
    assert case.copy.intake.verifies
    case.resume()
    case.policy.refused(case.copy, case.send(), 2, None)
    assert case.fate == (HALTED, False)


@pytest.mark.parametrize("code", [10, 18, 32, 87])
def test_a_batch_that_does_not_fit_is_halved_until_one_record_is_left(case: Case, code: int) -> None:
    case.policy.refused(case.copy, case.send(2, size_bytes=1_000), code, None)
    assert case.fate == (RESUMING, True)
    assert (case.copy.intake.max_batch_bytes, case.copy.retry.attempts) == (500, 1)
    case.resume()
    case.policy.refused(case.copy, case.send(1, size_bytes=500), code, "why")
    assert case.fate == (HALTED, False)
    assert case.copy.error is not None
    assert "t-0 at offset 10: A.t refuses the batch of 500 bytes: " in case.copy.error
    assert ("max.message.bytes of A.t is below 500" if code in (10, 18) else "why") in case.copy.error
    assert case.flow.writer.known["t", 0].stop is not None


@pytest.mark.parametrize("code", [10, 32])
def test_a_record_that_does_not_fit_is_left_out_where_errors_are_tolerated(tolerant: Case, code: int) -> None:
    tolerant.copy.intake.limit(500)
    tolerant.policy.refused(tolerant.copy, tolerant.send(1, size_bytes=500), code, None)
    assert tolerant.fate == (RESUMING, True)
    assert isinstance(tolerant.copy.skip, LeaveOut)
    assert (tolerant.copy.skip.offset, tolerant.copy.skip.next_offset) == (10, 11)
    assert tolerant.copy.intake.max_batch_bytes is None


@pytest.mark.parametrize("leave_out", [False, True])
@pytest.mark.parametrize("records", [1, 5])
def test_a_fence_is_waited_for_and_nothing_is_left_out(flow: FakeFlow, leave_out: bool, records: int) -> None:
    case = Case(flow, leave_out=leave_out)
    case.limits.seen = 78
    for _ in range(20):
        case.policy.refused(case.copy, case.send(records, size_bytes=500), 10, None)
        assert case.fate == (RESUMING, True)
        assert case.copy.skip is None
        case.resume()
    (line,) = {stop.reason for stop in [flow.writer.known["t", 0].stop] if stop is not None}
    assert line.startswith("A.t has the fence of an operation (max.message.bytes=78); its copy waits")
    case.limits.seen = None
    case.policy.appended(case.copy, case.send(records), 10)
    assert case.fate == (COPYING, False)
    assert flow.writer.known["t", 0].stop is None


def test_a_limit_that_a_record_does_not_exceed_is_read_again_before_the_record_is_left_out(tolerant: Case) -> None:
    """The broker that was asked may not know of a fence yet, or not any more."""
    tolerant.limits.seen = 1_000
    for _ in range(5):
        tolerant.policy.refused(tolerant.copy, tolerant.send(1, size_bytes=500), 10, None)
        assert tolerant.copy.skip is None
        tolerant.resume()
    tolerant.limits.seen = 78
    tolerant.policy.refused(tolerant.copy, tolerant.send(1, size_bytes=500), 10, None)
    assert tolerant.fate == (RESUMING, True)
    assert tolerant.copy.skip is None


@pytest.mark.parametrize("leave_out", [False, True])
def test_a_limit_that_may_not_be_read_may_be_a_fence(
    flow: FakeFlow, leave_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(flow, leave_out=leave_out)
    monkeypatch.setattr(FakeLimits, "exceeds", lambda *_: None)
    case.policy.refused(case.copy, case.send(1, size_bytes=500), 10, None)
    assert case.fate == (HALTED, False)
    assert case.copy.skip is None


@pytest.mark.parametrize("code", [29, 31, 44, 65])
def test_a_refusal_that_is_not_about_the_record_leaves_nothing_out(tolerant: Case, code: int) -> None:
    """Such as the fence by ACLs: DENY WRITE for everybody."""
    tolerant.policy.refused(tolerant.copy, tolerant.send(1), code, None)
    assert tolerant.fate == (HALTED, False)
    assert tolerant.copy.skip is None


def test_records_of_one_batch_that_are_all_refused_are_left_out_together(tolerant: Case) -> None:
    for offset in (10, 15):
        tolerant.policy.refused(tolerant.copy, tolerant.send(5), 87, "no key", 5)
        assert tolerant.fate == (RESUMING, True)
        assert isinstance(tolerant.copy.skip, LeaveOut)
        assert (tolerant.copy.skip.offset, tolerant.copy.skip.next_offset) == (offset, offset + 5)
        assert tolerant.copy.retry.attempts == 1, "the pause does not grow"
        tolerant.resume()
        tolerant.copy.resume_at(15, epoch=1, sequence=0, last_downstream=9, node=1)


def test_a_batch_of_which_one_record_is_refused_is_halved(tolerant: Case) -> None:
    tolerant.policy.refused(tolerant.copy, tolerant.send(5, size_bytes=1_000), 87, "no key", 1)
    assert tolerant.fate == (RESUMING, True)
    assert tolerant.copy.skip is None
    assert tolerant.copy.intake.max_batch_bytes == 500


def test_a_record_without_a_key_that_a_compacted_topic_refuses_names_the_config(case: Case) -> None:
    case.policy.refused(case.copy, case.send(1), 87, None)
    assert case.fate == (HALTED, False)
    assert "INVALID_RECORD (87); cleanup.policy of A.t is compact" in (case.copy.error or "")


def test_a_missing_right_halts_and_names_it(case: Case) -> None:
    case.policy.refused(case.copy, case.send(), 29, None)
    assert case.fate == (HALTED, False)
    assert case.copy.error is not None
    assert "TOPIC_AUTHORIZATION_FAILED (29)" in case.copy.error
    assert "grant WRITE on A.t" in case.copy.error


def test_too_few_replicas_are_waited_for(case: Case) -> None:
    case.flow.target.in_sync["A.t", 0] = (1, 2)
    for _ in range(10):
        case.policy.refused(case.copy, case.send(), 19, None)
        assert case.fate == (RESUMING, True)
        case.resume()


def test_a_replication_factor_below_min_insync_replicas_halts_in_the_end(case: Case) -> None:
    case.flow.target.in_sync["A.t", 0] = (1, 1)
    for _ in range(6):
        case.policy.refused(case.copy, case.send(), 19, None)
        assert case.fate == (RESUMING, True)
        case.resume()
    case.policy.refused(case.copy, case.send(), 19, None)
    assert case.fate == (HALTED, False)
    assert "replication factor 1 is below its min.insync.replicas" in (case.copy.error or "")


# Gaps


@pytest.mark.parametrize(
    ("kind", "looks"),
    [
        (GapKind.RETENTION, 1),
        (GapKind.CREATED_AGAIN, 1),
        (GapKind.UNEXPLAINED, 1),
        (GapKind.TRUNCATED, 6),
        (GapKind.TARGET_LOST, 6),
        (GapKind.TARGET_HOLE, 6),
    ],
)
def test_a_gap_is_looked_for_again_before_it_halts(case: Case, kind: GapKind, looks: int) -> None:
    for _ in range(looks):
        case.policy.gap_found(case.copy, case.gap(kind))
        assert case.fate == (RESUMING, True)
        assert "looking again" in (case.copy.error or "")
    case.policy.gap_found(case.copy, case.gap(kind))
    assert case.fate == (HALTED, False)
    halt = case.flow.writer.known["t", 0].halt if kind is not GapKind.UNEXPLAINED else None
    assert (halt is None) == (kind is GapKind.UNEXPLAINED)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (GapKind.RETENTION, "set mirrorless.on.gap=continue to skip the gap, or run `mirrorless offsets reset`"),
        (GapKind.TARGET_HOLE, "set mirrorless.on.gap=continue to copy the missing records now"),
        (GapKind.UNEXPLAINED, "see Lost progress in docs/operations.md"),
    ],
)
def test_a_halt_at_a_gap_says_what_to_do(case: Case, kind: GapKind, advice: str) -> None:
    case.copy.suspect(case.gap(kind))
    for _ in range(7):
        case.policy.gap_found(case.copy, case.gap(kind))
    assert f"t-0 at offset 10: records are missing; {advice}" in (case.copy.error or "")


def test_a_gap_that_a_lease_before_halted_at_is_believed_at_once(case: Case) -> None:
    case.copy.learn_epoch(Announcement(epoch=0, start=0, downstream=0, reason="first copy"))
    case.copy.note_halt(Halt(epoch=0, offset=10, kind=GapKind.TRUNCATED, reason="cut"))
    case.policy.gap_found(case.copy, case.gap(GapKind.TRUNCATED))
    case.policy.gap_found(case.copy, case.gap(GapKind.TRUNCATED))
    assert case.fate == (HALTED, False)


@pytest.mark.parametrize("pass_gaps", [False, True])
def test_of_several_runs_only_the_first_halts_at_a_gap_or_skips_it(flow: FakeFlow, *, pass_gaps: bool) -> None:
    case = Case(flow, pass_gaps=pass_gaps)
    case.copy.row = replace(case.copy.row, is_first=False)
    case.policy.gap_found(case.copy, case.gap())
    case.policy.gap_found(case.copy, case.gap())
    assert case.fate == (RESUMING, True)
    assert case.copy.retry.is_never
    assert case.copy.skip is None
    assert ("t", 0) not in flow.writer.known
    assert "another run of this flow copies the partition, and decides" in (case.copy.error or "")


@pytest.mark.parametrize(
    ("topic", "kind", "passes"),
    [
        ("app-store-repartition", GapKind.RETENTION, True),
        ("app-store-repartition", GapKind.TRUNCATED, False),
        ("kept-a-week-repartition", GapKind.RETENTION, False),
        ("app-store-changelog", GapKind.RETENTION, False),
    ],
)
def test_what_kafka_streams_purges_of_its_repartition_topics_is_passed(
    case: Case, topic: str, kind: GapKind, passes: bool
) -> None:
    case.copy.row = replace(case.copy.row, topic=topic, remote_topic=f"A.{topic}")
    case.copy.suspect(case.gap(kind))
    for _ in range(7):
        if case.copy in case.policy.to_resume or case.copy.skip is None:
            case.policy.gap_found(case.copy, case.gap(kind))
    assert (case.copy.skip is not None, case.copy.state is not HALTED) == (passes, passes)


def test_a_gap_is_skipped_where_that_is_set(passing: Case) -> None:
    passing.policy.gap_found(passing.copy, passing.gap())
    passing.policy.gap_found(passing.copy, passing.gap())
    assert passing.fate == (RESUMING, True)
    assert passing.copy.skip is not None
    assert passing.copy.retry.attempts == 1


def test_an_unknown_position_is_no_gap_to_skip(passing: Case) -> None:
    for _ in range(2):
        passing.policy.gap_found(passing.copy, passing.gap(GapKind.UNEXPLAINED))
    assert passing.fate == (HALTED, False)


# Fetches


def damage(offset: int, *, next_offset: int | None = None) -> FormatError:
    return FormatError("checksum", offset=offset, next_offset=next_offset, size_bytes=70)


def test_a_damaged_batch_is_fetched_again_before_the_partition_halts(case: Case) -> None:
    case.policy.batch_damaged(case.copy, damage(12, next_offset=13))
    assert case.fate == (RESUMING, True)
    case.resume()
    pending = case.send()
    case.policy.batch_damaged(case.copy, damage(12, next_offset=13))
    assert case.fate == (HALTED, False)
    case.policy.appended(case.copy, pending, 10)  # what came before it is still copied
    assert case.copy.acked is not None
    assert case.copy.acked.last_offset == 11
    assert "t-0 at offset 12: checksum" in (case.copy.error or "")


def test_a_damaged_batch_is_left_out_once_what_came_before_it_is_acknowledged(tolerant: Case) -> None:
    tolerant.copy.intake.note_damaged(12)
    pending = tolerant.send()
    tolerant.copy.window.in_flight += 1
    tolerant.policy.batch_damaged(tolerant.copy, damage(12, next_offset=13))
    tolerant.policy.position_changed(tolerant.copy)
    assert tolerant.fate == (COPYING, False)
    tolerant.copy.window.answered()
    tolerant.policy.appended(tolerant.copy, pending, 10)
    assert tolerant.fate == (RESUMING, True)
    assert isinstance(tolerant.copy.skip, LeaveOut)


def test_a_batch_without_an_end_cannot_be_left_out(tolerant: Case) -> None:
    for _ in range(2):
        tolerant.policy.batch_damaged(tolerant.copy, damage(12))
        if tolerant.copy.state is RESUMING:
            tolerant.resume()
    assert tolerant.fate == (HALTED, False)


# Halts


def test_a_halted_partition_is_not_resumed_by_a_later_failure(case: Case) -> None:
    pending = case.send()
    error = AppendRefused("loop", topic="t", partition=0, offset=12)
    case.policy.halt(case.copy, error, finish_queue=True)
    assert case.copy in case.policy.unfinished
    case.policy.refused(case.copy, pending, 6, None)
    assert case.fate == (HALTED, False)
    assert case.copy not in case.policy.unfinished
    assert case.copy.error == "t-0 at offset 12: loop"


def test_a_partition_left_to_the_next_lease_is_never_due(case: Case) -> None:
    case.policy.leave_to_next_lease(case.copy, "another run copies it")
    assert case.copy.retry.is_never
    assert case.policy.take_due(float("1e12")) == []


def test_a_dropped_copy_writes_its_progress(case: Case) -> None:
    case.policy.appended(case.copy, case.send(2), 10)
    case.policy.drop(case.copy)
    progress = case.flow.writer.known["t", 0].progress
    assert progress is not None
    assert progress.last_offset == 11
    assert case.fate == (HALTED, False)
