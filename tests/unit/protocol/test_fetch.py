"""A fetch is, byte for byte, what the library would have written, and its answer says what the library reads."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import errors as kafka_errors
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse

from mirrorless.kafka_python.transport import Protocol
from mirrorless.protocol.fetch import Fetches
from mirrorless.protocol.fetch_session import Asked
from mirrorless.protocol.requests import Fetched, fetch, fetched

VERSIONS = range(4, 14)
NAMES = st.sampled_from(["t", "größe", "a" * 200])
IDS = {"t": UUID(int=1), "größe": UUID(int=2), "a" * 200: UUID(int=3)}
PLACES = st.tuples(NAMES, st.integers(0, 5_000))
OFFSETS = st.integers(-1, 1 << 60)
NUMBERS = st.integers(-1, (1 << 31) - 1)
POSITIONS = st.dictionaries(PLACES, st.tuples(OFFSETS, st.integers(-1, 9)), max_size=12)


def theirs(asked: Asked, version: int, *, rack: str) -> bytes:
    """What kafka-python writes, of partitions in the order in which they are to be served."""
    topics: list[tuple[str, list[Any]]] = []
    for (topic, partition), offset, epoch in asked.positions:
        part = FetchRequest.FetchTopic.FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            log_start_offset=-1,
            partition_max_bytes=4_321,
        )
        if not topics or topics[-1][0] != topic:
            topics.append((topic, []))
        topics[-1][1].append(part)
    forgotten: dict[str, list[int]] = {}
    for topic, partition in asked.forgotten:
        forgotten.setdefault(topic, []).append(partition)
    request: Any = FetchRequest(
        replica_id=-1,
        max_wait_ms=1_234,
        min_bytes=1,
        max_bytes=123_456,
        isolation_level=1,
        session_id=asked.session_id,
        session_epoch=asked.epoch,
        topics=[FetchRequest.FetchTopic(topic=name, topic_id=IDS[name], partitions=one) for name, one in topics],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=name, topic_id=IDS[name], partitions=one)
            for name, one in forgotten.items()
        ],
        rack_id=rack,
    )
    return written(request, version)


def written(request: Any, version: int) -> bytes:  # noqa: ANN401 -- the library is untyped
    request.API_VERSION = version
    request.with_header(correlation_id=7, client_id="mirrorless")
    return bytes(request.encode(header=True, framed=True))


@pytest.mark.parametrize("version", VERSIONS)
@given(
    positions=POSITIONS,
    forgotten=st.lists(PLACES, max_size=5, unique=True),
    session=st.tuples(NUMBERS, NUMBERS),
    rack=st.sampled_from(["", "use1-az1", "größe" * 40]),
)
def test_it_is_what_the_library_writes(
    version: int,
    positions: dict[tuple[str, int], tuple[int, int]],
    forgotten: list[tuple[str, int]],
    session: tuple[int, int],
    rack: str,
) -> None:
    asked = Asked(
        [(place, *position) for place, position in positions.items()],
        IDS if version == 13 else None,
        *session,
        forgotten,
    )
    request = fetch(asked, isolation=1, max_wait_ms=1_234, max_bytes=123_456, partition_max_bytes=4_321, rack=rack)
    assert written(request, version) == theirs(asked, version, rack=rack)


def test_without_ids_no_version_is_spoken_that_needs_them() -> None:
    without: Any = fetch(Asked([], None))
    named: Any = fetch(Asked([], IDS))
    assert (without._max_version, named._max_version) == (12, 13)


BEYOND = 9
FOUND = st.dictionaries(
    PLACES,
    st.tuples(
        st.sampled_from([0] * 9 + [1, 6]),
        OFFSETS,
        st.none() | st.binary(max_size=300),
        st.none() | st.lists(st.tuples(OFFSETS, OFFSETS), max_size=200),
        st.sampled_from([None] * 9 + [77]),
        st.sampled_from([-1, 0, 3]),
    ),
    max_size=12,
)


def answer_of_a_broker(
    found: dict[tuple[str, int], tuple[int, int, bytes | None, list[tuple[int, int]] | None, int | None, int]],
    version: int,
    *,
    throttle: int = 0,
    code: int = 0,
) -> bytes:
    """Written by kafka-python."""
    whole = FetchResponse.FetchableTopicResponse
    topics: dict[str, list[Any]] = {}
    for (topic, partition), (error, stable, records, aborted, diverges, replica) in found.items():
        tagged: dict[str, Any] = {}
        if diverges is not None and version >= 12:
            tagged["diverging_epoch"] = whole.PartitionData.EpochEndOffset(epoch=3, end_offset=diverges)
        part = whole.PartitionData(
            partition_index=partition,
            error_code=error,
            high_watermark=stable + BEYOND,
            last_stable_offset=stable,
            log_start_offset=0,
            aborted_transactions=None
            if aborted is None
            else [whole.PartitionData.AbortedTransaction(producer_id=who, first_offset=at) for who, at in aborted],
            preferred_read_replica=replica,
            records=records,
            **tagged,
        )
        topics.setdefault(topic, []).append(part)
    response: Any = FetchResponse(
        throttle_time_ms=throttle,
        error_code=code,
        session_id=5,
        responses=[whole(topic=name, topic_id=IDS[name], partitions=parts) for name, parts in topics.items()],
    )
    response.API_VERSION = version
    response.with_header(correlation_id=7)
    return bytes(response.encode(header=True, framed=True))


def read(answer: bytes, version: int) -> Any:  # noqa: ANN401
    parser: Any = Protocol(client_id="mirrorless")  # type: ignore[no-untyped-call]
    request: Any = fetch(Asked([], IDS if version == 13 else None))
    request.API_VERSION = version
    parser.send_request(request, correlation_id=7)
    ((number, response),) = parser.receive_bytes(answer)
    assert number == 7
    return response


@pytest.mark.parametrize("version", VERSIONS)
@given(found=FOUND, throttle=st.integers(0, 1 << 30), code=st.sampled_from([0, 0, 0, 70]))
def test_an_answer_says_what_the_library_reads_in_it(
    version: int,
    found: dict[tuple[str, int], tuple[int, int, bytes | None, list[tuple[int, int]] | None, int | None, int]],
    throttle: int,
    code: int,
) -> None:
    response = read(answer_of_a_broker(found, version, throttle=throttle, code=code), version)
    assert response.throttle_time_ms == throttle
    if version >= 7:
        assert (response.error_code, response.session_id) == (code, 5)
    told = {one.place: one for one in fetched(response, IDS if version == 13 else None)}
    assert told == {
        place: Fetched(
            place,
            error,
            stable,
            aborted or [],
            records or b"",
            diverges if version >= 12 else None,
            stable + BEYOND,
            replica if version >= 11 else -1,
        )
        for place, (error, stable, records, aborted, diverges, replica) in found.items()
    }
    usual = all(diverges is None for _, _, _, _, diverges, _ in found.values())
    assert isinstance(response, Fetches) == (version >= 12 and usual)


@given(cut=st.integers(1, 60))
def test_an_answer_that_ends_too_early_is_an_error(cut: int) -> None:
    whole = answer_of_a_broker({("t", 3): (0, 11, b"records", None, None, -1)}, 12)
    with pytest.raises(kafka_errors.KafkaProtocolError):
        read(struct.pack(">i", len(whole) - 4 - cut) + whole[4:-cut], 12)
