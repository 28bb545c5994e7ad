"""What the copier needs of kafka-python's network layer, against a fake broker that keeps what it was sent."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

import pytest
from kafka.protocol.consumer.fetch import FetchResponse
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from mirrorless.batches.stamp import Stamped
from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python import transport
from mirrorless.kafka_python.connection_manager import ExtraConnection
from mirrorless.protocol import requests
from mirrorless.protocol.cluster_client import ClusterClient
from mirrorless.protocol.fetch_session import Asked
from mirrorless.protocol.requests import AppendResult, Fetched
from tests.support.fake_broker import API_VERSIONS, CLUSTER_ID, METADATA, NODE, TOPIC, TOPIC_ID, FakeBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from mirrorless.kafka_python.event_loop import EventLoop

PRODUCE, FETCH = 0, 1
PLACE = (TOPIC, 0)
TIMEOUT_MS = 10_000


def produced(version: int, _: bytes, *, throttle_ms: int = 0) -> ProduceResponse:
    topic = ProduceResponse.TopicProduceResponse
    part = topic.PartitionProduceResponse(
        index=0,
        error_code=0,
        base_offset=42,
        log_append_time_ms=-1,
        log_start_offset=0,
        record_errors=[],
        error_message=None,
    )
    return ProduceResponse(
        throttle_time_ms=throttle_ms, responses=[topic(name=TOPIC, topic_id=TOPIC_ID, partition_responses=[part])]
    )


def fetched(records: bytes, *, replica: int = -1) -> Callable[[int, bytes], FetchResponse]:
    def answer(version: int, _: bytes) -> FetchResponse:
        topic = FetchResponse.FetchableTopicResponse
        part = topic.PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=9,
            last_stable_offset=8,
            log_start_offset=0,
            aborted_transactions=None,
            preferred_read_replica=replica,
            records=records,
        )
        return FetchResponse(
            throttle_time_ms=0,
            error_code=0,
            session_id=0,
            responses=[topic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[part])],
        )

    return answer


def of_size(size: int) -> Stamped:
    """Bytes that stand for a batch."""
    body = bytes(range(251)) * (size // 251 + 1)
    return Stamped(b"h" * 61, body[: size - 61], size)


@contextlib.contextmanager
def client_of(loop: EventLoop, broker: FakeBroker, **config: Any) -> Iterator[ClusterClient]:  # noqa: ANN401
    client = ClusterClient(
        loop,
        cluster="A",
        config={"bootstrap_servers": [f"127.0.0.1:{broker.port}"], "reconnect_backoff_ms": 1, **config},
    )
    try:
        yield client
    finally:
        client.close()


def run(loop: EventLoop, client: ClusterClient, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:  # noqa: ANN401
    async def connected() -> Any:  # noqa: ANN401
        await client.connect(timeout_ms=TIMEOUT_MS, topics=[TOPIC])
        return await work()

    return loop.run(connected)


def test_metadata_name_the_cluster_its_leaders_and_replicas(loop: EventLoop) -> None:
    with FakeBroker() as broker, client_of(loop, broker) as client:

        async def nothing() -> None:
            pass

        run(loop, client, nothing)
        assert client.reported_id == CLUSTER_ID
        assert client.brokers() == [NODE]
        assert client.leader(PLACE) == NODE
        assert client.leader(("unknown", 0)) is None
        assert client.replicas(PLACE) == (2, 3)
        assert client.has_replica(PLACE, NODE)
        assert not client.has_replica(PLACE, 2), "no such broker is known"
        assert not client.has_replica(("unknown", 0), NODE)
        assert client.topic_id(TOPIC) == TOPIC_ID
        assert client.partition_count(TOPIC) == 1


def test_asking_for_metadata_creates_no_topic(loop: EventLoop) -> None:
    with FakeBroker() as broker, client_of(loop, broker) as client:

        async def learn() -> None:
            await client.learn(["another"])

        run(loop, client, learn)
        asked = [request for key, request in broker.asked if key == METADATA]
    assert b"another" in asked[-1]
    assert TOPIC.encode() in asked[-1], "topics that were known are asked for too"
    for request in asked:
        # Version 12 ends in: create topics, describe what we may on them, no tags.
        assert request[-3:] == b"\0\0\0"


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
@pytest.mark.parametrize("size", [100, 5_000, 1 << 20], ids=["small", "a piece of its own", "more than a socket takes"])
def test_an_append_arrives_to_the_byte(loop: EventLoop, version: int, size: int) -> None:
    versions = {PRODUCE: (3, version), METADATA: (0, 12), API_VERSIONS: (0, 3)}
    batch = of_size(size)
    with FakeBroker(answers={PRODUCE: produced}, versions=versions) as broker, client_of(loop, broker) as client:

        async def append() -> list[AppendResult]:
            return await client.append(NODE, [(PLACE, batch)], timeout_ms=1_234)

        assert run(loop, client, append) == [AppendResult(PLACE, 0, None, 42)]
        (request,) = [request for key, request in broker.asked if key == PRODUCE]
    part, whole = ProduceRequest.TopicProduceData.PartitionProduceData, ProduceRequest.TopicProduceData
    expected: Any = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1_234,
        topic_data=[whole(name=TOPIC, topic_id=TOPIC_ID, partition_data=[part(index=0, records=batch.whole())])],
    )
    expected.API_VERSION = version
    (number,) = struct.unpack_from(">i", request, 8)
    expected.with_header(correlation_id=number, client_id=client._manager.config["client_id"])
    assert request == bytes(expected.encode(header=True, framed=True))


@pytest.mark.parametrize("version", [4, 11, 12, 13])
@pytest.mark.parametrize("size", [0, 100, 5_000, 3 << 20])
def test_records_arrive_to_the_byte(loop: EventLoop, version: int, size: int) -> None:
    versions = {FETCH: (4, version), METADATA: (0, 12), API_VERSIONS: (0, 3)}
    records = of_size(size).whole() if size else b""
    with FakeBroker(answers={FETCH: fetched(records)}, versions=versions) as broker, client_of(loop, broker) as client:

        async def fetch() -> list[Fetched]:
            return await client.fetch(NODE, [(PLACE, 0, -1)])

        (found,) = run(loop, client, fetch)
        assert (found.place, found.error_code, found.last_stable_offset) == (PLACE, 0, 8)
        assert found.records == records
        if version >= 12 and size:
            assert isinstance(found.records, memoryview), "they are not copied"


def test_appends_without_a_task_are_answered_in_order_over_two_connections(loop: EventLoop) -> None:
    with FakeBroker(answers={PRODUCE: produced}) as broker, client_of(loop, broker) as client:
        heard: list[Any] = []

        async def append() -> None:
            for node in (NODE, ExtraConnection(NODE, 2)):
                for _ in range(5):
                    assert client.append_at_once(node, [(PLACE, of_size(100))], heard=heard.append)
                    assert not client._manager.is_in_flight(None, node)
            assert not heard, "nothing is reported within the call"
            while len(heard) < 10:
                await loop.sleep(0.001)

        before = 1  # the bootstrap's connection
        run(loop, client, append)
        assert heard == [[AppendResult(PLACE, 0, None, 42)]] * 10
        assert len(broker.connections) == before + 2


def test_our_rack_is_sent_only_where_it_is_asked_for(loop: EventLoop) -> None:
    answers = {FETCH: fetched(b"", replica=3)}
    with FakeBroker(answers=answers) as broker, client_of(loop, broker, client_rack="use1-az1") as client:

        async def fetch() -> list[Fetched]:
            return [
                *await client.fetch(NODE, [(PLACE, 0, -1)], rack=client.rack),
                *await client.fetch(ExtraConnection(NODE, 2), [(PLACE, 0, -1)]),
            ]

        found = run(loop, client, fetch)
        asked = [request for key, request in broker.asked if key == FETCH]
        assert [part.replica for part in found] == [3, 3]
        assert [b"use1-az1" in request for request in asked] == [True, False]
        assert client.metadata_max_age_s == 300

        async def read() -> object:
            return await client.read_at(NODE, PLACE, 0)

        with pytest.raises(kafka_errors.BrokerNotAvailableError, match="names a replica"):
            run(loop, client, read)


def test_what_is_sent_is_known_by_its_future_until_it_is_answered(loop: EventLoop) -> None:
    with (
        FakeBroker(answers={FETCH: lambda *_: None}) as broker,
        client_of(loop, broker, request_timeout_ms=200) as client,
    ):
        manager = client._manager

        async def send() -> float:
            await manager.get_connection(NODE)
            first, second = manager.send(request(), NODE), manager.send(request(), NODE)
            assert not manager.is_in_flight(first, NODE)
            assert manager.is_in_flight(second, NODE)
            began: float = manager._conns[NODE].in_flight_requests[0][2]
            with pytest.raises(kafka_errors.KafkaError):
                await second
            assert not manager.is_in_flight(second, NODE)
            return time.monotonic() - began

        assert 0.1 < run(loop, client, send) < 5


def request() -> Any:  # noqa: ANN401
    return requests.fetch(Asked([(PLACE, 0, -1)], {TOPIC: TOPIC_ID}))


def test_a_broker_that_throttles_is_left_alone_as_long_as_it_says(loop: EventLoop) -> None:
    throttled = iter([300, 0])
    answers = {PRODUCE: lambda version, asked: produced(version, asked, throttle_ms=next(throttled))}
    with FakeBroker(answers=answers) as broker, client_of(loop, broker) as client:

        async def append_twice() -> tuple[float, float]:
            await client.append(NODE, [(PLACE, of_size(100))], timeout_ms=1_000)
            told, began = client.quiet_s(NODE), time.monotonic()
            await client.append(NODE, [(PLACE, of_size(100))], timeout_ms=1_000)
            assert client.quiet_s(NODE) == 0
            return told, time.monotonic() - began

        told, waited = run(loop, client, append_twice)
        assert 0.1 < told <= 0.3
        assert waited >= told - 0.05


def test_a_connection_is_ended_at_once_with_all_that_waits_to_be_sent(loop: EventLoop) -> None:
    with FakeBroker(answers={PRODUCE: lambda *_: None}) as broker, client_of(loop, broker) as client:

        async def end() -> list[BaseException]:
            heard: list[Any] = []
            await client._manager.get_connection(NODE)
            for _ in range(3):
                assert client.append_at_once(NODE, [(PLACE, of_size(8 << 20))], heard=heard.append)
            client._manager.close_at_once(NODE, kafka_errors.KafkaTimeoutError("enough"))
            return heard

        heard = run(loop, client, end)
        assert [type(one) for one in heard] == [kafka_errors.KafkaTimeoutError] * 3


def test_bootstrap_servers_are_asked_again_when_no_connection_is_left(loop: EventLoop) -> None:
    with FakeBroker(answers={FETCH: fetched(b"")}) as broker, client_of(loop, broker) as client:

        async def fetch() -> None:
            await client.fetch(NODE, [(PLACE, 0, -1)])

        run(loop, client, fetch)
        run(loop, client, fetch)
        kept = len(broker.connections)
        for connection in list(client._manager._conns.values()):
            connection.close()
        assert not client._manager.connected
        run(loop, client, fetch)
        assert kept == 2
        assert len(broker.connections) == kept + 2, "one for the bootstrap, one for the broker"


def test_a_cluster_that_is_away_is_one_line(loop: EventLoop) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{free.getsockname()[1]}"
        client = ClusterClient(loop, cluster="A", config={"bootstrap_servers": [servers]})
        with pytest.raises(ClusterUnavailable, match=f"no answer from {servers}"):
            loop.run(lambda: client.connect(timeout_ms=300, topics=[]))
        client.close()


def test_connections_have_our_parser_and_our_transport(loop: EventLoop) -> None:
    with FakeBroker(answers={FETCH: fetched(b"")}) as broker, client_of(loop, broker) as client:

        async def look() -> Any:  # noqa: ANN401
            connection = await client._manager.get_connection(NODE)
            return type(connection.parser), type(connection.transport)

        assert run(loop, client, look) == (transport.Protocol, transport.Plain)


def test_a_second_connect_uses_the_connection_that_the_first_has_opened(loop: EventLoop) -> None:
    with FakeBroker() as broker, client_of(loop, broker) as client:

        async def nothing() -> None:
            pass

        run(loop, client, nothing)
        opened, asked = len(broker.connections), len(broker.asked)
        run(loop, client, nothing)
        assert opened == 2  # the bootstrap's and the leader's
        assert (len(broker.connections), len(broker.asked)) == (opened, asked)
