"""A topic that is looked up is there, is not there, or cannot be told of right now."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorless.clusters.admin import Admin, Refusal
from mirrorless.clusters.topics import describe
from mirrorless.errors import ClusterUnavailable
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import AdminClient


class Brokers:
    """Brokers that answer every question about a topic with one error."""

    def __init__(self, code: int) -> None:
        self._code = code

    def describe_topics(self, _topics: TopicCollection, **_options: Any) -> dict[str, Future[None]]:  # noqa: ANN401
        future: Future[None] = Future()
        future.set_exception(KafkaException(KafkaError(self._code)))
        return {"t": future}

    def poll(self, _timeout_s: float) -> None:
        pass


def asked(code: int) -> object:
    admin = Admin(Cluster(alias="B", bootstrap_servers="127.0.0.1:1"))
    admin.client = cast("AdminClient", Brokers(code))
    return describe(admin, "t")


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.TOPIC_EXCEPTION]
)
def test_what_is_not_there_or_may_not_be_seen_is_a_refusal(code: int) -> None:
    assert asked(code) == Refusal(code, KafkaError(code).str())


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (KafkaError.LEADER_NOT_AVAILABLE, r"^cluster B: t: Broker: Leader not available$"),
        (KafkaError._TIMED_OUT, r"^cluster B: no answer from 127\.0\.0\.1:1: Local: Timed out$"),
    ],
)
def test_everything_else_is_worth_another_try(code: int, line: str) -> None:
    with pytest.raises(ClusterUnavailable, match=line):
        asked(code)
