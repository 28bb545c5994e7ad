"""What the reports of a lease come to, as values of the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.copy.partition.lease_rows import without_lease
from mirrorless.metrics import BY_NAME, FLOW, TOPIC
from mirrorless.publishing.lease_meter import LeaseMeter, Sample, Values
from tests.support.reports import report

if TYPE_CHECKING:
    from mirrorless.copy.partition.lease_rows import Report

NOON_MS = 1_700_000_000_000


def copied(topic: str = "t", partition: int = 0, **fields: object) -> Report:
    latencies = {"latency_ms": 20, "latency_min_ms": 10, "latency_max_ms": 40, "latency_avg_ms": 25}
    ages = {"age_ms": 8, "age_min_ms": 4, "age_max_ms": 16, "age_avg_ms": 9}
    known = {"records": 300, "copied_bytes": 6000, "batches": 4, "began_ms": NOON_MS - 30_000, "ended_ms": NOON_MS}
    return report(topic, partition, **(known | latencies | ages | fields))


def of(samples: list[Sample], metric: str, topic: str | None = None) -> float | Values:
    (value,) = [one.value for one in samples if (one.metric, one.topic) == (metric, topic)]
    return value


def test_counts_and_rates_are_of_the_flow_and_of_each_topic() -> None:
    reports = [copied("t", 0), copied("t", 1), copied("u", 0, records=600)]
    samples = LeaseMeter().lease(reports, now_ms=NOON_MS)
    assert of(samples, "record-count") == 1200
    assert of(samples, "record-rate") == 40
    assert of(samples, "record-count", "a.t") == 600
    assert of(samples, "byte-count", "a.u") == 6000
    assert of(samples, "byte-rate", "a.t") == 400


def test_topics_that_no_pattern_selects_count_for_the_flow_alone() -> None:
    reports = [copied("t", 0), copied("t.new", 0), copied("u", 0)]
    samples = LeaseMeter(("t", "x.*")).lease(reports, now_ms=NOON_MS)
    assert of(samples, "record-count") == 900
    assert {sample.topic for sample in samples} == {None, "a.t"}
    assert {sample.topic for sample in LeaseMeter(()).lease(reports, now_ms=NOON_MS)} == {None}


def test_for_cloudwatch_a_topic_counts_while_it_lags_or_fails_and_once_after() -> None:
    meter = LeaseMeter(only_troubled=True)

    def topics(*reports: Report, minutes: int) -> set[str | None]:
        return {sample.topic for sample in meter.lease(reports, now_ms=NOON_MS + minutes * 60_000)}

    def at(minutes: int, topic: str, **fields: object) -> Report:
        return copied(topic, 0, ended_ms=NOON_MS + minutes * 60_000, **fields)

    assert topics(at(0, "t"), at(0, "u"), minutes=0) == {None}
    assert topics(at(1, "t", lag_records=9, latency_ms=40_000), at(1, "u", state="halted"), minutes=1) == {
        None,
        "a.t",
        "a.u",
    }
    # The last value of a graph is that all is well again.
    assert topics(at(2, "t"), at(2, "u", error="refused"), minutes=2) == {None, "a.t", "a.u"}
    assert topics(at(3, "t"), at(3, "u"), minutes=3) == {None, "a.u"}
    assert topics(at(4, "t", lag_records=3, latency_ms=500), at(4, "u"), minutes=4) == {None}


def test_rates_are_over_the_time_since_the_last_lease() -> None:
    meter = LeaseMeter()
    meter.lease([copied()], now_ms=NOON_MS)
    samples = meter.lease([copied(began_ms=NOON_MS + 59_000)], now_ms=NOON_MS + 60_000)
    assert of(samples, "record-rate") == 5


def test_latencies_of_partitions_are_added_up_by_batches() -> None:
    slow = copied("t", 1, latency_ms=100, latency_min_ms=90, latency_max_ms=400, latency_avg_ms=200, batches=1)
    samples = LeaseMeter().lease([copied("t", 0), slow], now_ms=NOON_MS)
    assert of(samples, "replication-latency-ms", "a.t") == Values(last=100, least=10, greatest=400, total=300, count=5)
    assert of(samples, "record-age-ms") == Values(last=8, least=4, greatest=16, total=45, count=5)


def test_where_nothing_was_copied_there_is_no_latency() -> None:
    names = {sample.metric for sample in LeaseMeter().lease([report()], now_ms=NOON_MS)}
    assert names.isdisjoint({"replication-latency-ms", "record-age-ms"})
    assert "lag-seconds" in names


def test_lag_in_seconds_is_the_age_of_the_last_copied_record_while_something_is_left() -> None:
    behind = copied(lag_records=7, ended_ms=NOON_MS, latency_ms=90_000)
    assert of(LeaseMeter().lease([behind], now_ms=NOON_MS), "lag-seconds") == 90
    assert of(LeaseMeter().lease([copied(latency_ms=90_000)], now_ms=NOON_MS), "lag-seconds") == 0


def test_records_of_long_ago_are_no_lag_once_all_that_was_there_is_copied() -> None:
    meter, day_ms = LeaseMeter(), 86_400_000
    first = copied(next_offset=1_000, lag_records=5, latency_ms=day_ms)
    assert of(meter.lease([first], now_ms=NOON_MS), "lag-seconds") == 86_400
    in_time = copied(next_offset=601_000, lag_records=5, latency_ms=day_ms, ended_ms=NOON_MS + 120_000)
    assert of(meter.lease([in_time], now_ms=NOON_MS + 120_000), "lag-seconds") == 120
    behind = copied(next_offset=601_003, lag_records=90_000, latency_ms=day_ms, ended_ms=NOON_MS + 240_000)
    assert of(meter.lease([behind], now_ms=NOON_MS + 240_000), "lag-seconds") == 240


def test_the_first_record_after_a_quiet_night_is_not_a_night_old() -> None:
    meter = LeaseMeter()
    meter.lease([copied()], now_ms=NOON_MS)
    night_ms = NOON_MS + 8 * 3_600_000
    assert of(meter.lease([report()], now_ms=night_ms), "lag-seconds") == 0
    assert of(meter.lease([report(lag_records=1)], now_ms=night_ms + 30_000), "lag-seconds") == 30


def test_the_lag_of_a_halted_partition_grows_and_is_the_flows() -> None:
    meter = LeaseMeter()
    halted = report("t", 1, state="halted", lag_records=5)
    meter.lease([copied("t", 0), halted], now_ms=NOON_MS)
    samples = meter.lease([copied("t", 0), halted], now_ms=NOON_MS + 600_000)
    assert of(samples, "lag-seconds") == 600
    assert of(samples, "lag-records", "a.t") == 5
    assert of(samples, "partitions-halted") == 1
    assert of(samples, "partitions-unreachable") == 0


def test_what_is_out_of_reach_may_lag_since_it_was_last_seen() -> None:
    meter = LeaseMeter()
    seen = [copied("t", 0), copied("t", 1, state="halted", error="a gap", lag_records=5, latency_ms=90_000)]
    meter.lease(seen, now_ms=NOON_MS)
    away = [without_lease(one, "cluster a does not answer") for one in seen]
    assert [one.error for one in away] == ["cluster a does not answer", "a gap"]
    samples = meter.lease(away[:1], now_ms=NOON_MS + 600_000)
    assert of(samples, "lag-seconds") == 600
    assert of(samples, "record-count") == 0
    assert of(samples, "partitions-unreachable") == 1
    samples = meter.lease(away, now_ms=NOON_MS + 600_000)
    assert of(samples, "lag-seconds") == 690
    assert of(samples, "lag-records") == 5
    assert (of(samples, "partitions-halted"), of(samples, "partitions-unreachable")) == (1, 1)
    assert of(meter.lease([report()], now_ms=NOON_MS + 630_000), "lag-seconds") == 0


def test_what_was_passed_over_is_counted() -> None:
    samples = LeaseMeter().lease([copied(gaps=1, left_out=2), copied("u", foreign=3)], now_ms=NOON_MS)
    assert [of(samples, name) for name in ("gap-count", "left-out-count", "foreign-count")] == [1, 2, 3]


def test_what_quotas_held_up_is_that_of_the_partition_that_waited_longest() -> None:
    reports = [copied(fetch_throttle_ms=700, produce_throttle_ms=30), copied("u", fetch_throttle_ms=900)]
    samples = LeaseMeter().lease(reports, now_ms=NOON_MS)
    assert of(samples, "fetch-throttle-time-ms") == 900
    assert of(samples, "produce-throttle-time-ms") == 30


def test_every_sample_is_in_the_list_with_these_dimensions() -> None:
    for sample in LeaseMeter().lease([copied()], now_ms=NOON_MS):
        assert (FLOW if sample.topic is None else TOPIC) in BY_NAME[sample.metric].dimensions
