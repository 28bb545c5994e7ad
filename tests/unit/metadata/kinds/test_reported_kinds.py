"""Users and defaults of brokers are compared and not moved."""

from __future__ import annotations

from mirrorless.clusters.broker_defaults import retention
from mirrorless.metadata.kinds import broker_defaults, users


def test_a_user_is_a_task_for_each_mechanism() -> None:
    both = frozenset({("app", "SCRAM-SHA-256"), ("app", "SCRAM-SHA-512"), ("etl", "SCRAM-SHA-512")})
    found = users.differences(both, frozenset({("app", "SCRAM-SHA-512")}), alias="b")
    assert [one.text for one in found] == [
        "create user app with SCRAM-SHA-256 on b",
        "create user etl with SCRAM-SHA-512 on b",
    ]
    assert all(one.change is None for one in found)


def test_a_default_that_only_one_cluster_reports_is_no_difference() -> None:
    source = {"num.partitions": "6", "min.insync.replicas": "2", "log.retention.bytes": "-1"}
    target = {"num.partitions": "1", "min.insync.replicas": "2"}
    (one,) = broker_defaults.differences(source, target, alias="b")
    assert (one.what, one.source_has, one.target_has, one.change) == ("num.partitions", "6", "1", None)


def test_the_smallest_unit_of_theretention_counts() -> None:
    assert retention({"log.retention.hours": "168"}) == "604800000"
    assert retention({"log.retention.hours": "168", "log.retention.minutes": "2"}) == "120000"
    assert retention({"log.retention.hours": "168", "log.retention.ms": "-1"}) == "-1"
    assert retention({}) is None
