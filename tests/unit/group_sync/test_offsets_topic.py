"""Records of `__consumer_offsets`, byte by byte, of each version that Kafka has written."""

from __future__ import annotations

import struct

import pytest

from mirrorless.clusters.groups import Committed
from mirrorless.group_sync.offsets_topic import Commit, UnknownFormat, parse_commit

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
    assert parse_commit(KEY, VALUES[version]) == Commit("teamA", "orders", 7, Committed(42, "m1"))


def test_long_metadata_of_the_flexible_version_is_read() -> None:
    value = struct.pack(">hqi", 4, 42, 5) + b"\x91\x4e" + b"x" * 10_000 + struct.pack(">q", 1) + b"\x00"
    parsed = parse_commit(KEY, value)
    assert parsed is not None
    assert parsed.committed.metadata == "x" * 10_000


def test_other_records_are_no_commits() -> None:
    assert parse_commit(KEY, None) is None  # deleted, or expired
    assert parse_commit(None, b"") is None
    assert parse_commit(struct.pack(">hh", 2, 5) + b"teamA", b"members") is None
    assert parse_commit(struct.pack(">hh", 5, 5) + b"teamA", b"members (KIP-848)") is None


@pytest.mark.parametrize(
    "value",
    [struct.pack(">hq", 5, 42), struct.pack(">h", -1), b"", VALUES[3][:-12], struct.pack(">hqi", 4, 42, 5) + b"\xff"],
)
def test_what_cannot_be_read_is_told(value: bytes) -> None:
    with pytest.raises(UnknownFormat):
        parse_commit(KEY, value)
