"""When the copier writes which offset sync (reference, section 3.2; design, section 6)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mirrorless.copy.offset_syncs.schedule import INTERVAL_MS, AppendedBatch, SyncSchedule, Tail
from mirrorless.formats import OffsetSync


def schedule(*, lag_max: int = 100, index_records: int = 1000, tail: Tail | None = None) -> SyncSchedule:
    return SyncSchedule(topic="t", partition=0, lag_max=lag_max, index_records=index_records, tail=tail)


def append(upstream: int, downstream: int, count: int, *, holes: int = 0) -> AppendedBatch:
    return AppendedBatch(
        first_upstream=upstream,
        last_upstream=upstream + count + holes - 1,
        first_downstream=downstream,
        record_count=count,
        dense=not holes,
    )


def sync(upstream: int, downstream: int, run: int, block: int | None = None) -> OffsetSync:
    return OffsetSync(topic="t", partition=0, last_upstream=upstream, last_downstream=downstream, run=run, block=block)


def test_the_first_of_a_lifetime_is_written_at_once_as_tail_and_as_index() -> None:
    assert schedule().appended(append(0, 0, 10), time_ms=5) == [sync(9, 9, 10, 0), sync(9, 9, 10)]


def test_within_the_lag_nothing_is_written_until_it_falls_quiet() -> None:
    one = schedule()
    one.appended(append(0, 0, 10), time_ms=0)
    assert one.appended(append(10, 10, 50), time_ms=2000) == []
    assert one.due(time_ms=2999) == []
    assert one.due(time_ms=3000) == [sync(59, 59, 60)]
    assert one.due(time_ms=9000) == []
    assert one.rest(time_ms=9000) == []


def test_beyond_the_lag_it_is_written_at_most_once_an_interval() -> None:
    one = schedule()
    one.appended(append(0, 0, 1), time_ms=0)
    assert one.appended(append(1, 1, 101), time_ms=10) == []
    assert one.appended(append(102, 102, 101), time_ms=20) == []
    assert one.due(time_ms=999) == []
    assert one.due(time_ms=1000) == [sync(202, 202, 203)]
    assert one.appended(append(203, 203, 100), time_ms=1500) == []
    assert one.appended(append(303, 303, 1), time_ms=2100) == [sync(303, 303, 304)]


def test_a_hole_ends_the_run_and_asks_for_a_sync() -> None:
    one = schedule()
    one.appended(append(0, 0, 10), time_ms=0)
    assert one.appended(append(11, 10, 5), time_ms=1000) == [sync(15, 14, 5)]


def test_records_of_another_writer_end_the_run() -> None:
    one = schedule()
    one.appended(append(0, 0, 10), time_ms=0)
    assert one.appended(append(10, 13, 5), time_ms=1000) == []
    assert one.rest(time_ms=1000) == [sync(14, 17, 5)]


def test_a_batch_with_holes_leaves_only_its_last_record_as_a_run() -> None:
    one = schedule()
    one.appended(append(0, 0, 10), time_ms=0)
    assert one.appended(append(10, 10, 5, holes=3), time_ms=1000) == [sync(17, 14, 1)]
    assert one.appended(append(18, 15, 2), time_ms=2000) == []
    assert one.rest(time_ms=2000) == [sync(19, 16, 3)]


def test_records_that_come_again_ask_for_a_sync() -> None:
    one = schedule()
    one.appended(append(0, 0, 10), time_ms=0)
    assert one.appended(append(5, 10, 5), time_ms=1000) == [sync(9, 14, 5)]


def test_an_index_sync_is_written_when_a_block_is_entered_whatever_the_clock_says() -> None:
    one = schedule(lag_max=10**9)
    one.appended(append(0, 0, 999), time_ms=0)
    assert one.appended(append(999, 999, 2), time_ms=1) == [sync(1000, 1000, 1001, 1)]
    assert one.appended(append(1001, 1001, 500), time_ms=2) == []
    far = append(1000 * 1025 + 3, 2000, 1)
    assert one.appended(far, time_ms=3) == [sync(far.last_upstream, 2000, 1, 1)]


def test_a_lifetime_may_go_on_where_the_last_one_ended() -> None:
    one = schedule(tail=Tail(last_upstream=1499, last_downstream=1499, run=1500))
    assert one.rest(time_ms=0) == []
    assert one.due(time_ms=9999) == []
    assert one.appended(append(1500, 1500, 10), time_ms=0) == [sync(1509, 1509, 1510)]
    assert one.tail == Tail(last_upstream=1509, last_downstream=1509, run=1510)


def test_every_record_is_synced_where_no_lag_is_allowed() -> None:
    one = schedule(lag_max=0)
    one.appended(append(0, 0, 1), time_ms=0)
    assert one.appended(append(1, 1, 1), time_ms=INTERVAL_MS) == [sync(1, 1, 2)]
    assert one.appended(append(2, 2, 1), time_ms=2 * INTERVAL_MS) == [sync(2, 2, 3)]


STEP = st.tuples(st.integers(0, 3), st.integers(1, 400), st.integers(0, 2), st.integers(0, 1500))


@given(st.lists(STEP, min_size=1, max_size=60), st.integers(0, 200), st.booleans())
def test_every_sync_is_true_its_run_too_and_the_last_record_always_gets_one(
    steps: list[tuple[int, int, int, int]], lag_max: int, ticks: bool
) -> None:
    one = schedule(lag_max=lag_max, index_records=500)
    pairs: dict[int, int] = {}
    written: list[OffsetSync] = []
    tail_times: list[int] = []
    upstream = downstream = time_ms = 0
    for gap, count, holes, pause_ms in steps:
        upstream += gap
        time_ms += pause_ms
        # A batch with holes has them before its last record.
        batch = append(upstream, downstream, count, holes=holes if count > 1 else 0)
        offsets = [*range(upstream, upstream + count - 1), batch.last_upstream]
        pairs |= dict(zip(offsets, range(downstream, downstream + count), strict=True))
        upstream, downstream = batch.last_upstream + 1, downstream + count
        syncs = one.appended(batch, time_ms=time_ms) + (one.due(time_ms=time_ms) if ticks else [])
        written += syncs
        tail_times += [time_ms for one_sync in syncs if one_sync.block is None]
    assert all(later - earlier >= INTERVAL_MS for earlier, later in pairwise(tail_times))
    written += one.rest(time_ms=time_ms)
    for one_sync in written:
        assert one_sync.run is not None
        for back in range(one_sync.run):
            assert pairs[one_sync.last_upstream - back] == one_sync.last_downstream - back
    tails = [one_sync for one_sync in written if one_sync.block is None]
    assert (tails[-1].last_upstream, tails[-1].last_downstream) == (upstream - 1, downstream - 1)
    assert {one_sync.block for one_sync in written} - {None} <= {up // 500 % 1024 for up in pairs}
