"""Whether records are of the log that was read before, by the leader epochs of batches."""

from __future__ import annotations

from mirrorless.batches.continuity import continues, offset_spread
from tests.support.fake_log import FakeLog


def log_of(*epochs: int) -> FakeLog:
    """A log of two records for each batch, whose leader epochs are given."""
    log = FakeLog()
    for epoch in epochs:
        log.leader_epoch = epoch
        log.produce([b"a", b"b"])
    return log


def read(log: FakeLog, offset: int) -> bytes:
    return log.read(offset, below=log.end, max_bytes=1 << 20)


def test_the_next_batch_has_the_epoch_of_the_one_before() -> None:
    assert continues(read(log_of(3, 3), 2), position=2, leader_epoch=3)
    assert not continues(read(log_of(3, 4), 2), position=2, leader_epoch=3)


def test_of_batches_that_were_read_before_the_last_one_counts() -> None:
    log = log_of(3, 3, 4, 5)
    assert continues(read(log, 0), position=4, leader_epoch=3)
    assert continues(read(log, 0), position=6, leader_epoch=4)
    assert not continues(read(log, 0), position=6, leader_epoch=3)


def test_an_epoch_that_is_not_known_is_not_compared() -> None:
    assert continues(read(log_of(7), 0), position=0, leader_epoch=-1)


def test_nothing_and_old_formats_show_nothing() -> None:
    assert not continues(b"", position=0, leader_epoch=-1)
    old = bytearray(read(log_of(0), 0))
    old[16] = 1
    assert not continues(bytes(old), position=0, leader_epoch=0)
    assert offset_spread(bytes(old)) is None


def test_how_offsets_are_spread_counts_whole_batches_only() -> None:
    log = FakeLog()
    for number in range(1, 6):
        log.produce([b"x" * 100] * number)
    whole = read(log, 0)
    found = offset_spread(whole)
    assert found is not None
    assert (found.offsets, found.size_bytes) == (15, len(whole))
    last = found.largest_bytes
    cut = offset_spread(whole[:-1])
    assert cut is not None
    assert (cut.offsets, cut.size_bytes) == (10, len(whole) - last)
    assert cut.largest_bytes < last
    assert offset_spread(whole[:20]) is None
    assert offset_spread(b"") is None
