"""Progress records are Connect's to the byte, and whatever else lies in that topic is left alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from mirrorless.errors import GapKind
from mirrorless.progress.producer_ids import announcer_id, producer_id
from mirrorless.progress.records import (
    Announcement,
    Halt,
    Known,
    NotStopped,
    Progress,
    SourcePartition,
    parse,
)

HERE = SourcePartition("A", "t", 0)


def test_the_key_is_that_of_the_reference() -> None:
    assert HERE.progress_key() == b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]'


def test_the_key_lands_on_the_partition_of_the_reference() -> None:
    assert (murmur2(HERE.progress_key()) & 0x7FFFFFFF) % 25 == 7


def test_the_value_begins_as_connects_does() -> None:
    progress = Progress(last_offset=41, sequence=42, epoch=1, last_downstream=40)
    assert progress.to_bytes() == b'{"offset":41,"sequence":42,"epoch":1,"downstream":40}'
    assert Progress(last_offset=41).to_bytes() == b'{"offset":41}'


@given(
    st.integers(-1, 1 << 62), st.integers(0, (1 << 31) - 1), st.integers(0, 32767), st.integers(-1, 1 << 62), st.text()
)
def test_progress_survives_the_round_trip(offset: int, sequence: int, epoch: int, downstream: int, topic: str) -> None:
    where = SourcePartition("A", topic, 3)
    progress = Progress(last_offset=offset, sequence=sequence, epoch=epoch, last_downstream=downstream)
    assert parse(where.progress_key(), progress.to_bytes()) == (where, progress)
    announcement = Announcement(epoch=epoch, start=offset, downstream=downstream, reason="first copy")
    assert parse(where.announcement_key(epoch), announcement.to_bytes()) == (where, announcement)


def test_what_is_said_besides_survives_the_round_trip() -> None:
    said = Announcement(
        epoch=3, start=7, downstream=9, reason="cut", topic_id="x", after=(2, 5), behind=40, source_end=8
    )
    assert parse(HERE.announcement_key(3), said.to_bytes()) == (HERE, said)
    for more in ({}, {"records": 4}, {"position": 6}, {"records": 0, "position": 0}):
        halt = Halt(epoch=3, offset=7, kind=GapKind.TRUNCATED, reason="cut", **more)
        assert parse(HERE.halt_key(), halt.to_bytes()) == (HERE, halt)


def test_a_halt_stands_until_a_later_epoch_begins_or_mirrormaker_copies_on() -> None:
    halt = Halt(epoch=3, offset=7, kind=GapKind.RETENTION, reason="gone", position=6)
    assert halt.stands(newest_epoch=3, progress=Progress(5, 6, 3, 5))
    assert not halt.stands(newest_epoch=4, progress=Progress(5, 6, 3, 5))
    assert halt.stands(newest_epoch=3, progress=Progress(last_offset=5))
    assert not halt.stands(newest_epoch=3, progress=Progress(last_offset=6))
    # Its position was beyond the log: it went back to the beginning.
    assert not halt.stands(newest_epoch=3, progress=Progress(last_offset=2))


def test_a_stop_is_kept_and_deleted_under_a_key_of_its_own() -> None:
    stop = Halt(epoch=1, offset=7, reason="rotted")
    assert parse(HERE.stop_key(), stop.to_bytes()) == (HERE, stop)
    assert parse(HERE.stop_key(), None) == (HERE, NotStopped())
    known = Known(progress=Progress(6, 7, 1, 6))
    known.take(stop)
    assert Known.from_json(known.to_json()) == known
    assert known.shown_halt == stop
    known.take(NotStopped())
    assert (known.progress, known.stop) == (Progress(6, 7, 1, 6), None)


def test_a_stop_stands_until_something_from_there_on_is_copied() -> None:
    stop = Halt(epoch=1, offset=7, reason="rotted")
    assert stop.stands(newest_epoch=1, progress=None)
    assert stop.stands(newest_epoch=1, progress=Progress(6, 7, 1, 6))
    assert not stop.stands(newest_epoch=1, progress=Progress(7, 8, 1, 7))
    assert not stop.stands(newest_epoch=2, progress=Progress(6, 7, 1, 6))
    # Of a topic that was created again, whose epoch has no progress yet.
    assert stop.stands(newest_epoch=1, progress=Progress(99, 100, 0, 99))


def test_mirrormakers_record_has_only_an_offset() -> None:
    assert parse(HERE.progress_key(), b'{"offset":7}') == (HERE, Progress(last_offset=7))


def test_a_tombstone_is_told_from_silence() -> None:
    assert parse(HERE.progress_key(), None) == (HERE, None)


def test_progress_that_a_suspended_process_writes_late_is_ignored() -> None:
    known, newer = Known(), Progress(last_offset=58, sequence=36, epoch=1)
    for said in (newer, Progress(last_offset=5, sequence=6, epoch=1), Progress(last_offset=90, sequence=6, epoch=0)):
        known.take(said)
        assert known.progress == newer
    known.take(Progress(last_offset=3, sequence=1, epoch=2))
    assert known.progress == Progress(last_offset=3, sequence=1, epoch=2)


def test_progress_of_mirrormaker_follows_what_was_written_before() -> None:
    known = Known()
    for said in (
        Progress(last_offset=58, sequence=36, epoch=1),
        Progress(last_offset=5),
        Progress(last_offset=3),
        None,
    ):
        known.take(said)
        assert known.progress == said


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b'{"offset":1}'),
        (b"\xff\xfe", b'{"offset":1}'),
        (HERE.progress_key(), b'{"offset":"soon"}'),
        (HERE.progress_key(), b"[]"),
        (HERE.progress_key(), b'{"offset":1,"sequence":2,"epoch":null}'),
        (b'["MirrorCheckpointConnector",{"partition":0,"topic":"A.t","group":"g"}]', b'{"offset":0}'),
        (b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]', b'{"offset":0}'),
        (json.dumps(["MirrorSourceConnector"]).encode(), b'{"offset":0}'),
    ],
)
def test_everything_else_in_the_topic_is_left_alone(key: bytes | None, value: bytes) -> None:
    assert parse(key, value) is None


@given(st.text(max_size=30), st.text(max_size=30), st.integers(0, 10_000), st.integers(0, 32767))
def test_producer_ids_are_above_all_that_brokers_hand_out(cluster: str, topic: str, partition: int, epoch: int) -> None:
    ids = {producer_id(cluster, topic, partition), announcer_id(cluster, topic, partition, epoch)}
    assert len(ids) == 2
    assert all(1 << 61 <= one < 1 << 62 for one in ids)


def test_producer_ids_never_change() -> None:
    # They are in the brokers' logs: another hash would orphan every copy there is.
    assert producer_id("x5yNnuaSTvWP3RWLAcbRMg", "orders", 3) == 3157837707277660700
