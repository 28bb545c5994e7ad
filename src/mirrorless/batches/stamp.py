"""Rewrites the header and the checksum of a source's batch for the target; its records are unchanged."""

from __future__ import annotations

from typing import NamedTuple

from mirrorless.batches.checksum import checksum, derived
from mirrorless.batches.header import (
    BEFORE_CHECKSUM,
    CHECKSUM_STARTS_AT,
    COVERED,
    HEADER_BYTES,
    TRANSACTIONAL,
    BatchHeader,
)


def body_of(records: bytes | memoryview, at: int, header: BatchHeader) -> bytes:
    """Return the bytes after the header of the batch at byte `at`, as `bytes`, which `checksum` requires."""
    return bytes(records[at + HEADER_BYTES : at + header.size_bytes])


def is_intact(records: bytes | memoryview, at: int, header: BatchHeader, body: bytes) -> bool:
    """Whether the batch at byte `at`, whose `body_of` is `body`, matches the checksum in its header."""
    return checksum(bytes(records[at + CHECKSUM_STARTS_AT : at + HEADER_BYTES]), body) == header.checksum


class Stamped(NamedTuple):
    """A batch in two parts, header and body, so that the body need not be copied to change the header."""

    head: bytes
    body: bytes | memoryview
    size_bytes: int

    def whole(self) -> bytes:
        """Return the batch in one piece."""
        return self.head + bytes(self.body)


def stamp(
    header: BatchHeader, body: bytes | memoryview, *, producer_id: int, producer_epoch: int, base_sequence: int
) -> Stamped:
    """Return the batch for the target: `header` with the copy's producer, not transactional, and a new checksum.

    The body is not read: the checksum is derived from the header's, and is as right or wrong as that one. Base offset 0
    and leader epoch -1 are what producers send; the target's leader sets both.
    """
    _, length, _, magic, sum_before, attributes, last_delta, base_ms, max_ms, theirs, epoch, sequence, count = header
    before = COVERED.pack(attributes, last_delta, base_ms, max_ms, theirs, epoch, sequence, count)
    covered = COVERED.pack(
        attributes & ~TRANSACTIONAL, last_delta, base_ms, max_ms, producer_id, producer_epoch, base_sequence, count
    )
    sum_after = derived(sum_before, before, covered, following=len(body))
    head = BEFORE_CHECKSUM.pack(0, length, -1, magic, sum_after) + covered
    return Stamped(head, body, HEADER_BYTES + len(body))
