"""What every producer of ours has in common, against a cluster that no broker of answers."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from mirrorless.clusters import clients
from mirrorless.clusters.producer import TopicProducer
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from confluent_kafka import Message

NOWHERE = Cluster(alias="b", bootstrap_servers="127.0.0.1:1")


def settings_of(monkeypatch: pytest.MonkeyPatch, **own: object) -> dict[str, object]:
    seen: list[dict[str, object]] = []
    monkeypatch.setattr(clients, "producer", seen.append)
    TopicProducer(NOWHERE, **own)  # type: ignore[arg-type]
    return seen[0]


def test_all_in_sync_replicas_acknowledge_and_no_topic_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, gives_up_after_s=2.5, linger_ms=5, acks="1", allow_auto_create_topics=True)
    assert settings["acks"] == "all"
    assert settings["allow.auto.create.topics"] is False
    assert (settings["message.timeout.ms"], settings["linger.ms"]) == (2_500, 5)


def test_without_an_acknowledgement_the_error_names_cluster_and_topic() -> None:
    one = TopicProducer(NOWHERE)
    assert one.send("t", value=b"") is None
    with pytest.raises(ClusterUnavailable, match=r"^cluster b: t: no acknowledgement in 0 s$"):
        one.confirm("t", 0.05)


def test_what_was_given_up_is_raised_once() -> None:
    one = TopicProducer(NOWHERE, gives_up_after_s=0.05)
    one.send("t", value=b"")
    with pytest.raises(ClusterError, match=r"^cluster b: t: .*timed out$"):
        one.confirm("t", 5, refused=ClusterError)
    one.confirm("t", 5)


def test_who_asks_hears_of_each_record() -> None:
    one = TopicProducer(NOWHERE, gives_up_after_s=0.05)
    heard: list[tuple[str | None, bytes | None]] = []

    def delivered(reason: str | None, message: Message) -> None:
        heard.append((reason, message.value()))

    one.send("t", value=b"a", delivered=delivered)
    one.send("t", value=None, key=b"k", partition=0, headers=[("h", None)], delivered=delivered)
    assert one.flush(5) == 0
    assert [value for _, value in heard] == [b"a", None]
    assert all(reason is not None and "timed out" in reason for reason, _ in heard)
    one.confirm("t", 0)


def test_where_the_queue_is_full_it_is_said_or_waited_for() -> None:
    one = TopicProducer(NOWHERE, gives_up_after_s=0.05, queue_buffering_max_messages=1)
    assert one.send("t", value=b"") is None
    assert one.send("t", value=b"", delivered=lambda *_: None) == "too many records are queued"
    assert one.send("t", value=b"", waits=True) is None


def test_a_producer_ends_though_records_wait() -> None:
    one = TopicProducer(NOWHERE)
    one.send("t", value=b"")
    inner = weakref.ref(one)
    gc.disable()
    try:
        del one
        assert inner() is None
    finally:
        gc.enable()
