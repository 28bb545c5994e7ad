"""Lambda's Kafka event is read byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.errors import ConfigurationError
from mirrorless.functions.events import (
    COPY_SHARE,
    CopyShareEvent,
    JobStateChange,
    Record,
    ScheduleEvent,
    TopicRecords,
    parse,
)
from tests.support.events import job_state, msk, record, schedule


def one(raw: dict[str, Any]) -> Record:
    event = parse(msk(raw))
    assert isinstance(event, TopicRecords)
    assert event.refused == ()
    (read,) = event.records
    return read


@given(key=st.none() | st.binary(max_size=20), value=st.none() | st.binary())
def test_keys_and_values_are_as_they_were_written(key: bytes | None, value: bytes | None) -> None:
    read = one(record("t", offset=7, key=key, value=value))
    assert (read.key, read.value) == (key, value)


@pytest.mark.parametrize("headers", [[{"h": [-1, 127]}, {"h": []}, {"g": None}], [{"h": [300]}], "odd", None])
def test_headers_are_nothing_to_refuse_a_record_for(headers: object) -> None:
    assert one(record("t", offset=7, key=b"k", value=b"v") | {"headers": headers}).value == b"v"


@pytest.mark.parametrize("source", ["aws:kafka", "SelfManagedKafka"])
def test_both_kinds_of_trigger_are_known(source: str) -> None:
    event = parse(msk(record("t", offset=0, key=b"k", value=b"v"), source=source))
    assert isinstance(event, TopicRecords)
    assert [(read.topic, read.partition, read.offset, read.timestamp_ms) for read in event.records] == [
        ("t", 0, 0, 1545084650987)
    ]


def test_the_order_of_a_partition_is_kept() -> None:
    event = parse(msk(*(record("t", offset=n, partition=n % 2, key=None, value=b"") for n in range(10))))
    assert isinstance(event, TopicRecords)
    for partition in (0, 1):
        offsets = [read.offset for read in event.records if read.partition == partition]
        assert offsets == sorted(offsets)


def test_a_key_may_be_null_as_well_as_absent() -> None:
    assert one(record("t", offset=0, key=None, value=b"v") | {"key": None}).key is None
    assert one(record("t", offset=0, key=b"", value=b"v")).key == b""


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "no base64!"},
        {"value": 5},
        {"offset": "7"},
        {"topic": None},
    ],
)
def test_what_makes_no_sense_is_refused_by_itself(wrong: dict[str, Any]) -> None:
    good = record("t", offset=1, key=b"k", value=b"v")
    bad = record("t", offset=2, key=b"k", value=b"v") | wrong
    event = parse({"eventSource": "aws:kafka", "records": {"t-0": [bad, good]}})
    assert isinstance(event, TopicRecords)
    assert [read.offset for read in event.records] == [1]
    (refused,) = event.refused
    assert refused.raw == bad
    assert refused.reason.startswith("the event's record is malformed: ")


def test_a_schedule_says_when_it_was_due() -> None:
    at = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
    assert parse(schedule(at)) == ScheduleEvent(at=at)


def test_an_invocation_that_no_schedule_made_is_one_by_hand() -> None:
    event = parse({})
    assert isinstance(event, ScheduleEvent)
    assert event.by_hand


@pytest.mark.parametrize("event", [{}, {"time": "soon"}, {"detail": "{}"}])
def test_an_invocation_by_hand_is_due_now(event: dict[str, Any]) -> None:
    read = parse(event)
    assert isinstance(read, ScheduleEvent)
    assert abs((datetime.now(UTC) - read.at).total_seconds()) < 60


def test_a_glue_jobs_change_of_state() -> None:
    assert parse(job_state("copy", "jr_1", "FAILED")) == JobStateChange(job="copy", run="jr_1", state="FAILED")


def test_one_invocation_of_copy_starts_those_of_the_other_shares() -> None:
    assert parse({"source": COPY_SHARE, "number": 1, "of": 3}) == CopyShareEvent(number=1, of=3)


@pytest.mark.parametrize("wrong", [{}, {"of": 1}, {"number": 3, "of": 3}, {"number": -1, "of": 3}, {"number": "1"}])
def test_a_share_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"an event of mirrorless\.copy has share number"):
        parse({"source": COPY_SHARE, "of": 3} | wrong if wrong else {"source": COPY_SHARE})
