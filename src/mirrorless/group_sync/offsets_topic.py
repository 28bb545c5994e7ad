"""Records of `__consumer_offsets`, in which a cluster's group coordinators keep committed offsets. No I/O.

The format is not a public protocol. Read here: keys of versions 0 and 1, values of versions 0 to 4 (OffsetCommitKey and
OffsetCommitValue in Kafka's `group-coordinator`, 0.8.2 to 4.3). Keys of other versions are about members and groups.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.clusters.groups import Committed
from mirrorless.clusters.internal_topics import GROUP_COMMITS_TOPIC

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_OFFSET_KEYS: Final = (0, 1)
_NEWEST_VALUE: Final = 4
_FLEXIBLE: Final = 4
_WITH_LEADER_EPOCH: Final = 3
_WITHOUT_METADATA: Final = struct.Struct(">hqiB")
"""How a value of version 4 begins: version, offset, leader epoch, and the length of metadata plus one."""
_EMPTY: Final = 1
_NOT_OF_THE_FORM: Final = (struct.error, IndexError, UnicodeDecodeError)


class CommitKey(NamedTuple):
    """What a commit is about: a group, and a topic and partition."""

    group: str
    place: TopicPartition


class UnknownFormat(Exception):
    """A record is of a version that this release cannot read."""


def parse_key(key: bytes) -> CommitKey | None:
    """Return what a record is about; None for records that are not about offsets.

    Raises `UnknownFormat` for a key that is not of its version's form.
    """
    if len(key) < _INT16.size or _INT16.unpack_from(key)[0] not in _OFFSET_KEYS:
        return None
    try:
        group, at = _string(key, _INT16.size)
        topic, at = _string(key, at)
        (partition,) = _INT32.unpack_from(key, at)
    except _NOT_OF_THE_FORM as error:
        raise _unknown(error) from error
    return CommitKey(group, (topic, partition))


def parse_value(value: bytes) -> Committed:
    """Return the offset of a record about offsets.

    Raises `UnknownFormat` for a value of a later version, or one that is not of its version's form.
    """
    if len(value) >= _WITHOUT_METADATA.size:
        version, offset, _, length = _WITHOUT_METADATA.unpack_from(value)
        if version == _FLEXIBLE and length == _EMPTY:
            return Committed(offset, "")
    try:
        return _committed(value)
    except _NOT_OF_THE_FORM as error:
        raise _unknown(error) from error


def _unknown(error: Exception) -> UnknownFormat:
    return UnknownFormat(f"a record of {GROUP_COMMITS_TOPIC} is not of the form of its version: {error}")


def _committed(value: bytes) -> Committed:
    (version,) = _INT16.unpack_from(value)
    if not 0 <= version <= _NEWEST_VALUE:
        raise UnknownFormat(f"{GROUP_COMMITS_TOPIC} has offsets of version {version}; known are 0 to {_NEWEST_VALUE}")
    (offset,) = _INT64.unpack_from(value, _INT16.size)
    at = _INT16.size + _INT64.size + (_INT32.size if version >= _WITH_LEADER_EPOCH else 0)
    metadata, _ = _compact_string(value, at) if version >= _FLEXIBLE else _string(value, at)
    return Committed(offset, metadata)


def _string(data: bytes, at: int) -> tuple[str, int]:
    """Return a string with a length of 16 bits, and where it ends."""
    (length,) = _INT16.unpack_from(data, at)
    begin, end = at + _INT16.size, at + _INT16.size + max(0, length)
    if end > len(data):
        raise IndexError(f"a string of {length} bytes at {at} of {len(data)}")
    return data[begin:end].decode(), end


def _compact_string(data: bytes, at: int) -> tuple[str, int]:
    """Return a string whose length plus one is an unsigned varint (KIP-482), and where it ends."""
    length, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 0x7F) << shift
        if not byte & 0x80:
            break
        shift += 7
    end = at + max(0, length - 1)
    if end > len(data):
        raise IndexError(f"a string of {length - 1} bytes at {at} of {len(data)}")
    return data[at:end].decode(), end
