"""What was read of a flow becomes rows."""

from __future__ import annotations

import time
from statistics import median

from mirrorless.errors import GapKind
from mirrorless.local.progress_view import TopicView
from mirrorless.progress.records import Halt, Known, Progress
from mirrorless.web.flow_view import FlowView
from mirrorless.web.snapshot import TopicState


def view(**counts: int) -> FlowView:
    made = FlowView("A->B")
    made.set_topics({topic: f"A.{topic}" for topic in counts}, counts)
    return made


def known(next_offset: int) -> Known:
    return Known(progress=Progress(next_offset - 1, sequence=0, epoch=0))


def live(topic: str, **fields: object) -> TopicView:
    usual: dict[str, object] = {
        "partitions": 1,
        "records": 5,
        "copied_bytes": 50,
        "records_per_s": 2.5,
        "bytes_per_s": 25.0,
        "lag_records": 3,
        "latency_ms": 7,
        "state": "copying",
        "error": None,
    }
    return TopicView(topic=topic, **(usual | fields))  # type: ignore[arg-type]


def test_of_a_topic_that_was_created_again_everything_is_lag() -> None:
    flow = view(orders=1)
    halt = Halt(epoch=0, offset=780, kind=GapKind.CREATED_AGAIN, reason="another id", position=780)
    flow.set_ends({("orders", 0): 520}, {}, 0.0)
    flow.set_progress({("orders", 0): Known(progress=Progress(779, sequence=0, epoch=0), halt=halt)}, 0.0)
    (row,) = flow.rows()
    assert (row.halted, row.lag_records) == (1, 520)


def test_lag_and_rate_come_from_offsets() -> None:
    flow = view(orders=2)
    flow.set_ends({("orders", 0): 100, ("orders", 1): 50}, {}, 10.0)
    flow.set_progress({("orders", 0): known(40), ("orders", 1): known(50)}, 10.0)
    flow.set_progress({("orders", 0): known(80), ("orders", 1): known(50)}, 14.0)
    (row,) = flow.rows()
    assert (row.lag_records, row.records_per_s, row.state, row.partitions) == (20, 10.0, TopicState.COPYING, 2)
    assert (row.bytes_per_s, row.latency_ms, row.remote_topic) == (None, None, "A.orders")
    assert flow.started == 2


def test_what_was_not_read_is_unknown() -> None:
    flow = view(orders=1)
    (row,) = flow.rows()
    assert (row.state, row.lag_records, row.lag_s) == (TopicState.UNKNOWN, None, None)
    flow.set_progress({}, 0.0)
    assert flow.rows()[0].lag_records is None
    flow.set_ends({("orders", 0): 5}, {}, 0.0)
    assert (flow.rows()[0].lag_records, flow.rows()[0].state) == (5, TopicState.NOT_STARTED)


def test_lag_and_rates_of_earlier_are_not_those_of_now() -> None:
    flow = view(orders=1)
    flow.set_ends({("orders", 0): 9}, {}, 0.0)
    flow.set_progress({("orders", 0): known(9)}, 0.0)
    assert (flow.rows()[0].lag_records, flow.rows()[0].records_per_s) == (0, 0.0)
    flow.set_unread("no answer")
    (row,) = flow.rows()
    assert (row.lag_records, row.lag_s, row.records_per_s) == (None, None, None)
    partitions = flow.partitions("orders")
    assert partitions is not None
    (partition,) = partitions
    assert (partition.lag_records, partition.lag_s, partition.next_offset) == (None, None, 9)
    flow.set_unread(None)
    assert flow.rows()[0].lag_records == 0


def test_the_state_is_that_of_the_worst_partition() -> None:
    flow = view(orders=3)
    flow.set_ends({("orders", 0): 5, ("orders", 1): 5}, {("orders", 2): "no leader"}, 0.0)
    flow.set_progress({("orders", 0): known(5)}, 0.0)
    (row,) = flow.rows()
    assert (row.state, row.error) == (TopicState.UNREACHABLE, "no leader")
    rows = flow.partitions("orders")
    assert rows is not None
    assert [one.state for one in rows] == [TopicState.CAUGHT_UP, TopicState.NOT_STARTED, TopicState.UNREACHABLE]
    assert [one.lag_records for one in rows] == [0, 5, None]
    assert flow.partitions("other") is None


def test_a_gap_has_its_kind_and_reason() -> None:
    flow = view(orders=1)
    gap = Halt(epoch=1, offset=7, kind=GapKind.RETENTION, reason="30 records are gone", records=30)
    flow.set_progress({("orders", 0): Known(progress=Progress(6, sequence=0, epoch=1), halt=gap)}, 0.0)
    (row,) = flow.halted()
    assert (row.gap, row.offset, row.records, row.reason) == ("RETENTION", 7, 30, "30 records are gone")
    assert flow.rows()[0].halted == 1


