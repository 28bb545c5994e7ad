"""Whole leases between two clusters in memory: what they copy, report and write, whatever happens meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.errors import GapKind
from mirrorless.progress.records import Progress
from tests.support.fake_cluster import Fault
from tests.support.fake_flow import FakeFlow, Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.copy.slot.lease import Lease

VALUES = [b"%02000d" % number for number in range(100)]
"""Large enough that batches of ten are copied as they are."""


def fill(flow: FakeFlow, values: Sequence[bytes] = VALUES, *, per_batch: int = 10, age_ms: int = 0) -> None:
    for at in range(0, len(values), per_batch):
        flow.produce(*values[at : at + per_batch], age_ms=age_ms)


def one(reports: list[Report]) -> Report:
    (report,) = reports
    return report


def test_a_bounded_lease_copies_everything_and_writes_its_progress(flow: FakeFlow) -> None:
    fill(flow)
    report = one(flow.run())
    assert flow.copied() == VALUES
    assert (report.state, report.records, report.first_offset, report.next_offset) == ("caught up", 100, 0, 100)
    assert (report.batches, report.lag_records, report.error) == (10, 0, None)
    assert flow.known()["t", 0].progress == Progress(99, sequence=100, epoch=0, last_downstream=99, leader_epoch=0)


def test_the_next_lease_continues_where_the_last_one_ended(flow: FakeFlow) -> None:
    fill(flow)
    flow.run()
    assert one(flow.run()).records == 0
    flow.produce(b"new")
    report = one(flow.run())
    assert (report.records, report.first_offset, flow.copied()) == (1, 100, [*VALUES, b"new"])


@pytest.mark.parametrize("age_ms", [0, 86_400_000])
@pytest.mark.parametrize("code", [3, 6, 7, 19, 20, 45, 59])
def test_an_append_that_is_refused_for_a_while_loses_and_repeats_nothing(
    flow: FakeFlow, code: int, age_ms: int
) -> None:
    flow.target.log("A.t").forgets = age_ms > 0
    flow.target.append_errors["A.t", 0].extend([code] * 3)
    fill(flow, age_ms=age_ms)
    report = one(flow.run())
    assert (report.state, flow.copied()) == ("caught up", VALUES)
    assert flow.target.requests["producers"] == 4


@pytest.mark.parametrize("fault", [Fault.REQUEST_LOST, Fault.ANSWER_LOST, Fault.NOT_SENT])
@pytest.mark.parametrize("sent", range(6))
def test_a_lost_connection_to_the_target_loses_and_repeats_nothing(flow: FakeFlow, fault: Fault, sent: int) -> None:
    flow.target.faults += [*([None] * sent), fault]
    fill(flow)
    report = one(flow.run())
    assert (report.state, flow.copied()) == ("caught up", VALUES)


def test_a_lost_connection_to_the_source_is_made_again(flow: FakeFlow) -> None:
    flow.source.lost_fetches = 3
    fill(flow)
    assert (one(flow.run()).state, flow.copied()) == ("caught up", VALUES)


def test_progress_that_was_not_written_is_found_at_the_target(flow: FakeFlow) -> None:
    fill(flow)
    flow.writer.broken = True
    assert one(flow.run()).error == "progress was not written"
    flow.writer.broken = False
    fill(flow, [b"more"])
    report = one(flow.run())
    assert (report.records, flow.copied()) == (1, [*VALUES, b"more"])


def test_an_acknowledgement_that_comes_after_the_lease_ended_is_counted_by_nobody_twice(flow: FakeFlow) -> None:
    fill(flow)
    flow.run(seconds=0.003)  # some batches are on their way
    flow.run()
    assert flow.copied() == VALUES


def test_a_stop_in_the_middle_ends_the_lease_with_what_is_in_flight(flow: FakeFlow) -> None:
    fill(flow, [b"x" * 10_000] * 1_000)
    lease = flow.lease(bytes_per_second=1_000_000)
    flow.loop.call_later(3.0, lambda: setattr(flow.observer, "stops", True))
    began = flow.loop.monotonic()
    report = one(flow.loop.run(lease.run()))
    assert flow.loop.monotonic() - began < 3.1
    assert 0 < report.records == len(flow.copied()) < 1_000
    progress = flow.known()["t", 0].progress
    assert progress is not None
    assert progress.last_offset == report.records - 1


def test_a_lease_ends_when_its_time_is_over(flow: FakeFlow) -> None:
    began = flow.loop.monotonic()
    report = one(flow.run(seconds=5.0, bounded=False))
    assert 5.0 <= flow.loop.monotonic() - began < 6.0
    assert report.state == "caught up"


def test_what_is_produced_while_a_lease_runs_is_copied(flow: FakeFlow) -> None:
    lease = flow.lease(bounded=False, seconds=3.0)
    flow.loop.call_later(1.0, lambda: flow.produce(b"new"))
    report = one(flow.loop.run(lease.run()))
    assert (report.records, flow.copied()) == (1, [b"new"])
    assert report.latency_ms is not None
    assert report.latency_ms < 20


def test_a_partition_that_appears_is_copied_within_the_lease(make_flow: Callable[..., FakeFlow]) -> None:
    flow = make_flow(partitions=2)
    flow.produce(b"new", partition=1)
    lease = flow.lease([flow.row(0)], bounded=False, seconds=3.0)
    flow.added.append(flow.row(1))
    reports = flow.loop.run(lease.run())
    assert [(report.partition, report.records) for report in reports] == [(0, 0), (1, 1)]


def test_a_new_leader_of_either_side_is_followed(flow: FakeFlow) -> None:
    fill(flow)
    lease = flow.lease(bounded=False, seconds=5.0)

    def move() -> None:
        flow.source.leaders["t", 0] = flow.target.leaders["A.t", 0] = 2
        flow.target.append_errors["A.t", 0].append(6)
        fill(flow, [b"after"])

    flow.loop.call_later(1.0, move)
    assert one(flow.loop.run(lease.run())).records == 101
    assert flow.copied() == [*VALUES, b"after"]
    assert flow.target.sent[-1][0] == 2


def test_a_gap_halts_its_partition_alone_and_the_next_lease_remembers_it(make_flow: Callable[..., FakeFlow]) -> None:
    flow = make_flow(partitions=2)
    flow.run()
    for _ in range(5):
        flow.produce(b"a")
        flow.produce(b"b", partition=1)
    flow.source.log("t").delete_before(3)
    halted, other = flow.run()
    assert (halted.state, halted.records) == ("halted", 0)
    assert (other.state, other.records) == ("caught up", 5)
    assert halted.error == (
        "t-0 at offset 0: the source begins at 3, 3 offsets were deleted before they were copied; "
        "set mirrorless.on.gap=continue to skip the gap, or run `mirrorless offsets reset` to restart the topic"
    )
    halt = flow.known()["t", 0].halt
    assert halt is not None
    assert (halt.kind, halt.offset, halt.records) == (GapKind.RETENTION, 0, 3)
    assert flow.run()[0].state == "halted"
    again, _ = flow.run(pass_gaps=True)
    assert (again.state, again.records, again.first_offset, again.gaps) == ("caught up", 2, 3, 1)


def test_a_target_that_lost_records_halts_after_some_looks(flow: FakeFlow) -> None:
    fill(flow)
    flow.run()
    flow.target.log("A.t").truncate(80)
    report = one(flow.run())
    assert report.state == "halted"
    assert "the remote partition ends at 80, before the acknowledged record 99" in (report.error or "")
    report = one(flow.run(pass_gaps=True))
    assert (report.state, report.records, flow.copied()) == ("caught up", 20, VALUES)


def test_a_target_that_is_short_for_a_moment_does_not_halt(flow: FakeFlow) -> None:
    fill(flow)
    flow.run()
    flow.target.log("A.t").replicated = 80
    flow.produce(b"new")
    flow.loop.call_later(0.5, lambda: setattr(flow.target.log("A.t"), "replicated", None))
    report = one(flow.run())
    assert (report.state, flow.copied()) == ("caught up", [*VALUES, b"new"])


def test_a_record_that_is_too_large_halts_and_is_left_out_where_that_is_set(flow: FakeFlow) -> None:
    large = bytes(19_000)
    flow.produce(*VALUES[:5], large, *VALUES[5:10])
    flow.target.log("A.t").max_message_bytes = 16_000
    report = one(flow.run())
    assert (report.state, flow.copied()) == ("halted", VALUES[:5])
    assert (report.error or "").startswith("t-0 at offset 5: A.t refuses the batch of 19")
    assert "max.message.bytes of A.t" in (report.error or "")
    assert flow.known()["t", 0].stop is not None
    report = one(flow.run(leave_out=True))
    assert (report.state, report.left_out, flow.copied()) == ("caught up", 1, VALUES[:10])
    known = flow.known()["t", 0]
    assert known.stop is None
    assert known.announced[1].reason.startswith("left out offset 5, 19")


@pytest.mark.parametrize("leave_out", [False, True])
def test_records_written_while_the_remote_topic_is_fenced_arrive_afterwards(flow: FakeFlow, leave_out: bool) -> None:
    fill(flow, per_batch=10)
    flow.run()
    log = flow.target.log("A.t")
    log.max_message_bytes = 78
    later = [b"later %d" % n * 20 for n in range(50)]
    flow.produce(*later)
    report = one(flow.run(leave_out=leave_out, seconds=20.0))
    assert (report.state, report.left_out, flow.copied()) == ("resuming", 0, VALUES)
    assert (report.error or "").startswith("t-0: A.t has the fence of an operation")
    stop = flow.known()["t", 0].stop
    assert stop is not None
    assert stop.offset == len(VALUES)
    flow.loop.call_later(5.0, lambda: setattr(log, "max_message_bytes", None))
    report = one(flow.run(leave_out=leave_out))
    assert (report.state, report.left_out, flow.copied()) == ("caught up", 0, [*VALUES, *later])
    assert flow.known()["t", 0].stop is None


def test_a_batch_that_is_larger_than_the_target_takes_is_split(flow: FakeFlow) -> None:
    fill(flow, per_batch=50)
    flow.target.log("A.t").max_message_bytes = 16_000
    report = one(flow.run())
    assert (report.state, flow.copied()) == ("caught up", VALUES)


def test_a_missing_right_halts_until_it_is_granted(flow: FakeFlow) -> None:
    fill(flow)
    flow.target.append_errors["A.t", 0].append(29)
    report = one(flow.run())
    assert report.state == "halted"
    assert "grant WRITE on A.t" in (report.error or "")
    assert (one(flow.run()).state, flow.copied()) == ("caught up", VALUES)


def test_a_transaction_that_is_open_for_long_is_reported(flow: FakeFlow) -> None:
    flow.source.log("t").produce([b"x"], transaction=7)
    fill(flow)
    report = one(flow.run(bounded=False, seconds=90.0))
    assert (report.state, report.records, report.lag_records) == ("waiting", 0, 101)
    assert (report.error or "").startswith("t-0: transaction open for ")


def test_a_throttled_target_is_reported_and_loses_nothing(flow: FakeFlow) -> None:
    fill(flow, age_ms=86_400_000)
    flow.target.quiet[1] = 0.2
    flow.loop.call_later(2.0, flow.target.quiet.clear)
    report = one(flow.run())
    assert (report.state, flow.copied()) == ("caught up", VALUES)


def test_another_runs_records_are_counted_once_by_the_target(flow: FakeFlow) -> None:
    """Two runs copy the same partition: the slower one's appends are acknowledged with the first one's offsets."""
    fill(flow)
    first, second = flow.lease(bounded=False, seconds=5.0), flow.lease(bounded=False, seconds=5.0)

    async def both() -> None:
        under_way = [flow.loop.call_soon_with_future(lease.run()) for lease in (first, second)]
        for lease in under_way:
            await lease

    flow.loop.call_later(1.0, lambda: fill(flow))
    flow.loop.run(both())
    assert flow.copied() == VALUES * 2


def test_a_bug_ends_the_lease(flow: FakeFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    fill(flow)
    monkeypatch.setattr(flow.source, "fetch", broken)
    with pytest.raises(ZeroDivisionError):
        flow.run()


@pytest.mark.parametrize("watched", [False, True])
def test_a_running_lease_reports_where_it_is_watched(flow: FakeFlow, *, watched: bool) -> None:
    flow.observer = Observer(watched=watched)
    reports = flow.run(bounded=False, seconds=3.0)
    assert flow.observer.observed[-1] == reports
    assert len(flow.observer.observed) == (7 if watched else 1)


# Holdover


class Held:
    """A lease that has ended, and whose copy continues until the next one."""

    def __init__(self, flow: FakeFlow, **terms: Any) -> None:  # noqa: ANN401
        self.flow = flow
        self.terms: dict[str, Any] = {"bounded": False, "seconds": 2.0, "holdover_s": 30.0} | terms
        self.lease = flow.lease(**self.terms)
        self.report = one(flow.loop.run(self.lease.run()))

    def recall(self) -> bool:
        return self.flow.loop.run(self.lease.recall())

    def renew(self, rows: list[LeaseRow] | None = None, **terms: Any) -> bool:  # noqa: ANN401
        observer = Observer()
        rows = self.flow.rows() if rows is None else rows
        return self.lease.renew(rows, self.flow.terms(**(self.terms | terms)), observer)

    def run(self) -> list[Report]:
        return self.flow.loop.run(self.lease.run())


def test_between_two_leases_the_copy_continues_and_the_next_lease_counts_it(flow: FakeFlow) -> None:
    fill(flow)
    held = Held(flow)
    assert (held.report.records, flow.observer.events) == (100, ["holding"])
    fill(flow, [b"between"])
    flow.loop.run_for(1.0)
    assert flow.copied()[-1] == b"between"
    asked = flow.target.requests["producers"]
    assert held.recall()
    assert held.renew()
    assert flow.observer.events == ["holding", "handed over"]
    fill(flow, [b"after"])
    report = one(held.run())
    assert (report.records, report.first_offset) == (2, 100)
    assert flow.target.requests["producers"] == asked  # nothing was resumed
    assert flow.copied() == [*VALUES, b"between", b"after"]


def test_where_no_lease_follows_it_ends_and_reports_what_was_copied(flow: FakeFlow) -> None:
    held = Held(flow, holdover_s=5.0)
    fill(flow)
    flow.loop.run_for(6.0)
    assert flow.observer.events == ["holding", "landed"]
    assert one(flow.observer.after).records == 100
    assert not held.recall()
    fill(flow, [b"late"])
    flow.loop.run_for(1.0)
    assert flow.copied() == VALUES


def test_trouble_between_two_leases_is_left_to_the_next(flow: FakeFlow) -> None:
    held = Held(flow)
    flow.target.append_errors["A.t", 0].append(6)
    fill(flow)
    flow.loop.run_for(1.0)
    assert (flow.observer.events, flow.copied()) == (["holding", "handed over"], [])
    assert not held.recall()
    assert one(flow.run()).records == 100
    assert flow.copied() == VALUES


def test_a_stop_between_two_leases_ends_the_copy(flow: FakeFlow) -> None:
    held = Held(flow)
    flow.observer.stops = True
    flow.loop.run_for(1.0)
    assert flow.observer.events == ["holding", "landed"]
    assert not held.recall()


def test_a_stopped_lease_has_no_holdover(flow: FakeFlow) -> None:
    flow.observer.stops = True
    assert Held(flow).report.records == 0
    assert flow.observer.events == []


def test_other_terms_need_another_lease(flow: FakeFlow) -> None:
    held = Held(flow)
    assert held.recall()
    assert not held.renew(pass_gaps=True)
    left = flow.loop.run(held.lease.leave())
    assert flow.observer.events == ["holding", "handed over"]
    assert list(left) == [("t", 0)]
    fill(flow)
    lease: Lease = flow.lease(left=left)
    assert one(flow.loop.run(lease.run())).records == 100


def test_a_quiet_copy_is_asked_for_again_by_the_next_lease(flow: FakeFlow) -> None:
    """Whether the target lost something shows only where it is asked."""
    fill(flow)
    held = Held(flow)
    assert held.recall()
    flow.target.log("A.t").truncate(50)
    assert held.renew()
    report = one(held.run())
    while report.state == "resuming":
        report = one(flow.run())
    assert report.state == "halted"
    assert "the remote partition ends at 50" in (report.error or "")


def test_a_partition_that_is_not_planned_any_more_is_dropped(make_flow: Callable[..., FakeFlow]) -> None:
    flow = make_flow(partitions=2)
    lease = flow.lease(bounded=False, seconds=2.0, holdover_s=30.0)
    flow.loop.run(lease.run())
    assert flow.loop.run(lease.recall())
    terms = flow.terms(bounded=False, seconds=2.0, holdover_s=30.0)
    assert lease.renew([flow.row(1)], terms, flow.observer)
    flow.produce(b"a")
    flow.produce(b"b", partition=1)
    assert [report.partition for report in flow.loop.run(lease.run())] == [1]
    assert (flow.copied(0), flow.copied(1)) == ([], [b"b"])


def test_a_halted_partition_is_tried_again_by_the_next_lease_and_the_others_continue(
    make_flow: Callable[..., FakeFlow],
) -> None:
    flow = make_flow(partitions=2)
    flow.produce(b"bad")
    flow.target.append_errors["A.t", 0].append(29)
    terms: dict[str, Any] = {"bounded": False, "seconds": 2.0, "holdover_s": 30.0}
    lease = flow.lease(**terms)
    assert [report.state for report in flow.loop.run(lease.run())] == ["halted", "caught up"]
    first = dict(lease._copies)
    flow.produce(b"good", partition=1)
    flow.loop.run_for(1.0)
    assert flow.loop.run(lease.recall())
    assert lease.renew(flow.rows(), flow.terms(**terms), flow.observer)
    reports = flow.loop.run(lease.run())
    assert {report.partition: (report.state, report.records) for report in reports} == {
        0: ("caught up", 1),
        1: ("caught up", 1),
    }
    assert [lease._copies[place] is first[place] for place in (("t", 0), ("t", 1))] == [False, True]
    assert (flow.copied(0), flow.copied(1)) == ([b"bad"], [b"good"])


def test_an_append_without_an_answer_is_given_up_at_the_end_of_the_lease(make_flow: Callable[..., FakeFlow]) -> None:
    """It could reach the target after another run has begun, when a link that is cut lets it through."""
    flow = make_flow()
    flow.produce(b"a")
    flow.target.faults.append(Fault.NO_ANSWER)
    report = one(flow.run(bounded=False, seconds=1.0))
    assert flow.target.unanswered == []
    assert (report.state, report.records) == ("resuming", 0)
    report = one(flow.run(bounded=False, seconds=1.0))
    assert (report.state, flow.copied(0)) == ("caught up", [b"a"])
