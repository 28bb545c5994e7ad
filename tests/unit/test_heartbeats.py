"""The last heartbeat that came over: none yet is no error, and a missing right is not none yet."""

# ruff: noqa: ARG002 -- the parameters are the library's

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from mirrorless import heartbeats
from mirrorless.errors import ClusterUnavailable
from mirrorless.formats import Heartbeat
from mirrorless.heartbeats import last_heartbeat
from mirrorless.settings import Cluster, Flow

FLOW = Flow(
    source=Cluster(alias="A", bootstrap_servers="a:9092"), target=Cluster(alias="B", bootstrap_servers="b:9092")
)
BEAT = Heartbeat(source="B", target="A", timestamp_ms=1_700_000_000_000)


class Message:
    def __init__(self, error: int | None = None) -> None:
        self._error = error

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)

    def key(self) -> bytes:
        return BEAT.key()

    def value(self) -> bytes:
        return BEAT.value()


class Consumer:
    """A consumer of a topic with one record, or of what a broker says instead."""

    def __init__(self, *, listed: int | None = None, read: int | None = None) -> None:
        self._listed, self._read = listed, read
        self.closed = False

    def list_topics(self, topic: str, *, timeout: float) -> SimpleNamespace:
        error = None if self._listed is None else KafkaError(self._listed)
        about = SimpleNamespace(error=error, partitions={} if error else {0: None})
        return SimpleNamespace(topics={topic: about})

    def get_watermark_offsets(self, place: object, *, timeout: float) -> tuple[int, int]:
        return 0, 1

    def assign(self, places: object) -> None: ...

    def consume(self, count: int, *, timeout: float) -> list[Message]:
        return [Message(self._read), Message(KafkaError._PARTITION_EOF)]

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("consumer", "found"), [(Consumer(), BEAT), (Consumer(listed=KafkaError.UNKNOWN_TOPIC_OR_PART), None)]
)
def test_the_last_one_or_none_yet(consumer: Consumer, found: Heartbeat | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "reader", lambda _cluster: consumer)
    assert last_heartbeat(FLOW) == found
    assert consumer.closed


@pytest.mark.parametrize(
    ("consumer", "reason"),
    [
        (Consumer(listed=KafkaError.TOPIC_AUTHORIZATION_FAILED), "Topic authorization failed; grant READ on it"),
        (Consumer(read=KafkaError.TOPIC_AUTHORIZATION_FAILED), "Topic authorization failed; grant READ on it"),
        (Consumer(listed=KafkaError.LEADER_NOT_AVAILABLE), "Leader not available"),
    ],
)
def test_what_hides_it_is_an_error(consumer: Consumer, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "reader", lambda _cluster: consumer)
    with pytest.raises(ClusterUnavailable) as raised:
        last_heartbeat(FLOW)
    assert str(raised.value) == f"cluster B: A.heartbeats: Broker: {reason}"
    assert consumer.closed
