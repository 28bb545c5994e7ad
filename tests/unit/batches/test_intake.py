"""Whatever a fetch brings, what goes over is every wanted record, once and in order, in dense batches."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from mirrorless.batches.checksum import checksum
from mirrorless.batches.header import BatchHeader, FormatError, scan
from mirrorless.batches.intake import PassedTo, take_in
from mirrorless.batches.passthrough import Ready
from mirrorless.batches.producers import LoopedBatch, OppositeCopy
from mirrorless.batches.stamp import stamp
from mirrorless.errors import without_frames

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=12)
# Long runs of one record a batch among others, which go another way.
MIXED = st.lists(st.just([1] * 20) | st.lists(st.integers(1, 3), max_size=20), min_size=1, max_size=5).map(
    lambda runs: [size for run in runs for size in run] or [1]
)


def log_of(sizes: list[int], *, value_bytes: int = 10) -> tuple[bytes, list[bytes]]:
    """Batches of so many records each, from offset 0 on; and the values, whose number is their offset."""
    log = b""
    values: list[bytes] = []
    for size in sizes:
        builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
        base = len(values)
        for number in range(size):
            values.append(b"%d " % (base + number) * value_bytes)
            builder.append(number, timestamp=1_000 + base + number, key=None, value=values[-1], headers=[])
        log += BatchHeader.parse(batch := bytes(builder.build()))._replace(base_offset=base).pack() + batch[61:]
    return log, values


def values_of(taken: list[Ready | PassedTo]) -> list[bytes]:
    """Values of all that goes over, read by another implementation, which also checks what was stamped."""
    found = []
    for ready in taken:
        if isinstance(ready, Ready):
            batch = DefaultRecordBatch(
                stamp(ready.header, ready.body, producer_id=1 << 61, producer_epoch=0, base_sequence=0).whole()
            )
            assert batch.validate_crc()
            records = list(batch)
            assert [record.offset for record in records] == list(range(len(records)))
            assert len(records) == ready.header.record_count == ready.header.last_offset_delta + 1
            found += [record.value for record in records]
    return found


def reached(taken: list[Ready | PassedTo]) -> tuple[int, int]:
    """Where the copy goes on, and the leader epoch of what is before that."""
    last = taken[-1]
    return (last.offset if isinstance(last, PassedTo) else last.last_offset + 1), last.leader_epoch


@given(SIZES | MIXED, st.sampled_from([10, 400]), st.data())
def test_everything_from_the_wanted_offset_on(sizes: list[int], value_bytes: int, data: st.DataObject) -> None:
    log, values = log_of(sizes, value_bytes=value_bytes)
    start = data.draw(st.integers(0, len(values)))
    taken = list(
        take_in(log, [], wanted_from=start, until=None, max_batch_bytes=data.draw(st.none() | st.integers(200, 2_000)))
    )
    assert values_of(taken) == values[start:]
    assert reached(taken) == (len(values), 0)


@given(SIZES | MIXED, st.integers(0, 500), st.sampled_from([10, 400]))
def test_a_bounded_copy_takes_no_batch_from_its_end_on(sizes: list[int], until: int, value_bytes: int) -> None:
    log, values = log_of(sizes, value_bytes=value_bytes)
    starts = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    end = next((start for start in starts if start >= until), len(values))
    taken = list(take_in(log, [], wanted_from=0, until=until, max_batch_bytes=None))
    assert values_of(taken) == values[:end]


def test_large_batches_go_over_as_they_came() -> None:
    log, values = log_of([100, 100, 100], value_bytes=40)
    taken = list(take_in(log, [], wanted_from=0, until=None, max_batch_bytes=None))
    assert b"".join(one.header.pack() + one.body for one in taken if isinstance(one, Ready)) == log
    assert values_of(taken) == values


def test_many_tiny_batches_become_one() -> None:
    log, values = log_of([1] * 300)
    taken = list(take_in(log, [], wanted_from=0, until=None, max_batch_bytes=None))
    assert len(taken) == 2
    assert values_of(taken) == values


@pytest.mark.parametrize("unusual", [0x08, 0x10, 0x40])
def test_what_comes_behind_an_unusual_batch_goes_over_too(unusual: int) -> None:
    log, values = log_of([100] * 5, value_bytes=40)
    header, at = list(scan(log))[2]
    covered = header._replace(attributes=header.attributes | unusual)
    body = log[at + 61 : at + header.size_bytes]
    changed = covered._replace(checksum=checksum(covered.pack()[21:], body))
    taken = list(
        take_in(
            log[:at] + changed.pack() + body + log[at + header.size_bytes :],
            [],
            wanted_from=0,
            until=None,
            max_batch_bytes=None,
        )
    )
    assert values_of(taken) == values


def test_a_tiny_batch_that_stands_alone_is_not_opened_though_there_are_many() -> None:
    log, values = log_of([100, 5] * 6, value_bytes=40)
    taken = list(take_in(log, [], wanted_from=0, until=None, max_batch_bytes=None))
    assert b"".join(one.header.pack() + one.body for one in taken if isinstance(one, Ready)) == log
    assert values_of(taken) == values


def test_a_bad_batch_among_many_of_one_record() -> None:
    log, values = log_of([1] * 100)
    at = log.index(values[42])
    taken: list[Ready | PassedTo] = []
    with pytest.raises(FormatError, match="the batch 42 to 42 does not match its checksum"):
        taken.extend(take_in(log[:at] + b"\xff" + log[at + 1 :], [], wanted_from=0, until=None, max_batch_bytes=None))
    assert values_of(taken) == values[:42]
    assert taken[-1] == PassedTo(42, 0)


class _Answer(bytearray):
    """Memory that can be watched."""


def test_an_error_that_is_kept_does_not_keep_the_answer() -> None:
    log, _ = log_of([100] * 3, value_bytes=40)
    answer = _Answer(log[:-1] + b"\xff")
    watched = weakref.ref(answer)

    def kept(records: memoryview) -> FormatError:
        try:
            list(take_in(records, [], wanted_from=0, until=None, max_batch_bytes=None, verify=True))
        except FormatError as error:
            return without_frames(error)
        raise AssertionError

    gc.disable()
    try:
        error = kept(memoryview(answer))
        del answer
        assert watched() is None
        assert error.offset == 200
    finally:
        gc.enable()


def test_a_damaged_batch_that_is_not_opened_does_not_become_a_good_one() -> None:
    log, values = log_of([100] * 3, value_bytes=40)
    at = log.index(values[150])
    damaged = log[:at] + b"\xff" + log[at + 1 :]
    first, second, third = list(take_in(damaged, [], wanted_from=0, until=None, max_batch_bytes=None))
    assert values_of([first, third]) == values[:100] + values[200:]
    assert isinstance(second, Ready)
    stamped = stamp(second.header, second.body, producer_id=1 << 61, producer_epoch=0, base_sequence=0).whole()
    assert not DefaultRecordBatch(stamped).validate_crc()
    taken: list[Ready | PassedTo] = []
    with pytest.raises(FormatError, match="the batch 100 to 199 does not match its checksum") as caught:
        taken.extend(take_in(damaged, [], wanted_from=0, until=None, max_batch_bytes=None, verify=True))
    assert caught.value.offset == 100
    assert values_of(taken) == values[:100]
    whole = list(take_in(log, [], wanted_from=0, until=None, max_batch_bytes=None, verify=True))
    assert values_of(whole) == values


@pytest.mark.parametrize("views", [True, False])
def test_bodies_are_views_where_they_may_be(*, views: bool) -> None:
    log, values = log_of([100] * 3, value_bytes=40)
    taken = list(take_in(memoryview(log), [], wanted_from=0, until=None, max_batch_bytes=None, views=views))
    assert values_of(taken) == values
    assert [isinstance(one.body, memoryview) for one in taken if isinstance(one, Ready)] == [views] * 3


def test_large_batches_of_one_record_go_over_as_they_came_also_among_tiny_ones() -> None:
    small, values = log_of([1] * 20)
    large, more = log_of([1] * 20, value_bytes=10_000)
    at, moved = 0, b""
    for number in range(20):
        header = BatchHeader.parse(large, at)
        moved += header._replace(base_offset=20 + number).pack() + large[at + 61 : at + header.size_bytes]
        at += header.size_bytes
    taken = list(take_in(small + moved, [], wanted_from=0, until=None, max_batch_bytes=None))
    assert b"".join(one.header.pack() + one.body for one in taken[1:] if isinstance(one, Ready)) == moved
    assert values_of(taken) == values + more


def test_batches_of_a_few_records_become_one_where_there_are_many() -> None:
    log, values = log_of([25] * 40, value_bytes=60)
    taken = list(take_in(log, [], wanted_from=0, until=None, max_batch_bytes=None))
    assert len(taken) < 6
    assert values_of(taken) == values


def test_what_came_before_a_bad_batch_goes_over_first() -> None:
    log, values = log_of([1] * 10 + [5] + [1] * 10)
    at = log.index(values[12])
    taken: list[Ready | PassedTo] = []
    with pytest.raises(FormatError, match="the batch 10 to 14 does not match its checksum") as caught:
        taken.extend(take_in(log[:at] + b"\xff" + log[at + 1 :], [], wanted_from=0, until=None, max_batch_bytes=None))
    assert caught.value.offset == 10
    assert values_of(taken) == values[:10]
    assert taken[-1] == PassedTo(10, 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_in_front_of_new_batches(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    for number in range(20):
        builder.append(number, timestamp=5, key=None, value=b"old %d" % number)
    log, values = log_of([4])
    moved = BatchHeader.parse(log)._replace(base_offset=20).pack() + log[61:]
    taken = list(take_in(bytes(builder.build()) + moved, [], wanted_from=3, until=None, max_batch_bytes=None))
    assert values_of(taken) == [b"old %d" % number for number in range(3, 20)] + values
    assert taken[-1] == PassedTo(24, 0)


def test_where_the_round_trip_limits_neighbours_become_one_batch() -> None:
    log, values = log_of([200] * 10, value_bytes=20)  # about 20 kB each
    apart = list(take_in(log, (), wanted_from=5, until=None, max_batch_bytes=None))
    together = list(take_in(log, (), wanted_from=5, until=None, max_batch_bytes=None, merge_below=768 << 10))
    assert [sum(isinstance(one, Ready) for one in taken) for taken in (apart, together)] == [10, 1]
    assert values_of(together) == values_of(apart) == values[5:]
    assert reached(together) == reached(apart)


OPPOSITE = (1 << 61) + 7
OTHER = (1 << 61) + 8


def produced_by(log: bytes, producers: dict[int, int]) -> bytes:
    """The log, with the batches at these base offsets by these producers, and checksums that say so."""
    changed = b""
    for header, at in scan(log):
        body = log[at + 61 : at + header.size_bytes]
        packed = header._replace(producer_id=producers.get(header.base_offset, -1)).pack()
        packed = header._replace(
            producer_id=producers.get(header.base_offset, -1), checksum=checksum(packed[21:], body)
        ).pack()
        changed += packed + body
    return changed


def taken_before_loop(log: bytes, *, since: int, **more: int) -> tuple[list[bytes], int | None]:
    """What goes over, and where what another flow brought back begins."""
    settings = {"wanted_from": 0, "until": None} | more
    taken: list[Ready | PassedTo] = []
    try:
        taken += take_in(log, [], max_batch_bytes=None, opposite=OppositeCopy(OPPOSITE, since), **settings)  # type: ignore[arg-type]
    except LoopedBatch as error:
        return values_of(taken), error.offset
    return values_of(taken), None


@pytest.mark.parametrize("value_bytes", [10, 6_000])
@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [1] * 60, [1] * 20 + [3] + [1] * 30])
def test_what_came_back_from_the_target_is_not_taken_and_all_before_it_is(sizes: list[int], value_bytes: int) -> None:
    log, values = log_of(sizes, value_bytes=value_bytes)
    offsets = [header.base_offset for header, _ in scan(log)]
    loop = offsets[len(offsets) // 2 + 1]
    log = produced_by(log, {offsets[1]: OPPOSITE, offsets[2]: OTHER, loop: OPPOSITE, offsets[-1]: OPPOSITE})

    assert taken_before_loop(log, since=offsets[2]) == (values[:loop], loop)
    assert taken_before_loop(log, since=offsets[2], wanted_from=2) == (values[2:loop], loop)
    assert taken_before_loop(log, since=offsets[2], until=loop) == (values[:loop], None)
    assert taken_before_loop(log, since=offsets[-1] + 1) == (values, None)
    assert taken_before_loop(log, since=0) == (values[: offsets[1]], offsets[1])


@pytest.mark.parametrize("value_bytes", [10, 6_000])
@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [1] * 60, [1] * 20 + [3] + [1] * 30])
def test_batches_of_skipped_producers_are_passed(sizes: list[int], value_bytes: int) -> None:
    log, values = log_of(sizes, value_bytes=value_bytes)
    headers = [header for header, _ in scan(log)]
    skipped = [headers[0], headers[1], headers[len(headers) // 2], headers[-1]]
    log = produced_by(log, {header.base_offset: OTHER for header in skipped})
    gone = {offset for header in skipped for offset in range(header.base_offset, header.next_offset)}
    settings = {"wanted_from": 0, "until": None, "max_batch_bytes": None}

    taken = list(take_in(log, [], skipped=frozenset({OTHER, OPPOSITE}), **settings))  # type: ignore[arg-type]

    assert values_of(taken) == [value for offset, value in enumerate(values) if offset not in gone]
    assert sum(one.skipped for one in taken if isinstance(one, PassedTo)) == len(gone)
    assert max(one.offset if isinstance(one, PassedTo) else one.last_offset + 1 for one in taken) == len(values)
    assert values_of(list(take_in(log, [], skipped=frozenset({OPPOSITE}), **settings))) == values  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [[], [100]])
def test_a_skipped_batch_that_the_cleaner_emptied_is_passed(before: list[int]) -> None:
    log, values = log_of([*before, 100], value_bytes=40)
    header, at = list(scan(log))[-1]
    empty = header._replace(producer_id=OTHER, record_count=0, length_bytes=49)
    log = log[:at] + empty._replace(checksum=checksum(empty.pack()[21:], b"")).pack()

    taken = list(take_in(log, [], wanted_from=0, until=None, max_batch_bytes=None, skipped=frozenset({OTHER})))

    assert values_of(taken) == values[: header.base_offset]
    assert taken[-1] == PassedTo(header.next_offset, 0)
