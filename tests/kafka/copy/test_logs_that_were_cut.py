"""Logs that lost their ends, as after an unclean leader election: on either side, and noticed on both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mirrorless.batches.header import scan
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from tests.kafka.copy.test_gaps import create_again
from tests.kafka.copy.test_resume_at_target import write_progress
from tests.support.world import World, fill, read, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.copy.partition.lease_rows import Report


@pytest.fixture(scope="module")
def own_clusters() -> Iterator[dict[str, EmbeddedCluster]]:
    with start_clusters([ClusterSpec(name=name) for name in ("cut-source", "cut-target")]) as started:
        yield started


@pytest.fixture
def world(own_clusters: dict[str, EmbeddedCluster], tmp_path: Path) -> World:
    return World(own_clusters["cut-source"], own_clusters["cut-target"], tmp_path)


def cut(cluster: EmbeddedCluster, topic: str, offset: int) -> None:
    """Kill the broker, cut a partition's log at a batch that begins at `offset`, and start the broker again."""
    cluster.kill_broker(1)
    (segment,) = Path(cluster.directory).rglob(f"{topic}-0/*.log")
    (at,) = [at for header, at in scan(segment.read_bytes()) if header.base_offset == offset]
    with segment.open("r+b") as file:
        file.truncate(at)
    cluster.start_broker(1)


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def fill_in_tens(cluster: EmbeddedCluster, topic: str, records: list[bytes]) -> None:
    for at in range(0, len(records), 10):
        fill(cluster, topic, records[at : at + 10], linger_ms=300)


def copy_of(world: World, topic: str) -> Report:
    (report,) = [report for report in world.copy() if report.topic == topic]
    return report


def test_the_sources(world: World) -> None:
    """It has grown past the place: only the leader epochs tell."""
    more = 100
    topic = world.topic()
    fill_in_tens(world.source, topic, numbers(0, 100))
    world.copy()
    cut(world.source, topic, 60)
    fill(world.source, topic, numbers(1_000, 1_000 + more))
    for _ in range(2):
        report = copy_of(world, topic)
        assert report.state == "halted"
        assert report.error == (
            f"{topic}-0 at offset 60: the source's log was truncated at 60 and written again from there; "
            "set mirrorless.on.gap=continue to skip the gap, or run `mirrorless offsets reset` to restart the topic"
        )

    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records, report.gaps) == ("caught up", more, 1)
    assert values(read(world.target, world.remote(topic))[0]) == numbers(0, 100) + numbers(1_000, 1_000 + more)


@pytest.mark.nightly
def test_the_targets(world: World) -> None:
    topic = world.topic()
    fill_in_tens(world.source, topic, numbers(0, 100))
    world.copy()
    fill_in_tens(world.source, topic, numbers(100, 200))
    world.copy()
    cut(world.target, world.remote(topic), 100)
    report = copy_of(world, topic)
    assert report.state == "halted"
    assert report.error is not None
    assert "the remote partition ends at 100, before the acknowledged record 199" in report.error

    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records) == ("caught up", 100)
    assert world.assert_equal(topic) == 200


@pytest.mark.nightly
def test_what_was_cut_ahead_of_the_copy_is_no_reason_to_jump_there(world: World) -> None:
    """The progress may say a leader epoch that is newer than its record's, never an older one."""
    topic = world.topic()
    fill(world.source, topic, numbers(0, 5))
    world.copy()
    fill(world.source, topic, numbers(5, 10))
    world.source.stop_broker(1)
    world.source.start_broker(1)
    fill(world.source, topic, numbers(10, 20), linger_ms=300)
    (segment,) = Path(world.source.directory).rglob(f"{topic}-0/*.log")
    newer = {header.base_offset: header.partition_leader_epoch for header, _ in scan(segment.read_bytes())}[10]
    progress = b'{"offset":4,"sequence":5,"epoch":0,"downstream":4,"leaderEpoch":%d}' % newer
    write_progress(world, topic, progress)
    cut(world.source, topic, 10)
    fill(world.source, topic, numbers(1_000, 1_010))
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records, report.gaps) == ("caught up", 15, 1)
    assert values(read(world.target, world.remote(topic))[0]) == numbers(0, 10) + numbers(1_000, 1_010)


def halted_at_60(world: World) -> str:
    """A topic of which 100 records were copied, and that was cut at 60 and grew past that again."""
    topic = world.topic()
    fill_in_tens(world.source, topic, numbers(0, 100))
    world.copy()
    cut(world.source, topic, 60)
    fill(world.source, topic, numbers(1_000, 1_100))
    assert copy_of(world, topic).state == "halted"
    return topic


@pytest.mark.nightly
def test_what_the_target_lost_besides_does_not_hide_the_cut(world: World) -> None:
    topic = halted_at_60(world)
    write_progress(world, topic, b'{"offset":99,"sequence":110,"epoch":0,"downstream":109}')
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records, report.gaps) == ("caught up", 100, 1)
    assert values(read(world.target, world.remote(topic))[0]) == numbers(0, 100) + numbers(1_000, 1_100)


@pytest.mark.nightly
def test_a_cut_that_was_halted_at_is_not_one_of_a_topic_that_was_created_again(world: World) -> None:
    topic = halted_at_60(world)
    create_again(world.source, topic)
    fill(world.source, topic, numbers(2_000, 2_200))
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records, report.gaps) == ("caught up", 200, 1)


def test_a_log_that_does_not_know_what_was_read_before_is_another_one(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, numbers(0, 100))
    world.copy()
    write_progress(world, topic, b'{"offset":99,"sequence":100,"epoch":0,"downstream":99,"leaderEpoch":99}')
    fill(world.source, topic, numbers(100, 110))
    report = copy_of(world, topic)
    assert (report.state, report.records) == ("halted", 0)
    assert "the source's log does not know the leader epoch 99 that was read before" in str(report.error)
    world.write_settings(**{"mirrorless.on.gap": "continue"})
    report = copy_of(world, topic)
    assert (report.state, report.records, report.gaps) == ("caught up", 10, 1)
    assert world.assert_equal(topic) == 110
