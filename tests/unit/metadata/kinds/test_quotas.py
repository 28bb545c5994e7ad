"""Quotas of the source that the target lacks, or has with another value; what only the target has is its own."""

from __future__ import annotations

from mirrorless.clusters.quotas import QuotaEntity
from mirrorless.metadata.kinds.quotas import differences

BILLING, EVERY = QuotaEntity((("user", "billing"),)), QuotaEntity((("user", ""),))
BOTH = QuotaEntity((("client-id", "etl"), ("user", "billing")))
ADDRESS = QuotaEntity((("ip", "10.0.0.1"),))


def test_each_quota_by_itself() -> None:
    source = {
        BILLING: {"producer_byte_rate": 1048576.0, "request_percentage": 12.5},
        EVERY: {"consumer_byte_rate": 5.0},
        BOTH: {"producer_byte_rate": 1.0},
        ADDRESS: {"connection_creation_rate": 7.0},
    }
    target = {BILLING: {"producer_byte_rate": 2.0, "request_percentage": 12.5}, BOTH: {"producer_byte_rate": 1.0}}
    assert [one.text for one in differences(source, target, alias="a")] == [
        "set quota connection_creation_rate of address 10.0.0.1 to 7 (now none)",
        "set quota consumer_byte_rate of every other user to 5 (now none)",
        "set quota producer_byte_rate of user billing to 1048576 (now 2)",
    ]
    first = differences(source, target, alias="a")[0]
    assert (first.on, first.what, first.source_has, first.target_has) == (
        "address 10.0.0.1",
        "connection_creation_rate",
        "7",
        "none",
    )


def test_what_only_the_target_has_is_left() -> None:
    assert differences({}, {BILLING: {"producer_byte_rate": 2.0}}, alias="a") == []
    assert differences({BILLING: {"x": 1.0}}, {BILLING: {"x": 1.0, "y": 2.0}}, alias="a") == []


def test_an_entity_reads_as_people_say_it() -> None:
    assert str(BOTH) == "client id etl with user billing"
