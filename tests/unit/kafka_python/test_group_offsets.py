"""Requests for the offsets of groups are, byte for byte, those of the library, and answers are read alike."""

from __future__ import annotations

import contextlib
import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.admin import KafkaAdminClient
from kafka.protocol.consumer.group import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.structs import OffsetAndMetadata, TopicPartition

from mirrorless.kafka_python.group_offsets import (
    AllCommitted,
    CommitOffsets,
    FetchedOffsets,
    FetchOffsets,
    all_committed,
    fetched_offsets,
)

VERSION = 8
NAMES = st.sampled_from(["t", "größe", "a" * 200])
METADATA = st.sampled_from(["", "here", "m" * 10_000])
OFFSETS = st.dictionaries(
    st.tuples(NAMES, st.integers(0, 5_000)), st.tuples(st.integers(0, 1 << 60), METADATA), min_size=1, max_size=8
)


def written(request: Any) -> bytes:  # noqa: ANN401 -- the library is untyped
    request.API_VERSION = VERSION
    request.with_header(correlation_id=7, client_id="mirrorless")
    return bytes(request.encode(header=True, framed=True))


@given(group=NAMES, offsets=OFFSETS)
def test_a_commit_is_what_the_library_writes(group: str, offsets: dict[tuple[str, int], tuple[int, str]]) -> None:
    theirs = KafkaAdminClient._alter_group_offsets_request(
        group, {TopicPartition(*place): OffsetAndMetadata(*one, -1) for place, one in offsets.items()}
    )
    assert isinstance(theirs, OffsetCommitRequest)
    assert written(CommitOffsets(group, offsets)) == written(theirs)


@given(groups=st.lists(NAMES, min_size=1, unique=True))
def test_offsets_are_asked_for_as_the_library_does(groups: list[str]) -> None:
    one = OffsetFetchRequest.OffsetFetchRequestGroup
    theirs = OffsetFetchRequest(groups=[one(group_id=group, topics=None) for group in groups])
    assert written(FetchOffsets(groups)) == written(theirs)


def answer(response: Any) -> bytes:  # noqa: ANN401
    return bytes(response.encode(version=VERSION))


def committed(code: int) -> bytes:
    topic = OffsetCommitResponse.OffsetCommitResponseTopic
    parts = [topic.OffsetCommitResponsePartition(partition_index=0, error_code=0)]
    parts.append(topic.OffsetCommitResponsePartition(partition_index=1, error_code=code))
    return answer(OffsetCommitResponse(throttle_time_ms=5, topics=[topic(name="größe", partitions=parts)]))


def test_an_answer_to_a_commit_is_read() -> None:
    assert all_committed(committed(0), 0) == AllCommitted()
    assert all_committed(committed(25), 0) is None


def fetched(offsets: dict[tuple[str, int], tuple[int, str | None]], *, code: int = 0, of_group: int = 0) -> bytes:
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    topics: dict[str, list[Any]] = {}
    for (name, partition), (offset, metadata) in offsets.items():
        topics.setdefault(name, []).append(
            topic.OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=3,
                metadata=metadata,
                error_code=code,
            )
        )
    whole = [topic(name=name, partitions=parts) for name, parts in topics.items()]
    groups = [group(group_id=name, topics=whole, error_code=of_group) for name in ("g", "größe")]
    return answer(OffsetFetchResponse(throttle_time_ms=5, groups=groups))


@given(offsets=OFFSETS)
def test_offsets_are_read(offsets: dict[tuple[str, int], tuple[int, str]]) -> None:
    found = fetched_offsets(fetched(dict(offsets)), 0)
    assert found == FetchedOffsets({"g": offsets, "größe": offsets})


def test_offsets_that_were_reset_are_left_out_and_metadata_may_be_null() -> None:
    found = fetched_offsets(fetched({("t", 0): (-1, ""), ("t", 1): (4, None)}), 0)
    assert found == FetchedOffsets({group: {("t", 1): (4, "")} for group in ("g", "größe")})


@pytest.mark.parametrize("data", [fetched({("t", 0): (1, "")}, code=3), fetched({}, of_group=30)])
def test_an_answer_with_an_error_is_left_to_the_library(data: bytes) -> None:
    assert fetched_offsets(data, 0) is None
    assert OffsetFetchResponse[VERSION].decode(io.BytesIO(data)).groups


@given(st.binary(max_size=60))
def test_bytes_that_are_no_answer_end_in_errors_that_the_connection_handles(data: bytes) -> None:
    for read in (all_committed, fetched_offsets):
        with contextlib.suppress(IndexError, ValueError, struct.error):
            read(data, 0)
