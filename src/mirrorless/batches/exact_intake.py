"""Turns a fetch of one partition into batches that keep their offsets, and the holes between them.

A hole is a run of offsets without a record that consumers see: markers, aborted records, records that compaction
removed. Every batch that is yielded is dense: its records have consecutive offsets from `base_offset` on, so that it is
identical on a target whose log ends there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.batch_filter import AbortedTransactions, fits_as_it_is, refusal
from mirrorless.batches.header import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    FormatError,
    scan,
)
from mirrorless.batches.passthrough import Ready, is_tiny
from mirrorless.batches.producers import NO_OPPOSITE, LoopedBatch, OppositeCopy
from mirrorless.batches.rebuild import merge, rebuild, records_of
from mirrorless.batches.stamp import body_of, is_intact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.batches.records import Records

_REBUILT_BYTES = 256 << 10
_MANY = 4


class Hole(NamedTuple):
    """No record from `offset` up to `next_offset`; `leader_epoch` is the source's at its end, -1 if unknown."""

    offset: int
    next_offset: int
    leader_epoch: int = -1


def take_exactly(
    records: bytes | memoryview,
    aborted: Iterable[tuple[int, int]],
    *,
    wanted_from: int,
    until: int | None = None,
    max_batch_bytes: int | None = None,
    merge_below: int = 0,
    opposite: OppositeCopy = NO_OPPOSITE,
) -> Iterator[Ready | Hole]:
    """Yield dense batches and holes from offset `wanted_from` up to `until`, each beginning where the last one ended.

    Neighbours that are tiny, or smaller than `merge_below`, are merged. All checksums are compared. Raises
    `FormatError` for what cannot be copied, and `LoopedBatch` for batches that the `opposite` copy appended, after
    everything before it.
    """
    taking = _Taking(wanted_from, until, max_batch_bytes, merge_below)
    failure: FormatError | LoopedBatch | None = None
    try:
        for header, body in _committed(records, aborted, wanted_from=wanted_from, until=until):
            if opposite.made(header):
                failure = LoopedBatch(header.base_offset)
                break
            # Of markers too: a hole may end with the first one of a new leader.
            taking.leader_epoch = header.partition_leader_epoch
            if body is None:
                taking.pass_to(header.next_offset)
                continue
            yield from taking.take(header, body)
    except FormatError as error:
        failure = error
    if failure is None and until is not None and _reaches(records, until):
        taking.pass_to(until)
    yield from taking.finish()
    if failure is not None:
        raise failure


class _Taking:
    """What was taken of a fetch so far: up to `reached`, of which the last offsets may be a hole."""

    def __init__(self, wanted_from: int, until: int | None, max_batch_bytes: int | None, merge_below: int) -> None:
        self.leader_epoch = -1
        self._reached = wanted_from
        self._until = until
        self._max_bytes = max_batch_bytes
        self._merge_below = merge_below
        self._limit = max_batch_bytes if max_batch_bytes is not None else max(_REBUILT_BYTES, merge_below)
        self._hole_from: int | None = None
        self._loose: list[tuple[BatchHeader, bytes]] = []

    def pass_to(self, offset: int) -> None:
        """Note that there is no record before `offset`."""
        if offset > self._reached:
            self._hole_from = self._reached if self._hole_from is None else self._hole_from
            self._reached = offset

    def take(self, header: BatchHeader, body: bytes) -> Iterator[Ready | Hole]:
        """Take a batch of committed records."""
        self.pass_to(header.base_offset)
        if not fits_as_it_is(header, wanted_from=self._reached, max_bytes=self._max_bytes):
            yield from self._opened(header, body)
            return
        if self._hole_from is not None:
            yield from self.finish()
        small = header.size_bytes < self._merge_below
        if small or is_tiny(header.size_bytes, header.attributes, header.record_count):
            self._loose.append((header, body))
        else:
            yield from self.finish()
            yield Ready(header, body, header.base_offset, header.last_offset, self.leader_epoch)
        self._reached = header.next_offset

    def _opened(self, header: BatchHeader, body: bytes) -> Iterator[Ready | Hole]:
        codec = header.attributes & (CODEC_MASK | LOG_APPEND_TIME)
        for run in dense_runs(records_of(header, body).wanted(self._reached, self._until)):
            self.pass_to(run.offsets[0])
            yield from self.finish()
            for built in merge([(codec, run)], max_bytes=self._limit):
                yield Ready(built.header, built.body, built.first_offset, built.last_offset, self.leader_epoch)
            self._reached = run.offsets[-1] + 1
        self.pass_to(header.next_offset if self._until is None else min(header.next_offset, self._until))

    def finish(self) -> Iterator[Ready | Hole]:
        """Yield what waits to be merged, and the hole after it."""
        yield from _together(self._loose, self._limit)
        self._loose = []
        if self._hole_from is not None:
            yield Hole(self._hole_from, self._reached, self.leader_epoch)
            self._hole_from = None


def _committed(
    records: bytes | memoryview, aborted: Iterable[tuple[int, int]], *, wanted_from: int, until: int | None
) -> Iterator[tuple[BatchHeader, bytes | None]]:
    """Yield each batch's header, with its body if its records were committed; compares every checksum."""
    follower = AbortedTransactions(aborted)
    for header, at in scan(records):
        if until is not None and header.base_offset >= until:
            return
        body = body_of(records, at, header)
        _check(records, header, at, body)
        dropped = header.attributes & (TRANSACTIONAL | CONTROL) and follower.drops(header, records, at)
        if header.next_offset > wanted_from:
            yield header, None if dropped or not header.record_count else body


def _reaches(records: bytes | memoryview, until: int) -> bool:
    """Whether a batch from offset `until` on is among the records, so that there is none between."""
    return any(header.base_offset >= until for header, _ in scan(records))


def dense_runs(records: Records) -> Iterator[Records]:
    """Split records where an offset does not follow the one before it."""
    offsets = records.offsets
    start = 0
    for number in range(1, len(offsets) + 1):
        if number == len(offsets) or offsets[number] != offsets[number - 1] + 1:
            yield records.part(start, number)
            start = number


def _check(records: bytes | memoryview, header: BatchHeader, at: int, body: bytes) -> None:
    where = f"the batch {header.base_offset} to {header.last_offset}"
    reason = refusal(header)
    if not is_intact(records, at, header, body):
        reason = f"{where} does not match its checksum"
    if reason is not None:
        behind = header.next_offset if header.last_offset_delta >= 0 else None
        raise FormatError(reason, offset=header.base_offset, next_offset=behind, size_bytes=header.size_bytes)


def _together(loose: list[tuple[BatchHeader, bytes]], limit: int) -> Iterator[Ready]:
    """Merge dense neighbours, if they are many."""
    if not loose:
        return
    if len(loose) < _MANY:
        for header, body in loose:
            yield Ready(header, body, header.base_offset, header.last_offset, header.partition_leader_epoch)
        return
    epoch = loose[-1][0].partition_leader_epoch
    for built in rebuild(loose, max_bytes=limit, wanted_from=loose[0][0].base_offset):
        yield Ready(built.header, built.body, built.first_offset, built.last_offset, epoch)
