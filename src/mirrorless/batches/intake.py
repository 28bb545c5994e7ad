"""Turns a fetch of one partition into batches that can be stamped: most of them unchanged, the others rebuilt.

Offsets are upstream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.batches.batch_filter import AbortedTransactions, fits_as_it_is, refusal
from mirrorless.batches.header import CONTROL, TRANSACTIONAL, BatchHeader, FormatError, scan
from mirrorless.batches.legacy import convert, legacy_end
from mirrorless.batches.passthrough import Ready, is_tiny, read_before, unopened
from mirrorless.batches.producers import NO_OPPOSITE, LoopedBatch, OppositeCopy
from mirrorless.batches.rebuild import merge, rebuild
from mirrorless.batches.single_record import is_lone, take_lone
from mirrorless.batches.stamp import body_of, is_intact

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from mirrorless.batches.rebuild import Rebuilt
    from mirrorless.batches.single_record import Lone

_MANY = 4
_LONG_RUN = 16
_REBUILT_BYTES = 256 << 10
_MAGIC_AT = 16


class PassedTo(NamedTuple):
    """Nothing is left to copy before `offset`: it was copied before, or was a marker, aborted, or compacted away.

    `skipped` is the number of records that a copy had appended, and that are skipped.
    """

    offset: int
    leader_epoch: int = -1
    skipped: int = 0


class _IntakeRules(NamedTuple):
    """Which batches are rebuilt: larger than `max_batch_bytes`, or to be merged into batches of `rebuilt_bytes`.

    `leader_epoch` is the source's at the end of the fetch.
    """

    goes_among_others: Callable[[BatchHeader], bool]
    max_batch_bytes: int | None
    rebuilt_bytes: int
    leader_epoch: int


class _Run(NamedTuple):
    """Headers of batches, each with the byte where it begins, and the single-record batches after them."""

    plain: list[tuple[BatchHeader, int]]
    lone: Lone | None

    @property
    def leader_epoch(self) -> int:
        """The source's at the run's end."""
        return (self.plain[-1][0] if self.lone is None else self.lone.last).partition_leader_epoch


def take_in(
    records: bytes | memoryview,
    aborted: Iterable[tuple[int, int]],
    *,
    wanted_from: int,
    until: int | None,
    max_batch_bytes: int | None,
    verify: bool = False,
    views: bool = False,
    merge_below: int = 0,
    opposite: OppositeCopy = NO_OPPOSITE,
    skipped: frozenset[int] = frozenset(),
) -> Iterator[Ready | PassedTo]:
    """Yield what is copied, in order, from offset `wanted_from` up to `until`; no batch above `max_batch_bytes`.

    Checksums are compared for unusual batches, with `verify` for all; otherwise the target compares them. A batch with
    a single record that is larger is yielded unchanged. Tiny batches are coalesced if there are many of them: a produce
    request has one batch per partition, so each would cost a round trip. `merge_below` merges batches of fewer
    bytes into batches of about that size, where a round trip costs more than opening them. With `views`,
    bodies may be views of `records`. Batches of the producers `skipped` are passed like aborted ones. Raises
    `FormatError` for what cannot be copied, and `LoopedBatch` for batches
    that the `opposite` copy appended, after everything before it.
    """
    limit = max_batch_bytes if max_batch_bytes is not None else max(_REBUILT_BYTES, merge_below)
    if len(records) > _MAGIC_AT and records[_MAGIC_AT] < 2:
        end = legacy_end(records)
        for built in convert(records[:end], max_bytes=limit, wanted_from=wanted_from):
            yield Ready(built.header, built.body, built.first_offset, built.last_offset)
            wanted_from = built.last_offset + 1
        records = records[end:]
    begins, epoch_before = read_before(records, wanted_from=wanted_from)
    records = records[begins:]
    skipped_records = 0
    if not merge_below:
        whole = unopened(
            records,
            wanted_from=wanted_from,
            until=until,
            max_batch_bytes=max_batch_bytes,
            verify=verify,
            views=views,
            opposite=opposite,
            skipped=skipped,
        )
        yield from whole.batches
        if whole.end:
            wanted_from, epoch_before, skipped_records = whole.next_offset, whole.leader_epoch, whole.skipped
        if whole.end and whole.end == len(records):
            if skipped_records or not whole.batches or whole.batches[-1].last_offset + 1 < wanted_from:
                yield PassedTo(wanted_from, epoch_before, skipped_records)
            return
        records = records[whole.end :]
    runs, failure = _runs(records, wanted_from, until, opposite, skipped)
    if skipped:
        headers = (header for run in runs for header, _ in run.plain)
        skipped_records += sum(
            header.record_count
            for header in headers
            if header.producer_id in skipped and _is_wanted(header, wanted_from, until)
        )
    leader_epoch = runs[-1].leader_epoch if runs else epoch_before
    coalesce = any(run.lone for run in runs) or sum(_tiny(header) for run in runs for header, _ in run.plain) >= _MANY

    def goes_among_others(header: BatchHeader) -> bool:
        return header.size_bytes < merge_below or (coalesce and _tiny(header))

    rules = _IntakeRules(goes_among_others, max_batch_bytes, limit, leader_epoch)
    follower = AbortedTransactions(aborted)
    reached = wanted_from
    for run in runs:
        batches = _data_batches(records, run.plain, follower, wanted_from=wanted_from, until=until, skipped=skipped)
        reached, worse = yield from _one_by_one(batches, reached, rules)
        if worse is not None:
            failure = worse
            break
        if run.lone is not None:
            yield from _ready(merge([(0, run.lone.records)], max_bytes=limit), leader_epoch)
            reached = run.lone.last.next_offset
    yield PassedTo(reached, leader_epoch, skipped_records)
    if failure is not None:
        raise failure


def _tiny(header: BatchHeader) -> bool:
    return is_tiny(header.size_bytes, header.attributes, header.record_count)


def _one_by_one(
    batches: Iterator[tuple[int, tuple[BatchHeader, bytes] | None]],
    reached: int,
    rules: _IntakeRules,
) -> Generator[Ready, None, tuple[int, FormatError | None]]:
    """Yield batches unchanged or rebuilt; returns the offset after them, and the error of the next one."""
    loose: list[tuple[BatchHeader, bytes]] = []
    loose_from = reached
    failure: FormatError | None = None
    while True:
        try:
            passed, batch = next(batches)
        except StopIteration:
            break
        except FormatError as error:
            failure = error
            break
        if batch is not None:
            header, body = batch
            whole = fits_as_it_is(header, wanted_from=reached, max_bytes=rules.max_batch_bytes)
            if whole and not rules.goes_among_others(header):
                if loose:
                    yield from _together(loose, loose_from, rules)
                    loose = []
                loose_from = header.next_offset
                yield Ready(header, body, header.base_offset, header.last_offset, rules.leader_epoch)
            else:
                loose.append(batch)
        reached = passed
    yield from _together(loose, loose_from, rules)
    return reached, failure


def _together(loose: list[tuple[BatchHeader, bytes]], wanted_from: int, rules: _IntakeRules) -> Iterator[Ready]:
    """Rebuild batches; a tiny batch between others that are not tiny has nothing to be merged with."""
    if len(loose) == 1:
        ((header, body),) = loose
        if fits_as_it_is(header, wanted_from=wanted_from, max_bytes=rules.max_batch_bytes):
            yield Ready(header, body, header.base_offset, header.last_offset, rules.leader_epoch)
            return
    yield from _ready(rebuild(loose, max_bytes=rules.rebuilt_bytes, wanted_from=wanted_from), rules.leader_epoch)


def _runs(
    records: bytes | memoryview, wanted_from: int, until: int | None, opposite: OppositeCopy, skipped: frozenset[int]
) -> tuple[list[_Run], FormatError | LoopedBatch | None]:
    """Split a fetch into long runs of single-record batches, all of them wanted, and what is between them.

    The second value is the error that ended them early, if any.
    """
    runs: list[_Run] = []
    plain: list[tuple[BatchHeader, int]] = []
    log = b""
    tried = start = 0
    failure: FormatError | LoopedBatch | None = None
    while True:
        lone: Lone | None = None
        try:
            for found in scan(records, start):
                if opposite.made(found[0]) and _is_wanted(found[0], wanted_from, until):
                    failure = LoopedBatch(found[0].base_offset)
                    break
                plain.append(found)
                if len(plain) < 2 or plain[-2][1] < tried or not (is_lone(found[0]) and is_lone(plain[-2][0])):
                    continue
                log = log or bytes(records)
                run = take_lone(
                    log, plain[-2][1], wanted_from=wanted_from, until=until, opposite=opposite, skipped=skipped
                )
                tried = found[1] if run is None else run.end
                if run is not None and len(run.records.rests) >= _LONG_RUN:
                    lone = run
                    break
        except FormatError as error:
            failure = error
        if lone is None:
            return [*runs, _Run(plain, None)] if plain else runs, failure
        runs.append(_Run(plain[:-2], lone))
        plain, start = [], lone.end


def _is_wanted(header: BatchHeader, wanted_from: int, until: int | None) -> bool:
    return header.next_offset > wanted_from and (until is None or header.base_offset < until)


def _ready(rebuilt: Iterable[Rebuilt], leader_epoch: int) -> Iterator[Ready]:
    for built in rebuilt:
        yield Ready(built.header, built.body, built.first_offset, built.last_offset, leader_epoch)


def _data_batches(
    records: bytes | memoryview,
    headers: Iterable[tuple[BatchHeader, int]],
    aborted: AbortedTransactions,
    *,
    wanted_from: int,
    until: int | None,
    skipped: frozenset[int],
) -> Iterator[tuple[int, tuple[BatchHeader, bytes] | None]]:
    """Yield the offset after each batch, with the batch if its records are committed and not `skipped`.

    Checks the checksum of every batch that is not skipped.
    """
    for header, at in headers:
        if until is not None and header.base_offset >= until:
            yield max(until, wanted_from), None
            return
        if header.producer_id in skipped and header.last_offset_delta >= 0:
            if header.next_offset > wanted_from:
                yield header.next_offset, None
            continue
        body = body_of(records, at, header)
        if not is_intact(records, at, header, body):
            reason = f"the batch {header.base_offset} to {header.last_offset} does not match its checksum"
            raise _unfit(reason, header)
        dropped = header.attributes & (TRANSACTIONAL | CONTROL) and aborted.drops(header, records, at)
        if header.next_offset <= wanted_from:
            continue
        if dropped:
            yield header.next_offset, None
            continue
        if (reason_against := refusal(header)) is not None:
            raise _unfit(reason_against, header)
        yield header.next_offset, (header, body)


def _unfit(reason: str, header: BatchHeader) -> FormatError:
    behind = header.next_offset if header.last_offset_delta >= 0 else None
    return FormatError(reason, offset=header.base_offset, next_offset=behind, size_bytes=header.size_bytes)
