"""Records of `__consumer_offsets`, byte by byte, of each version that Kafka has written."""

from __future__ import annotations

import struct

import pytest

from mirrorless.clusters.groups import Committed
from mirrorless.group_sync.offsets_topic import CommitKey, UnknownFormat, parse_key, parse_value

KEY = struct.pack(">hh", 1, 5) + b"teamA" + struct.pack(">h", 6) + b"orders" + struct.pack(">i", 7)
METADATA = struct.pack(">h", 2) + b"m1"
VALUES = {
    0: struct.pack(">hq", 0, 42) + METADATA + struct.pack(">q", 1),
    1: struct.pack(">hq", 1, 42) + METADATA + struct.pack(">qq", 1, 2),
    2: struct.pack(">hq", 2, 42) + METADATA + struct.pack(">q", 1),
    3: struct.pack(">hqi", 3, 42, 5) + METADATA + struct.pack(">q", 1),
    4: struct.pack(">hqi", 4, 42, 5) + b"\x03m1" + struct.pack(">q", 1) + b"\x00",
}


@pytest.mark.parametrize("version", VALUES)
def test_a_commit_is_read(version: int) -> None:
    assert parse_key(KEY) == CommitKey("teamA", ("orders", 7))
    assert parse_value(VALUES[version]) == Committed(42, "m1")


def test_long_metadata_of_the_flexible_version_is_read() -> None:
    value = struct.pack(">hqi", 4, 42, 5) + b"\x91\x4e" + b"x" * 10_000 + struct.pack(">q", 1) + b"\x00"
    assert parse_value(value) == Committed(42, "x" * 10_000)


def test_the_flexible_version_has_empty_metadata_or_none() -> None:
    for length in (b"\x01", b"\x00"):
        value = struct.pack(">hqi", 4, 42, 5) + length + struct.pack(">q", 1) + b"\x00"
        assert parse_value(value) == Committed(42, "")


def test_other_records_are_no_commits() -> None:
    assert parse_key(b"") is None
    assert parse_key(struct.pack(">hh", 2, 5) + b"teamA") is None
    assert parse_key(struct.pack(">hh", 5, 5) + b"teamA") is None  # a member (KIP-848)


@pytest.mark.parametrize(
    "value",
    [struct.pack(">hq", 5, 42), struct.pack(">h", -1), b"", VALUES[3][:-12], struct.pack(">hqi", 4, 42, 5) + b"\xff"],
)
def test_what_cannot_be_read_is_told(value: bytes) -> None:
    with pytest.raises(UnknownFormat):
        parse_value(value)


def test_a_key_that_is_cut_is_told() -> None:
    with pytest.raises(UnknownFormat):
        parse_key(KEY[:-1])
