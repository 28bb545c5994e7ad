"""The request in pieces is, byte for byte, the one that the library would have written in one."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import errors as kafka_errors
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from mirrorless.batches.stamp import Stamped
from mirrorless.kafka_python.transport import Chunks, Protocol
from mirrorless.protocol.produce import Acknowledged
from mirrorless.protocol.requests import appended, produce

SIZES = st.sampled_from([0, 1, 65, 66, 4_034, 4_035, 4_096, 16_321, 16_322, 70_000])
NAMES = st.sampled_from(["t", "größe", "a" * 200])
PLACES = st.dictionaries(st.tuples(NAMES, st.integers(0, 5_000)), SIZES, min_size=1, max_size=12)
IDS = {"t": UUID(int=1), "größe": UUID(int=2), "a" * 200: UUID(int=3)}


def theirs(batches: list[tuple[tuple[str, int], Stamped]], version: int) -> bytes:
    """What kafka-python writes."""
    topics: dict[str, list[Any]] = {}
    for (topic, partition), batch in batches:
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=batch.whole())
        topics.setdefault(topic, []).append(part)
    request: Any = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=1_234,
        topic_data=[
            ProduceRequest.TopicProduceData(name=topic, topic_id=IDS[topic], partition_data=parts)
            for topic, parts in topics.items()
        ],
    )
    return written(request, version)


def written(request: Any, version: int) -> bytes:  # noqa: ANN401 -- the library is untyped
    request.API_VERSION = version
    request.with_header(correlation_id=7, client_id="mirrorless")
    found = request.encode(header=True, framed=True)
    if isinstance(found, Chunks):
        assert all(found)
        return b"".join(found)
    return bytes(found)


@pytest.mark.parametrize("version", range(3, 14))
@given(sizes=PLACES)
def test_it_is_what_the_library_writes(version: int, sizes: dict[tuple[str, int], int]) -> None:
    batches = [(place, Stamped(bytes(61), b"r" * size, 61 + size)) for place, size in sizes.items()]
    ids = IDS if version == 13 else None
    assert written(produce(batches, ids, timeout_ms=1_234), version) == theirs(batches, version)


def test_a_large_batch_is_not_copied() -> None:
    body = bytes(100_000)
    request: Any = produce([(("t", 0), Stamped(bytes(61), body, 100_061))], None, timeout_ms=1)
    request.API_VERSION = 12
    request.with_header(correlation_id=1, client_id="x")
    assert any(piece is body for piece in request.encode(header=True, framed=True))


def test_requests_that_waited_for_a_connection_are_sent_behind_each_other() -> None:
    parser: Any = Protocol(client_id="mirrorless")  # type: ignore[no-untyped-call]
    expected = b""
    for number in (1, 2, 3):
        metadata: Any = MetadataRequest(topics=[])
        metadata.API_VERSION = 1
        metadata.with_header(correlation_id=2 * number - 1, client_id="mirrorless")
        expected += bytes(metadata.encode(header=True, framed=True))
        parser.send_request(metadata)
        batches = [(("t", number), Stamped(bytes(61), bytes([number]) * 5_000, 5_061))]
        request: Any = produce(batches, None, timeout_ms=1)
        request.API_VERSION = 12
        request.with_header(correlation_id=2 * number, client_id="mirrorless")
        expected += b"".join(request.encode(header=True, framed=True))
        parser.send_request(request)
    assert b"".join(parser.send_bytes()) == expected
    assert not parser.send_bytes()


def test_without_ids_no_version_is_spoken_that_needs_them() -> None:
    without: Any = produce([], None, timeout_ms=1)
    named: Any = produce([], IDS, timeout_ms=1)
    assert (without._max_version, named._max_version) == (12, 13)


WORD = st.text(max_size=20)
ANSWERS = st.dictionaries(
    st.tuples(NAMES, st.integers(0, 5_000)),
    st.tuples(st.sampled_from([0] * 9 + [6, 45]), st.integers(-1, 1 << 60), st.none() | WORD),
    max_size=12,
)


def answer_of_a_broker(found: dict[tuple[str, int], tuple[int, int, str | None]], version: int, throttle: int) -> bytes:
    """Written by kafka-python."""
    whole = ProduceResponse.TopicProduceResponse
    topics: dict[str, list[Any]] = {}
    for (topic, partition), (code, offset, message) in found.items():
        part = whole.PartitionProduceResponse(
            index=partition, error_code=code, base_offset=offset, error_message=message, record_errors=[]
        )
        topics.setdefault(topic, []).append(part)
    response: Any = ProduceResponse(
        responses=[
            whole(name=topic, topic_id=IDS[topic], partition_responses=parts) for topic, parts in topics.items()
        ],
        throttle_time_ms=throttle,
    )
    response.API_VERSION = version
    response.with_header(correlation_id=7)
    return bytes(response.encode(header=True, framed=True))


@pytest.mark.parametrize("version", range(3, 14))
@given(found=ANSWERS, throttle=st.integers(0, 1 << 30))
def test_an_answer_says_what_the_library_reads_in_it(
    version: int, found: dict[tuple[str, int], tuple[int, int, str | None]], throttle: int
) -> None:
    ids = IDS if version == 13 else None
    parser: Any = Protocol(client_id="mirrorless")  # type: ignore[no-untyped-call]
    request: Any = produce([], ids, timeout_ms=1)
    request.API_VERSION = version
    parser.send_request(request, correlation_id=7)
    ((number, response),) = parser.receive_bytes(answer_of_a_broker(found, version, throttle))
    assert (number, response.throttle_time_ms) == (7, throttle)
    knows_messages = version >= 8
    assert {one.place: (one.error_code, one.base_offset, one.error_message) for one in appended(response, ids)} == {
        place: (code, offset, message if knows_messages else None) for place, (code, offset, message) in found.items()
    }
    all_well = all(code == 0 and message is None for code, _, message in found.values())
    assert isinstance(response, Acknowledged) == (version >= 9 and all_well)


@given(cut=st.integers(1, 30))
def test_an_answer_that_ends_too_early_is_an_error(cut: int) -> None:
    whole = answer_of_a_broker({("t", 3): (0, 11, None)}, 12, 0)
    parser: Any = Protocol(client_id="mirrorless")  # type: ignore[no-untyped-call]
    request: Any = produce([], None, timeout_ms=1)
    request.API_VERSION = 12
    parser.send_request(request, correlation_id=7)
    with pytest.raises(kafka_errors.KafkaProtocolError):
        parser.receive_bytes(struct.pack(">i", len(whole) - 4 - cut) + whole[4:-cut])
