"""Markers and aborted records stay behind; what cannot be appended says why."""

from __future__ import annotations

import struct

from mirrorless.batches.batch_filter import AbortedTransactions, fits_as_it_is, refusal
from mirrorless.batches.header import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, BatchHeader

ABORT, COMMIT = 0, 1


def header(
    base: int, count: int = 1, *, producer: int = 1, attributes: int = 0, last: int | None = None
) -> BatchHeader:
    delta = count - 1 if last is None else last - base
    return BatchHeader(base, 100, 0, 2, 0, attributes, delta, 0, 0, producer, 0, 0, count)


def marker(base: int, kind: int, *, producer: int) -> tuple[BatchHeader, bytes]:
    """A control batch as brokers write it: one record whose key is version and type."""
    record = bytes([0, 0, 0, 8]) + struct.pack(">hh", 0, kind) + bytes([12]) + bytes(6) + bytes([0])
    control = header(base, producer=producer, attributes=TRANSACTIONAL | CONTROL)
    return control, control.pack() + bytes([len(record) * 2]) + record


def drops(aborted: AbortedTransactions, what: BatchHeader | tuple[BatchHeader, bytes]) -> bool:
    one, records = (what, what.pack()) if isinstance(what, BatchHeader) else what
    return aborted.drops(one, records, 0)


def test_two_producers_interleaved_and_one_of_them_aborts() -> None:
    aborted = AbortedTransactions([(7, 10)])
    story: list[tuple[BatchHeader | tuple[BatchHeader, bytes], bool]] = [
        (header(8, producer=7, attributes=TRANSACTIONAL), False),  # an earlier transaction of the same producer
        (marker(9, COMMIT, producer=7), True),
        (header(10, 2, producer=7, attributes=TRANSACTIONAL), True),
        (header(12, 3, producer=8, attributes=TRANSACTIONAL), False),
        (header(15, producer=7, attributes=TRANSACTIONAL), True),
        (marker(16, COMMIT, producer=8), True),
        (marker(17, ABORT, producer=7), True),
        (header(18, producer=7, attributes=TRANSACTIONAL), False),  # its next transaction
        (header(19, producer=7), False),
    ]
    assert [drops(aborted, what) for what, _ in story] == [dropped for _, dropped in story]


def test_a_fetch_may_begin_in_the_middle_of_an_aborted_transaction() -> None:
    aborted = AbortedTransactions([(7, 10)])
    assert drops(aborted, header(40, producer=7, attributes=TRANSACTIONAL))
    assert not drops(aborted, header(41, producer=7))  # not transactional, so not part of it


def test_the_same_producer_may_abort_twice() -> None:
    aborted = AbortedTransactions([(7, 20), (7, 10)])
    assert drops(aborted, header(10, producer=7, attributes=TRANSACTIONAL))
    assert drops(aborted, marker(11, ABORT, producer=7))
    assert not drops(aborted, header(12, producer=7, attributes=TRANSACTIONAL))
    assert drops(aborted, header(20, producer=7, attributes=TRANSACTIONAL))


def test_what_may_be_appended_unopened() -> None:
    cases: list[tuple[BatchHeader, bool]] = [
        (header(5, 5), True),
        (header(3, 5), False),  # only a part is wanted
        (header(5, 2, last=9), False),
        (header(5, attributes=LOG_APPEND_TIME), False),
        (header(5, attributes=DELETE_HORIZON), False),
        (header(5)._replace(length_bytes=989), False),
        (header(5)._replace(length_bytes=988), True),
    ]
    assert [(batch, fits_as_it_is(batch, wanted_from=5, max_bytes=1_000)) for batch, _ in cases] == cases


def test_a_codec_that_nobody_knows_is_refused() -> None:
    assert refusal(header(5)) is None
    assert refusal(header(5, attributes=6)) == "the batch 5 to 5 has compression codec unknown (6)"
