"""OffsetCommit and OffsetFetch, encoded and decoded outside of kafka-python.

A flow that follows two hundred groups of fifty partitions commits and reads ten thousand offsets a second, of each of
which the library makes several objects. Source of the layouts: `OffsetCommitRequest.json`, `OffsetFetchRequest.json`,
and those of the responses, of Kafka 4.3, version 8. Answers with an error are left to the library.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from mirrorless.kafka_python.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from mirrorless.kafka_python.raw_messages import NO_TAGS, RawRequest, RawResponse, compact_length, compact_string, count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.kafka_python.raw_messages import Frame

Offsets = dict[tuple[str, int], tuple[int, str]]
"""Offset and metadata by topic and partition."""
_VERSION: Final = 8
_NO_MEMBER: Final = struct.pack(">i", -1) + compact_string("") + b"\0"
"""Generation, member id, and no group instance id: a commit by a client that is not a member."""
_EVERY_TOPIC: Final = b"\0"
_ANY: Final = b"\0"
"""Offsets of open transactions do not hold the answer back."""
_LENGTH: Final = struct.Struct(">i")
_THROTTLE: Final = struct.Struct(">i")
_COMMIT: Final = struct.Struct(">iqi")
"""Partition, offset, and no leader epoch."""
_COMMITTED: Final = struct.Struct(">ihB")
_FETCHED: Final = struct.Struct(">iqi")
_ERROR: Final = struct.Struct(">hB")


class AllCommitted(NamedTuple):
    """An answer without errors."""


class FetchedOffsets(NamedTuple):
    """An answer without errors: the committed offsets by group."""

    groups: dict[str, Offsets]


class _OneVersion(RawRequest):
    """A request of version 8 alone; a broker of an older one is asked by the library's own methods."""

    RAW_SINCE = _VERSION

    def fill(self) -> NoReturn:
        """Not called: older versions are refused before anything is sent."""
        raise NotImplementedError

    def encode_raw(self) -> bytes:
        """Encode the whole request."""
        request = self.header.to_bytes() + self._body()
        return _LENGTH.pack(len(request)) + request

    def _body(self) -> bytes:
        raise NotImplementedError


class CommitOffsets(_OneVersion, OffsetCommitRequest, init=False):
    """Commits offsets of a group without members."""

    def __init__(self, group: str, offsets: Mapping[tuple[str, int], tuple[int, str]]) -> None:
        super().__init__(min_version=_VERSION, max_version=_VERSION)
        self._group = group
        self._offsets = offsets

    def raw_response(self, version: int) -> RawResponse:
        """Return what decodes a response of this version."""
        return RawResponse(OffsetCommitResponse[version], all_committed)

    def _body(self) -> bytes:
        topics: dict[str, list[bytes]] = {}
        for (topic, partition), (offset, metadata) in self._offsets.items():
            parts = topics.setdefault(topic, [])
            parts += _COMMIT.pack(partition, offset, -1), compact_string(metadata), NO_TAGS
        pieces = [compact_string(self._group), _NO_MEMBER, compact_length(len(topics))]
        for topic, parts in topics.items():
            pieces += compact_string(topic), compact_length(len(parts) // 3), *parts, NO_TAGS
        return b"".join([*pieces, NO_TAGS])


class FetchOffsets(_OneVersion, OffsetFetchRequest, init=False):
    """Asks for all committed offsets of some groups (KIP-709)."""

    def __init__(self, groups: Sequence[str]) -> None:
        super().__init__(min_version=_VERSION, max_version=_VERSION)
        self._groups = groups

    def raw_response(self, version: int) -> RawResponse:
        """Return what decodes a response of this version."""
        return RawResponse(OffsetFetchResponse[version], fetched_offsets)

    def _body(self) -> bytes:
        each = (compact_string(group) + _EVERY_TOPIC + NO_TAGS for group in self._groups)
        return b"".join([compact_length(len(self._groups)), *each, _ANY, NO_TAGS])


def all_committed(frame: Frame, at: int) -> AllCommitted | None:
    """Read an answer to `CommitOffsets`; None if it has an error."""
    topics, at = count(frame, at + _THROTTLE.size)
    for _ in range(topics):
        size, at = count(frame, at)
        partitions, at = count(frame, at + size)
        for _ in range(partitions):
            _, code, tags = _COMMITTED.unpack_from(frame, at)
            if code or tags:
                return None
            at += _COMMITTED.size
        if frame[at]:
            return None
        at += 1
    return None if frame[at] else AllCommitted()


def fetched_offsets(frame: Frame, at: int) -> FetchedOffsets | None:
    """Read an answer to `FetchOffsets`; None if it has an error."""
    found: dict[str, Offsets] = {}
    groups, at = count(frame, at + _THROTTLE.size)
    for _ in range(groups):
        group, at = _string(frame, at)
        offsets = found[group] = {}
        topics, at = count(frame, at)
        for _ in range(topics):
            at = _topic(frame, at, offsets)
            if at < 0:
                return None
        code, tags = _ERROR.unpack_from(frame, at)
        if code or tags:
            return None
        at += _ERROR.size
    return None if frame[at] else FetchedOffsets(found)


def _topic(frame: Frame, at: int, offsets: Offsets) -> int:
    """Read the offsets of one topic; returns where it ends, -1 for an error."""
    topic, at = _string(frame, at)
    partitions, at = count(frame, at)
    for _ in range(partitions):
        partition, offset, _ = _FETCHED.unpack_from(frame, at)
        metadata, at = _string(frame, at + _FETCHED.size)
        code, tags = _ERROR.unpack_from(frame, at)
        if code or tags:
            return -1
        at += _ERROR.size
        if offset >= 0:
            offsets[topic, partition] = offset, metadata
    return -1 if frame[at] else at + 1


def _string(frame: Any, at: int) -> tuple[str, int]:  # noqa: ANN401 -- a view of bytes
    """Read a compact string, empty if null, and say where it ends."""
    size, at = count(frame, at)
    if size <= 0:
        return "", at
    if at + size > len(frame):
        raise IndexError(f"a string of {size} bytes at {at} of {len(frame)}")
    return str(frame[at : at + size], "utf-8"), at + size
