"""Heartbeats, checkpoints and offset syncs are MirrorMaker 2's, byte for byte."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirrorless.formats import Checkpoint, Heartbeat, Malformed, OffsetSync

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
OFFSET = st.integers(0, 2**63 - 1)
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def test_the_examples_of_the_reference() -> None:
    beat = Heartbeat(source="source-1", target="target-2", timestamp_ms=1234567890)
    assert beat.key() == bytes.fromhex("00 08 73 6f 75 72 63 65 2d 31 00 08 74 61 72 67 65 74 2d 32")
    assert beat.value() == bytes.fromhex("00 00 00 00 00 00 49 96 02 d2")

    checkpoint = Checkpoint(
        group="group-1", topic="topic-2", partition=3, upstream=4, downstream=5, metadata="metadata-6"
    )
    assert checkpoint.key() == bytes.fromhex("00 07 67 72 6f 75 70 2d 31 00 07 74 6f 70 69 63 2d 32 00 00 00 03")
    assert checkpoint.value() == bytes.fromhex(
        "00 00 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 05 00 0a 6d 65 74 61 64 61 74 61 2d 36"
    )
    empty = Checkpoint(group="g", topic="t", partition=0, upstream=4, downstream=5)
    assert empty.value() == bytes.fromhex("0000 0000000000000004 0000000000000005 0000")

    sync = OffsetSync(topic="topic-1", partition=2, last_upstream=3, last_downstream=4)
    assert sync.key() == bytes.fromhex("00 07 74 6f 70 69 63 2d 31 00 00 00 02")
    assert sync.value() == bytes.fromhex("00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 04")


def test_the_lines_of_kafkas_formatters() -> None:
    assert (
        Heartbeat(source="S", target="T", timestamp_ms=7).text
        == "Heartbeat{sourceClusterAlias=S, targetClusterAlias=T, timestamp=7}"
    )
    assert (
        Checkpoint(group="G", topic="a.t", partition=1, upstream=2, downstream=3, metadata="M").text
        == "Checkpoint{consumerGroupId=G, topicPartition=a.t-1, upstreamOffset=2, downstreamOffset=3, metadata=M}"
    )
    assert (
        OffsetSync(topic="t", partition=1, last_upstream=2, last_downstream=3, run=2, block=0).text
        == "OffsetSync{topicPartition=t-1, upstreamOffset=2, downstreamOffset=3}"
    )


def test_our_additions_stand_behind_what_other_readers_read() -> None:
    plain = OffsetSync(topic="t", partition=0, last_upstream=9, last_downstream=9)
    ours = OffsetSync(topic="t", partition=0, last_upstream=9, last_downstream=9, run=10, block=3)
    assert ours.key() == plain.key() + bytes.fromhex("0000000000000003")
    assert ours.value() == plain.value() + bytes.fromhex("000000000000000a")
    checkpoint = Checkpoint(group="g", topic="t", partition=0, upstream=4, downstream=5, metadata="m")
    committed = replace(checkpoint, committed=900)
    assert (committed.key(), committed.text) == (checkpoint.key(), checkpoint.text)
    assert committed.value() == checkpoint.value() + bytes.fromhex("0000000000000384 00")
    assert replace(checkpoint, returns=True).value() == checkpoint.value() + bytes.fromhex("ffffffffffffffff 01")


@given(NAME, NAME, INT64)
def test_heartbeats_survive_the_way_there_and_back(source: str, target: str, timestamp_ms: int) -> None:
    beat = Heartbeat(source=source, target=target, timestamp_ms=timestamp_ms)
    assert Heartbeat.parse(beat.key(), beat.value()) == beat
    assert Heartbeat.parse(beat.key() + b"x", beat.value() + b"more") == beat


@given(
    st.builds(Checkpoint, group=NAME, topic=NAME, partition=INT32, upstream=INT64, downstream=INT64, metadata=NAME),
    st.none() | OFFSET,
    st.booleans(),
)
def test_checkpoints_survive_the_way_there_and_back(
    checkpoint: Checkpoint, committed: int | None, returns: bool
) -> None:
    ours = replace(checkpoint, committed=committed, returns=returns)
    assert Checkpoint.parse(ours.key(), ours.value()) == ours
    assert Checkpoint.parse(ours.key() + b"x", ours.value() + b"more") == checkpoint


@given(NAME, INT32, OFFSET, OFFSET, st.data())
def test_offset_syncs_survive_the_way_there_and_back(
    topic: str, partition: int, upstream: int, downstream: int, data: st.DataObject
) -> None:
    run = data.draw(st.none() | st.integers(1, min(upstream, downstream) + 1))
    block = data.draw(st.none() | st.integers(0, 1023))
    sync = OffsetSync(
        topic=topic, partition=partition, last_upstream=upstream, last_downstream=downstream, run=run, block=block
    )
    assert OffsetSync.parse(sync.key(), sync.value()) == sync


@given(st.binary(max_size=40) | st.none(), st.binary(max_size=40) | st.none())
def test_bytes_that_are_none_of_these_are_told_and_never_raised(key: bytes | None, value: bytes | None) -> None:
    for kind in (Heartbeat, Checkpoint, OffsetSync):
        read = kind.parse(key, value)
        assert isinstance(read, (kind, Malformed))


@pytest.mark.parametrize("cut", range(1, 13))
def test_what_is_cut_short_is_malformed(cut: int) -> None:
    sync = OffsetSync(topic="topic-1", partition=2, last_upstream=3, last_downstream=4)
    assert isinstance(OffsetSync.parse(sync.key()[:-cut], sync.value()), Malformed)
    assert isinstance(OffsetSync.parse(sync.key(), sync.value()[:-cut]), Malformed)
    checkpoint = Checkpoint(group="g", topic="t", partition=3, upstream=4, downstream=5, metadata="m")
    assert isinstance(Checkpoint.parse(checkpoint.key(), checkpoint.value()[:-cut]), Malformed)


def test_a_negative_length_and_a_run_below_zero_are_malformed() -> None:
    assert isinstance(Heartbeat.parse(b"\xff\xff", b"\0" * 10), Malformed)
    bad = OffsetSync(topic="t", partition=0, last_upstream=4, last_downstream=9, run=6)
    assert isinstance(OffsetSync.parse(bad.key(), bad.value()), Malformed)


def test_a_text_that_kafka_could_not_read_back_is_refused() -> None:
    with pytest.raises(ValueError, match="32768 bytes"):
        Checkpoint(group="g", topic="t", partition=0, upstream=0, downstream=0, metadata="x" * 32768).value()
