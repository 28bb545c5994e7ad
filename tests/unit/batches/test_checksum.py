"""The checksum that a batch has when only its header was changed, against that of all its bytes."""

from __future__ import annotations

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.batches.checksum import checksum, derived

HEADS = st.integers(0, 60).flatmap(
    lambda size: st.tuples(st.binary(min_size=size, max_size=size), st.binary(min_size=size, max_size=size))
)


@given(HEADS, st.binary(max_size=300))
def test_it_is_that_of_all_bytes(heads: tuple[bytes, bytes], body: bytes) -> None:
    before, after = heads
    known = checksum(before, body)
    assert known == google_crc32c.value(before + body)
    assert derived(known, before, after, following=len(body)) == google_crc32c.value(after + body)


@pytest.mark.parametrize("following", [0, 4_095, 4_096, 4_097, 65_535, 65_536, 1_048_575, 1_048_576, 0x123_4567])
def test_it_moves_over_as_many_bytes_as_follow(following: int) -> None:
    before, after, body = b"as it came" * 4, b"as it goes" * 4, b"\x5a" * following
    assert derived(checksum(before, body), before, after, following=following) == checksum(after, body)


@pytest.mark.parametrize("following", [3_896, (1 << 28) - 100, (1 << 31) - 100, (1 << 32) - 201])
def test_it_moves_over_more_than_there_is_memory_for(following: int) -> None:
    before, after, zeros = b"as it came", b"as it goes", bytes(200)
    found = derived(0, before + zeros, after + zeros, following=following)
    assert found == derived(0, before, after, following=following + 200)


@given(HEADS, st.binary(min_size=1, max_size=300), st.integers(1, (1 << 32) - 1))
def test_what_was_wrong_stays_wrong_by_the_same_bits(heads: tuple[bytes, bytes], body: bytes, wrong: int) -> None:
    before, after = heads
    found = derived(checksum(before, body) ^ wrong, before, after, following=len(body))
    assert found ^ checksum(after, body) == wrong
