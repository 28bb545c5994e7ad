"""CRC-32C of a record batch: of its bytes, or derived from another batch's that differs in its header only.

A CRC is linear: the CRCs of two texts of the same length differ by the CRC of their difference. If only the
first bytes differ, that is the difference of the first bytes' own CRCs, shifted over the zero bytes that follow.
Shifting over a fixed number of zeros is linear too, so four look-ups by a byte each do it; over few zeros, the zeros
themselves are read, which is faster than look-ups in tables that are in no cache.
"""

from __future__ import annotations

from functools import cache

import google_crc32c

_POLYNOMIAL = 0x82F63B78
"""Castagnoli's, with the lowest power in the highest bit, as in the sums."""
_READ_BITS = 12
_ZEROS = bytes((1 << _READ_BITS) - 1)
"""The remainder of a length below its digits is read: 4 KiB take a quarter of a microsecond."""
_DIGITS = 5
_ALL = 0xFFFFFFFF
"""Initial and final XOR of the sums, which shifts do not include."""
_Moves = tuple[list[int], list[int], list[int], list[int]]


def checksum(covered: bytes, body: bytes) -> int:
    """CRC-32C of a batch, of its header from the attributes on (`header.COVERED`) and of what follows it."""
    return int(google_crc32c.extend(google_crc32c.value(covered), body))


def derived(checksum: int, before: bytes, after: bytes, *, following: int) -> int:
    """Return what `checksum` becomes if the first bytes, `before`, are now `after`, with `following` unchanged bytes.

    `before` and `after` are of the same length, fewer than 2^32 bytes follow. If the checksum did not match, the new
    one does not match either.
    """
    moved: int = google_crc32c.value(before) ^ google_crc32c.value(after)
    moved = google_crc32c.extend(moved ^ _ALL, _ZEROS[: following & len(_ZEROS)]) ^ _ALL
    following >>= _READ_BITS
    for moves in _zeros():
        if not following:
            break
        if digit := following & 15:
            first, second, third, fourth = moves[digit]
            moved = first[moved & 255] ^ second[moved >> 8 & 255] ^ third[moved >> 16 & 255] ^ fourth[moved >> 24]
        following >>= 4
    return checksum ^ moved


def prepare() -> None:
    """Build the tables of `derived`, which takes some 20 ms, before a batch has to wait for them."""
    _zeros()


@cache
def _zeros() -> list[list[_Moves]]:
    """For each hexadecimal digit above the bytes that are read, lowest first, and each value: the shift over them."""
    one = [_POLYNOMIAL, *(1 << bit for bit in range(31))]  # the effect of a zero bit on each bit
    for _ in range(3 + _READ_BITS):
        one = _then(one, one)  # two, four, eight
    found: list[list[_Moves]] = []
    for _ in range(_DIGITS):
        powers = [[1 << bit for bit in range(32)]]
        for _ in range(15):
            powers.append(_then(powers[-1], one))
        found.append([_by_byte(rows) for rows in powers])
        one = _then(powers[-1], one)
    return found


def _then(first: list[int], second: list[int]) -> list[int]:
    """Both shifts, one after the other; a shift has the result of each of 32 bits."""
    return [_moved(bits, second) for bits in first]


def _moved(bits: int, rows: list[int]) -> int:
    found = 0
    for row in rows:
        if bits & 1:
            found ^= row
        bits >>= 1
    return found


def _by_byte(rows: list[int]) -> _Moves:
    """The same shift, of each value of each of the four bytes."""
    tables: _Moves = [0], [0], [0], [0]
    for number, table in enumerate(tables):
        for row in rows[8 * number : 8 * number + 8]:
            table += [entry ^ row for entry in table]
    return tables
