"""Records of a leader that is far away: read over several connections, ahead of the position, and taken in order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from mirrorless.kafka_python.connection_manager import ExtraConnection
from tests.support.fake_cluster import Follower

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.fake_flow import FakeFlow

FAR_S = 0.1
MIB = 1 << 20


def fill(flow: FakeFlow, megabytes: int, *, partition: int = 0, batch_bytes: int = 64 << 10) -> list[bytes]:
    """Append batches of one record each, and return the values."""
    values = [b"%d:" % number + bytes(batch_bytes) for number in range(megabytes * MIB // batch_bytes)]
    for value in values:
        flow.produce(value, partition=partition)
    return values


def connections(flow: FakeFlow) -> int:
    """Over how many connections the source was asked for records."""
    return len({node for node, _, _ in flow.source.fetches})


def seconds(flow: FakeFlow, **terms: float) -> float:
    """Copy everything in one lease, and return how long that took."""
    began = flow.loop.monotonic()
    reports = flow.run(seconds=600.0, **terms)
    assert {report.state for report in reports} == {"caught up"}
    return flow.loop.monotonic() - began


def test_one_partition_far_away_is_read_over_several_connections(flow: FakeFlow) -> None:
    values = fill(flow, 100)
    flow.source.latency_s = FAR_S
    assert seconds(flow) < 20 * FAR_S  # two MiB in each round trip took 50 of them
    assert flow.copied() == values
    assert connections(flow) > 8


def test_large_batches_leave_no_gaps(flow: FakeFlow) -> None:
    """An answer begins with a whole batch of which the guess was in the middle, and ends within another one."""
    values: list[bytes] = []
    for _ in range(400):  # of 25 records each, so that guesses are within batches
        values += (batch := [b"%d:" % (len(values) + number) + bytes(10_000) for number in range(25)])
        flow.produce(*batch)
    flow.source.latency_s = FAR_S
    took = seconds(flow)
    assert flow.copied() == values
    assert took < 14 * FAR_S, took / FAR_S


def test_six_partitions_far_away_are_read_over_several_connections(make_flow: Callable[..., FakeFlow]) -> None:
    flow = make_flow(partitions=6)
    values = [fill(flow, 20, partition=partition) for partition in range(6)]
    flow.source.latency_s = FAR_S
    assert seconds(flow) < 15 * FAR_S
    assert [flow.copied(partition) for partition in range(6)] == values


def test_a_leader_nearby_is_read_over_one_connection(flow: FakeFlow) -> None:
    values = fill(flow, 100)
    seconds(flow)
    assert flow.copied() == values
    assert connections(flow) == 1


def test_a_target_that_is_slower_is_not_read_ahead_for(flow: FakeFlow) -> None:
    flow.target.latency_s = 5 * FAR_S
    values = fill(flow, 20)
    flow.source.latency_s = FAR_S / 2
    seconds(flow)
    assert flow.copied() == values


def test_batches_of_any_size_arrive_once_and_in_order(flow: FakeFlow) -> None:
    chance = random.Random(1)
    values = []
    for number in range(2_000):
        few = [
            b"%d %d:" % (number, one) + bytes(chance.choice((10, 500, 40_000))) for one in range(chance.randint(1, 9))
        ]
        flow.produce(*few)
        values += few
    flow.source.latency_s = FAR_S
    seconds(flow)
    assert flow.copied() == values
    assert connections(flow) > 2


def test_offsets_that_are_spread_unevenly_leave_gaps_that_are_read(flow: FakeFlow) -> None:
    values = []
    for part in range(12):
        for number in range(60):
            some = [b"%d %d %d:" % (part, number, one) for one in range(1 + part * 10)]
            few = [value + bytes((100 << 10) // len(some)) for value in some]
            flow.produce(*few)
            values += few
            flow.source.log("t").skip(part % 3 * 50)  # markers, or what the cleaner removed
    flow.source.latency_s = FAR_S
    seconds(flow)
    assert flow.copied() == values
    assert connections(flow) > 2


def test_records_that_come_meanwhile_are_copied_too(flow: FakeFlow) -> None:
    values = fill(flow, 60)
    flow.source.latency_s = FAR_S
    lease = flow.lease(seconds=60.0, bounded=False)
    flow.loop.call_soon(lease.run())
    flow.loop.run_for(5.0)
    values += fill(flow, 60)
    flow.loop.run_for(10.0)
    assert flow.copied() == values


def test_a_broker_that_refuses_more_connections_is_read_over_the_first_one(flow: FakeFlow) -> None:
    values = fill(flow, 40)
    flow.source.latency_s = FAR_S
    flow.source.accepts_extra_connections = False
    seconds(flow)
    assert flow.copied() == values


@pytest.mark.parametrize("every", [3, 7])
def test_answers_that_are_lost_are_asked_for_again(flow: FakeFlow, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = fill(flow, 60)
    flow.source.latency_s = FAR_S
    fetch, count = flow.source.fetch, 0

    async def fetch_some(node: object, *what: object, **how: object) -> object:
        nonlocal count
        count += 1
        if count % every == 0:
            flow.source.lost_fetches += 1
        return await fetch(node, *what, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(flow.source, "fetch", fetch_some)
    seconds(flow)
    assert flow.copied() == values


def test_a_log_that_is_cut_while_it_is_read_ahead_halts_at_the_cut(flow: FakeFlow) -> None:
    flow.source.log("t").leader_epoch = 1
    values = fill(flow, 60)
    flow.source.latency_s = FAR_S
    lease = flow.lease(seconds=20.0, bounded=False)
    flow.loop.call_soon(lease.run())
    while connections(flow) < 4:
        flow.loop.run_for(0.01)
    log = flow.source.log("t")
    cut = len(flow.copied()) + 40
    log.truncate(cut)  # what is read ahead is of the log before, and of the one after
    log.diverges_at = cut
    log.leader_epoch = 2
    for number in range(600):
        flow.produce(b"other %d" % number + bytes(64 << 10))
    flow.loop.run_for(15.0)
    copied = flow.copied()
    assert copied == values[: len(copied)]


def test_a_target_far_away_is_sent_as_much_as_is_on_its_way_in_a_round_trip(flow: FakeFlow) -> None:
    values = fill(flow, 60)
    flow.target.latency_s = FAR_S
    assert seconds(flow) < 30 * FAR_S  # five batches in each round trip took 192 of them
    assert flow.copied() == values


def test_a_target_far_away_is_sent_one_batch_at_a_time_of_records_that_may_be_older_than_its_memory(
    flow: FakeFlow,
) -> None:
    for number in range(40):
        flow.produce(b"%d" % number + bytes(800 << 10), age_ms=86_400_000)
    flow.target.latency_s = FAR_S
    assert seconds(flow) > 39 * FAR_S
    assert len(flow.copied()) == 40


def test_partitions_of_a_target_far_away_are_spread_over_its_connections(make_flow: Callable[..., FakeFlow]) -> None:
    flow = make_flow(partitions=12)
    for partition in range(12):
        fill(flow, 5, partition=partition)
    flow.target.latency_s = FAR_S
    seconds(flow)
    by_connection: dict[object, set[int]] = {}
    for node, places in flow.target.sent:
        by_connection.setdefault(node, set()).update(partition for _, partition in places)
    assert len(by_connection) == 8
    assert max(map(len, by_connection.values())) <= 4


def test_extra_connections_have_numbers_from_three_on(flow: FakeFlow) -> None:
    fill(flow, 60)
    flow.source.latency_s = FAR_S
    seconds(flow)
    numbers = {node.number for node, _, _ in flow.source.fetches if isinstance(node, ExtraConnection)}
    assert numbers == set(range(3, 3 + len(numbers)))


def test_markers_are_holes_that_are_read_over(flow: FakeFlow) -> None:
    log = flow.source.log("t")
    kept: list[bytes] = []
    for number in range(600):
        values = [b"%d:" % number + bytes(100 << 10)]
        first = log.produce(values, transaction=1_000 + number, timestamp_ms=flow.loop.now_ms)
        commit = number % 5 != 0
        log.end_transaction(1_000 + number, first=first, commit=commit)
        kept += values if commit else []
    flow.source.latency_s = FAR_S
    seconds(flow)
    assert flow.copied() == kept
    assert connections(flow) > 2


def test_a_rate_limit_is_not_a_reason_for_more_connections(flow: FakeFlow) -> None:
    values = fill(flow, 20)
    flow.source.latency_s = FAR_S
    seconds_taken = seconds(flow, bytes_per_second=4_000_000.0)
    assert flow.copied() == values
    assert connections(flow) == 1
    assert 4 < seconds_taken < 7


def test_a_leader_that_moves_while_its_reads_hang_is_read_from_at_once(flow: FakeFlow) -> None:
    values = fill(flow, 100)
    flow.source.latency_s = FAR_S
    lease = flow.lease(seconds=60.0, bounded=False)
    flow.loop.call_soon(lease.run())
    while connections(flow) < 4:
        flow.loop.run_for(0.01)
    flow.source.hanging.add(1)  # its connections are open, and nothing is answered
    flow.loop.run_for(0.5)
    flow.source.leaders["t", 0] = 2
    flow.loop.run_for(6.0)
    assert flow.copied() == values


def test_batches_larger_than_a_read_are_left_to_the_first_connection(flow: FakeFlow) -> None:
    values = fill(flow, 60, batch_bytes=3 * MIB)
    flow.source.latency_s = FAR_S
    seconds(flow)
    assert flow.copied() == values
    read = sum(len(places) for node, _, places in flow.source.fetches if isinstance(node, ExtraConnection))
    assert read == 0


def test_a_producer_that_flushes_seldom_is_not_a_reason_for_more_connections(flow: FakeFlow) -> None:
    lease = flow.lease(seconds=60.0, bounded=False)
    flow.loop.call_soon(lease.run())
    for _ in range(20):
        flow.loop.run_for(0.6)  # more than a fetch waits
        fill(flow, 1, batch_bytes=1 * MIB)
    flow.loop.run_for(1.0)
    assert len(flow.copied()) == 20
    assert connections(flow) == 1
    assert {one.count for one in lease._fetcher._parallel._connections.values()} <= {1}


def test_followers_are_not_read_ahead(flow: FakeFlow) -> None:
    values = fill(flow, 40)
    flow.source.rack = "a"
    flow.source.nearest["t", 0] = 3
    flow.source.followers[("t", 0), 3] = Follower()
    flow.source.latency_s = FAR_S
    seconds(flow)
    assert flow.copied() == values
    assert not any(isinstance(node, ExtraConnection) for node, _, _ in flow.source.fetches)
