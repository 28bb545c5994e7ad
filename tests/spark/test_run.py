"""`mirrorless run` as a whole process, with a real Spark below it."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.support.both_ways import BothWays, numbered
from tests.support.feed import Feed
from tests.support.identical import assert_identical, delete_before, records_at
from tests.support.offsets import transactions
from tests.support.processes import Mirrorless
from tests.support.world import World, fill

if TYPE_CHECKING:
    from collections.abc import Callable

BACKLOG = 100_000


def copied(world: World, topic: str, partitions: int) -> int:
    """Records on the target so far."""
    consumer = Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": "test"})
    try:
        if world.remote(topic) not in consumer.list_topics(timeout=60).topics:
            return 0
        places = [TopicPartition(world.remote(topic), partition) for partition in range(partitions)]
        return sum(consumer.get_watermark_offsets(place, timeout=60)[1] for place in places)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.NOT_LEADER_FOR_PARTITION:
            return 0  # just created
        raise
    finally:
        consumer.close()


def wait_for(condition: Callable[[], bool], *, seconds: float = 150, running: Mirrorless) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert running.process.poll() is None, running.text()
        assert time.monotonic() < until, running.text()
        time.sleep(0.05)


@pytest.mark.nightly
def test_available_now_twice_in_a_row_copies_nothing_the_second_time(world: World) -> None:
    """One of the topics gets identical offsets."""
    topic, exact = world.topic(partitions=4), world.topic()
    fill(world.source, topic, (b"%d" % n for n in range(49_910)), partitions=4, compression_type="lz4")
    transactions(world.source, exact, 30, records=5, aborted_every=5)
    fill(world.source, exact, [b"%d" % n for n in range(100)])
    delete_before(world.source, exact, 130)
    wanted = len(records_at(world.source, exact)[0])
    world.tasks_max = 2
    world.write_settings(**{"mirrorless.offsets": "identical", "mirrorless.offsets.identical.topics": exact})
    with Mirrorless(world.file, "--available-now") as first:
        assert first.wait() == 0, first.text()
        (finished,) = first.lines("Finished")
        assert (finished["records"], finished["complete"]) == (49_910 + wanted, True)
        assert first.family() == []
        assert first.strays() == []
        assert first.errors() == []
        waited = [line["waiting"] for line in first.lines("Waiting")]
        assert waited[:2] == ["comparing both clusters, creating topics", "starting Spark"]
        assert "planning the first lease" in waited
    with Mirrorless(world.file, "--available-now") as second:
        assert second.wait() == 0, second.text()
        (finished,) = second.lines("Finished")
        assert (finished["records"], finished["complete"]) == (0, True)
        assert second.errors() == []
    assert world.assert_equal(topic) == 49_910
    assert assert_identical(world, exact) == wanted


@pytest.mark.nightly
def test_copies_of_the_other_direction_are_skipped(world: World) -> None:
    both = BothWays(world)
    fill(world.source, both.topic, numbered("a", 0, 300))
    fill(world.target, both.topic, numbered("b", 0, 200))
    both.copy()
    fill(world.source, both.topic, numbered("a", 300, 500))
    fill(world.target, both.topic, numbered("b", 200, 300))
    with Mirrorless(world.file, "--available-now") as running:
        assert running.wait() == 0, running.text()
    both.check(numbered("a", 0, 500), numbered("b", 0, 300))


@pytest.mark.alone
def test_a_signal_lets_what_is_in_flight_arrive_and_ends_within_five_seconds(world: World) -> None:
    topic = world.topic(partitions=4)
    with Feed(world, topic, per_second=5_000), Mirrorless(world.file) as running:
        wait_for(lambda: copied(world, topic, 4) > 10_000, running=running)
        assert len(running.family()) >= 2  # Java, and Python below it
        threads = [path for one in running.family() for path in Path(f"/proc/{one.pid}/task").iterdir()]
        assert len(threads) < 300
        asked = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        status = running.wait(10)
        assert time.monotonic() - asked < 5
        assert status == 0, running.text()
        assert running.family() == []
        assert running.strays() == []
        assert running.errors() == []
    # The progress is exact: whoever goes on has nothing to count.
    on_target = copied(world, topic, 4)
    reports = world.copy()
    assert sum(report.records for report in reports) == world.assert_equal(topic) - on_target


def test_killed_in_the_middle_and_started_again_every_record_is_there_once(world: World) -> None:
    topic = world.topic(partitions=4)
    fill(world.source, topic, (b"%d" % n for n in range(BACKLOG)), partitions=4, batch_size=1_000)
    world.tasks_max = 2
    world.write_settings(**{"mirrorless.max.bytes.per.second": "300000"})  # so that it is in the middle for long
    with Feed(world, topic, per_second=2_000):
        for _ in range(2):
            before = copied(world, topic, 4)
            with Mirrorless(world.file) as running:
                wait_for(lambda: copied(world, topic, 4) > before + 10_000, running=running)  # noqa: B023 -- called in here
                running.kill()
    assert copied(world, topic, 4) < BACKLOG
    world.write_settings(**{"mirrorless.max.bytes.per.second": "100000000"})
    with Mirrorless(world.file, "--available-now") as running:
        assert running.wait() == 0, running.text()
        (finished,) = running.lines("Finished")
        assert finished["records"] > 0
    assert world.assert_equal(topic) > BACKLOG


@pytest.mark.nightly
def test_between_two_leases_each_flow_copies_on(world: World) -> None:
    (world.folder / "back").mkdir()
    back = World(world.target, world.source, world.folder / "back")
    back.source_alias, back.target_alias = world.target_alias, world.source_alias
    back.flow = f"{back.source_alias}->{back.target_alias}"
    topic, topic_back = world.topic(partitions=4), back.topic(partitions=4)
    world.write_settings(
        **{"mirrorless.lease.seconds": "2", f"{back.flow}.enabled": "true", f"{back.flow}.topics": topic_back}
    )
    marks = {"held": 0, "left": 0}

    def leases(flow: str) -> list[int]:
        for control in world.folder.glob("mirrorless-*/*/control/spark"):
            marks["held"] += any(control.glob("held-*"))
            marks["left"] += any(control.glob("*.left"))
        return [lease["records"] for lease in running.lines("Lease") if lease["flow"] == flow]

    with Mirrorless(world.file) as running:
        with Feed(world, topic, per_second=1_000) as feed, Feed(back, topic_back, per_second=1_000) as feed_back:
            for flow in (world.flow, back.flow):
                wait_for(lambda: len(leases(flow)) >= 5, running=running)  # noqa: B023 -- called in here
        wait_for(lambda: sum(leases(world.flow)) == feed.produced, running=running)
        wait_for(lambda: sum(leases(back.flow)) == feed_back.produced, running=running)
        # No copy landed: it was always the same process that had the flow's lease.
        assert marks["held"] > 0
        assert marks["left"] == 0, running.text()
    assert world.assert_equal(topic) == feed.produced
    assert back.assert_equal(topic_back) == feed_back.produced


@pytest.mark.nightly
def test_slots_that_are_added_meanwhile_copy_at_once(world: World) -> None:
    topic = world.topic(partitions=4)
    world.write_settings(**{"mirrorless.lease.seconds": "15"})

    def ends() -> list[int]:
        consumer = Consumer({"bootstrap.servers": world.target.bootstrap_servers, "group.id": "test"})
        try:
            places = [TopicPartition(world.remote(topic), partition) for partition in range(4)]
            return [consumer.get_watermark_offsets(place, timeout=60)[1] for place in places]
        finally:
            consumer.close()

    def all_move(seconds: float) -> bool:
        before = ends()
        time.sleep(seconds)
        return all(now > then for now, then in zip(ends(), before, strict=True))

    with Feed(world, topic, per_second=1_000), Mirrorless(world.file) as running:
        wait_for(lambda: copied(world, topic, 4) > 1_000, running=running)
        world.tasks_max = 4
        world.write_settings(**{"mirrorless.lease.seconds": "15"})
        # The second lease may have been planned before.
        wait_for(lambda: len(running.lines("Lease")) >= 2, running=running)
        wait_for(lambda: all_move(4), seconds=30, running=running)
        assert all_move(4)


@pytest.mark.nightly
def test_two_processes_on_the_same_flow_at_once(world: World) -> None:
    topic = world.topic(partitions=4)
    world.write_settings(**{"mirrorless.lease.seconds": "3"})
    with Mirrorless(world.file) as one, Mirrorless(world.file) as other:
        with Feed(world, topic, per_second=2_000) as feed:
            for running in (one, other):
                wait_for(lambda: len(running.lines("Lease")) >= 4, running=running)  # noqa: B023 -- called in here
        for running in (one, other):
            running.process.send_signal(signal.SIGTERM)
        for running in (one, other):
            assert running.wait(30) == 0, running.text()
            assert sum(lease["records"] for lease in running.lines("Lease")) > 0, running.text()
    world.copy_to_the_end()
    assert world.assert_equal(topic) == feed.produced


def test_the_same_cluster_at_both_ends_is_one_line_and_nothing_is_written(world: World) -> None:
    same = World(world.source, world.source, world.folder)
    same.topic()
    # Equal addresses have a warning beside it.
    other_name = world.source.bootstrap_servers.replace("127.0.0.1", "localhost")
    same.write_settings(**{f"{same.target_alias}.bootstrap.servers": other_name})
    with Mirrorless(same.file) as running:
        assert running.wait() == 2
        (line,) = running.strays()
        assert len(running.text().splitlines()) == 1 + len(running.lines("Waiting"))
        assert line.startswith(f"error: flow {same.flow}: source and target are the same cluster (id ")


@pytest.mark.nightly
def test_a_cluster_that_does_not_answer_is_one_line(world: World) -> None:
    world.write_settings(**{f"{world.target_alias}.bootstrap.servers": "127.0.0.1:1"})
    with Mirrorless(world.file) as running:
        assert running.wait() == 2
        (line,) = running.strays()
        assert len(running.text().splitlines()) == 1 + len(running.lines("Waiting"))
        assert line.startswith(f"error: cluster {world.target_alias}: no answer from 127.0.0.1:1: ")
