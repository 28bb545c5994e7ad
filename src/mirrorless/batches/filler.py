"""Batches whose only purpose is to take offsets: a log that is to begin at offset N is filled with them, then emptied.

Each record has an empty key and no value, so that topics with the policy `compact` accept them too.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mirrorless.batches import codecs
from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import CHECKSUM_STARTS_AT, CODECS, HEADER_BYTES, BatchHeader
from mirrorless.batches.records import put_together, varint
from mirrorless.batches.stamp import stamp

if TYPE_CHECKING:
    from mirrorless.batches.stamp import Stamped

FILLER_RECORDS: Final = 100_000
"""Uncompressed these have less than Kafka's default of `max.message.bytes`, for brokers that compress again."""
_REST: Final = varint(0) + varint(-1) + varint(0)
_ZSTD: Final = CODECS.index("zstd")
_LENGTH_COUNTS_FROM: Final = 12


def filler(count: int, *, producer_id: int, base_sequence: int) -> Stamped:
    """Return a batch of `count` records, at most `FILLER_RECORDS`, of the current time."""
    body = _body(count)
    now_ms = int(time.time() * 1000)
    header = BatchHeader(
        base_offset=0,
        length_bytes=HEADER_BYTES + len(body) - _LENGTH_COUNTS_FROM,
        partition_leader_epoch=-1,
        magic=2,
        checksum=0,
        attributes=_ZSTD,
        last_offset_delta=count - 1,
        base_timestamp_ms=now_ms,
        max_timestamp_ms=now_ms,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )
    header = header._replace(checksum=checksum(header.pack()[CHECKSUM_STARTS_AT:], body))
    return stamp(header, body, producer_id=producer_id, producer_epoch=0, base_sequence=base_sequence)


@lru_cache(maxsize=4)
def _body(count: int) -> bytes:
    return codecs.compress(_ZSTD, put_together([0] * count, [_REST] * count))