def test_a_halt_that_is_no_gap_has_no_kind() -> None:
    flow = view(orders=1)
    stop = Halt(epoch=1, offset=7, reason="the target refuses the batch")
    flow.set_progress({("orders", 0): Known(progress=Progress(6, sequence=0, epoch=1), stop=stop)}, 0.0)
    (row,) = flow.halted()
    assert row.gap is None


def test_the_process_that_copies_knows_more() -> None:
    flow = view(orders=1)
    flow.set_ends({("orders", 0): 100}, {}, 0.0)
    flow.set_progress({("orders", 0): known(40)}, 0.0)
    flow.set_live({"orders": live("orders")})
    (row,) = flow.rows()
    assert (row.lag_records, row.records_per_s, row.bytes_per_s, row.latency_ms) == (3, 2.5, 25, 7)
    flow.set_live({"orders": live("orders", state="unreachable", error="no answer")})
    (row,) = flow.rows()
    assert (row.lag_records, row.state, row.error) == (60, TopicState.UNREACHABLE, "no answer")


def test_a_topic_that_grows_keeps_what_is_known_and_one_that_is_gone_is_forgotten() -> None:
    flow = view(orders=1, other=1)
    flow.set_ends({("orders", 0): 9}, {}, 0.0)
    flow.set_topics({"orders": "A.orders"}, {"orders": 2})
    flow.set_ends({("other", 0): 9, ("orders", 5): 9}, {}, 0.0)
    (row,) = flow.rows()
    assert (row.topic, row.partitions, row.state) == ("orders", 2, TopicState.UNKNOWN)
    assert (row.lag_records, row.unknown_partitions) == (9, 1)
    flow.set_ends({("orders", 1): 4}, {}, 1.0)
    flow.set_progress({}, 1.0)
    (row,) = flow.rows()
    assert (row.lag_records, row.state) == (13, TopicState.NOT_STARTED)
    assert flow.lag_of(("orders", 0), 4) == 5
    assert flow.lag_of(("orders", 2), 4) is None


def test_a_row_without_a_change_is_the_same_object() -> None:
    flow = view(orders=1, other=1)
    flow.set_progress({("orders", 0): known(9), ("other", 0): known(5)}, 0.0)
    flow.set_ends({("orders", 0): 9, ("other", 0): 9}, {}, 0.0)
    first = flow.rows()
    flow.set_ends({("orders", 0): 9, ("other", 0): 9}, {}, 1.0)
    flow.set_progress({("orders", 0): known(9), ("other", 0): known(7)}, 1.0)
    second = flow.rows()
    assert [one is other for one, other in zip(first, second, strict=True)] == [True, False]
    flow.set_progress({("orders", 0): known(9), ("other", 0): known(7)}, 20.0)
    assert [row.records_per_s for row in flow.rows()] == [0.0, 0.0]


def test_one_update_of_10000_partitions_is_cheap() -> None:
    """The median of several, with a tenth of all ends and every position new."""
    flow = view(**{f"topic-{number}": 5 for number in range(2_000)})
    spent = []
    for look in range(9):
        began = time.thread_time()
        flow.set_progress({place: known(100 * look) for place in flow.places}, 2.0 * look)
        flow.set_ends(dict.fromkeys(flow.places[:1_000], 100 * look + 7), {}, 2.0 * look)
        flow.rows()
        spent.append(time.thread_time() - began)
    assert median(spent) < 0.15  # with the positions, which are made here


def test_what_is_not_known_is_none_and_not_zero() -> None:
    flow = view(orders=2)
    flow.set_progress({("orders", 0): known(40)}, 0.0)
    (row,) = flow.rows()
    assert (row.state, row.lag_records, row.unknown_partitions, row.lag_s) == (TopicState.UNKNOWN, None, 2, None)
    flow.set_ends({("orders", 0): 100}, {}, 0.0)
    (row,) = flow.rows()
    assert (row.lag_records, row.unknown_partitions, row.catch_up_s) == (60, 1, None)
    flow.set_ends({("orders", 1): 0}, {}, 0.0)
    flow.set_unread("cluster A: no answer")
    (row,) = flow.rows()
    assert (row.state, row.error) == (TopicState.UNKNOWN, "cluster A: no answer")
    assert (row.lag_records, row.lag_s, row.records_per_s, row.lag_per_s) == (None, None, None, None)
    partitions = flow.partitions("orders") or []
    assert [(one.state, one.lag_records) for one in partitions] == [(TopicState.UNKNOWN, None)] * 2
    flow.set_unread(None)
    assert flow.rows()[0].lag_records == 60


def test_time_until_caught_up_is_by_how_the_lag_shrinks() -> None:
    flow = view(orders=1)
    for now, (end, copied) in enumerate([(1_000, 0), (1_100, 300), (1_200, 600)]):
        flow.set_ends({("orders", 0): end}, {}, 5.0 * now)
        flow.set_progress({("orders", 0): known(copied)}, 5.0 * now)
    (row,) = flow.rows()
    assert (row.lag_records, row.records_per_s, row.lag_per_s, row.catch_up_s) == (600, 60.0, -40.0, 15.0)
