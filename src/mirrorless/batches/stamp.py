"""Make a source's batch the target's: check its sum, rewrite its header, leave its records alone (design, 3)."""

from __future__ import annotations

from typing import NamedTuple

import google_crc32c

from mirrorless.batches.header import (
    BEFORE_CHECKSUM,
    CHECKSUM_STARTS_AT,
    COVERED,
    HEADER_BYTES,
    TRANSACTIONAL,
    BatchHeader,
)


def body_of(records: bytes | memoryview, at: int, header: BatchHeader) -> bytes:
    """Return what follows the header of the batch at byte `at`, as `bytes` (the checksum library insists)."""
    return bytes(records[at + HEADER_BYTES : at + header.size_bytes])


def is_intact(records: bytes | memoryview, at: int, header: BatchHeader, body: bytes) -> bool:
    """Whether the batch at byte `at`, whose `body_of` is `body`, has the checksum that its header says."""
    return checksum(bytes(records[at + CHECKSUM_STARTS_AT : at + HEADER_BYTES]), body) == header.checksum


def checksum(covered: bytes, body: bytes) -> int:
    """CRC-32C of a batch, of its header from the attributes on (`header.COVERED`) and of what follows it."""
    return int(google_crc32c.extend(google_crc32c.value(covered), body))


class Stamped(NamedTuple):
    """A batch in two pieces, its header and what follows, so that the second need not be copied to change the first."""

    head: bytes
    body: bytes
    size_bytes: int

    def whole(self) -> bytes:
        """Return the batch in one piece."""
        return self.head + self.body


def stamp(header: BatchHeader, body: bytes, *, producer_id: int, producer_epoch: int, base_sequence: int) -> Stamped:
    """Return the batch as the target shall store it: `header` with our producer, not transactional, and a new checksum.

    Base offset 0 and leader epoch -1 are what producers send; the target's leader writes both.
    """
    _, length, _, magic, _, attributes, last_delta, base_ms, max_ms, _, _, _, count = header
    covered = COVERED.pack(
        attributes & ~TRANSACTIONAL, last_delta, base_ms, max_ms, producer_id, producer_epoch, base_sequence, count
    )
    head = BEFORE_CHECKSUM.pack(0, length, -1, magic, checksum(covered, body)) + covered
    return Stamped(head, body, HEADER_BYTES + len(body))
