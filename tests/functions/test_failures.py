"""The failure destination: an SQS queue, whatever the size and number of records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.errors import AwsError
from mirrorless.functions.events import Refused
from mirrorless.functions.failures import send

if TYPE_CHECKING:
    from tests.functions.conftest import Aws

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("_environment")]


@pytest.fixture
def _environment(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in aws.environment.items():
        monkeypatch.setenv(name, value)


def received(aws: Aws, queue: str) -> list[dict[str, Any]]:
    """Every message of a queue."""
    sqs, found = aws.client("sqs"), []
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        found += [json.loads(message["Body"]) for message in messages]
        for message in messages:
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_records_may_be_many(aws: Aws) -> None:
    queue = aws.queue()
    refused = [Refused(reason="no heartbeat", raw={"topic": "t", "partition": 0, "offset": n}) for n in range(23)]
    send(queue, refused, flow="a->b", function="heartbeat_monitor")
    found = received(aws, queue)
    assert sorted(one["record"]["offset"] for one in found) == list(range(23))
    assert {(one["flow"], one["function"], one["reason"]) for one in found} == {
        ("a->b", "heartbeat_monitor", "no heartbeat")
    }


def test_of_a_large_record_it_is_told_where_it_is(aws: Aws) -> None:
    queue = aws.queue()
    raw = {"topic": "t", "partition": 3, "offset": 7, "value": "A" * 6_000_000}
    send(queue, [Refused(reason="too odd", raw=raw)], flow="a->b", function="checkpoint")
    (one,) = received(aws, queue)
    assert one["record"] == {"topic": "t", "partition": "3", "offset": "7"}
    assert one["left_out_bytes"] > 6_000_000


def test_a_queue_that_is_not_there_is_one_line(aws: Aws) -> None:
    queue = aws.queue() + "-not"
    with pytest.raises(AwsError, match=r"^failure destination .*-not: sqs answered .*NonExistentQueue: "):
        send(queue, [Refused(reason="r", raw={})], flow="a->b", function="checkpoint")
