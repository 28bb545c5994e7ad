"""Brokers that list DescribeProducers among their APIs and refuse it: the last batch on the target is used instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kafka.protocol.admin.transactions import DescribeProducersResponse

from mirrorless.protocol.requests import ProducerState, described_producers

if TYPE_CHECKING:
    from tests.support.fake_flow import FakeFlow

PLACE = ("t", 0)
PRODUCER = 7
CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, INVALID_REQUEST = 31, 35, 42
TOPIC_AUTHORIZATION_FAILED = 29
REFUSED = [CLUSTER_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION, INVALID_REQUEST]


def described(code: int) -> object:
    topic = DescribeProducersResponse.TopicResponse
    part = topic.PartitionResponse
    state = part.ProducerState(producer_id=PRODUCER, producer_epoch=2, last_sequence=9)
    parts = [part(partition_index=0, error_code=code, error_message=None, active_producers=[] if code else [state])]
    response = DescribeProducersResponse(throttle_time_ms=0, topics=[topic(name="t", partitions=parts)])
    return dict.fromkeys([PLACE]) | described_producers(response, {PLACE: PRODUCER})


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_is_read_as_an_api_that_is_not_there(code: int) -> None:
    assert described(code) == {PLACE: None}


@pytest.mark.parametrize("code", [3, 6, TOPIC_AUTHORIZATION_FAILED])
def test_any_other_error_is_one(code: int) -> None:
    assert described(code) == {PLACE: code}


def test_what_is_remembered_is_found() -> None:
    assert described(0) == {PLACE: ProducerState(2, 9)}


@pytest.mark.parametrize("code", REFUSED)
def test_a_copy_continues_after_the_last_batch_of_the_target(flow: FakeFlow, code: int) -> None:
    flow.target.producer_errors["A.t", 0] = code
    flow.produce(b"a", b"b")
    (report,) = flow.run()
    assert (report.state, report.records, report.error) == ("caught up", 2, None)
    flow.produce(b"c")
    flow.writer.broken = True  # so that only the target has it
    flow.run()
    flow.writer.broken = False
    flow.produce(b"d")
    (report,) = flow.run()
    assert (report.state, report.records) == ("caught up", 1)
    assert flow.copied() == [b"a", b"b", b"c", b"d"]


def test_a_missing_right_on_the_topic_halts(flow: FakeFlow) -> None:
    flow.target.producer_errors["A.t", 0] = TOPIC_AUTHORIZATION_FAILED
    flow.produce(b"a")
    (report,) = flow.run()
    assert report.state == "halted"
    assert "READ" in (report.error or "")
    assert "A.t" in (report.error or "")
