"""Lengths are written as the library writes them, and read back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kafka.protocol.schemas.fields.codecs import UnsignedVarInt32

from mirrorless.batches.records import unsigned_varint
from mirrorless.kafka_python.raw_messages import compact_length, count


@given(st.integers(0, (1 << 31) - 1))
@example(0)
@example(127)
@example(128)
@example(16_383)
@example(16_384)
def test_a_length_is_written_as_the_library_does(value: int) -> None:
    written = unsigned_varint(value)
    assert compact_length(value - 1) == written
    assert written == UnsignedVarInt32.encode(value)
    assert count(b"x" + written + b"y", 1) == (value - 1, 1 + len(written))


def test_a_length_that_does_not_end_is_none() -> None:
    assert count(b"\xff\xff\xff\xff\x0f", 0) == ((1 << 32) - 2, 5)
    with pytest.raises(ValueError, match="more than five bytes"):
        count(b"\xff" * (8 << 20), 0)
