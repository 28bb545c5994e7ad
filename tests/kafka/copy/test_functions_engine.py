"""Runs of the functions engine, one after the other, beside each other, and beside Spark."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, TopicPartition

from mirrorless.clusters.consumers import reader
from mirrorless.clusters.target_state import TargetState, TargetStates
from mirrorless.copy.planning.run_order import RunOrder
from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.progress.engine_choice import EngineChoice
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.mark_writer import write_choice
from mirrorless.progress.run_marks import Share
from tests.kafka.copy.test_refused_while_forgotten import DAYS_AGO_MS, FORGETFUL
from tests.support.function_run import Deadline, FunctionRun, engine_of
from tests.support.world import World, fill, producer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report

TICK_S = 4.0


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    with start_clusters([ClusterSpec(name="forgetful", settings=FORGETFUL)]) as started:
        yield started["forgetful"]


@contextmanager
def writing(world: World, topic: str, *, partitions: int, age_ms: int) -> Iterator[Callable[[], int]]:
    """Produce a thousand records a second meanwhile; yields how many there are so far."""
    ended, written = threading.Event(), 0

    def write() -> None:
        nonlocal written
        client = producer(world.source, batch_size=4_000)
        while not ended.wait(0.02):
            for _ in range(20):
                timestamp = int(time.time() * 1000) - age_ms
                client.produce(topic, b"%100d" % written, partition=written % partitions, timestamp=timestamp)
                written += 1
            client.poll(0)
        assert client.flush(60) == 0

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield lambda: written
    finally:
        ended.set()
        thread.join()


def known(marks: MarkReader) -> list[str]:
    """Every mark of the topic, valid or not, but for the choice of an engine."""
    return [mark.run for mark in marks.read()._marks.values()]


def until(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.05)


class Remote:
    """How many records a remote topic has, by one client."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._consumer = reader(world.place().load().target)

    def records(self, topic: str, *, partitions: int = 1) -> int:
        places = [TopicPartition(self._world.remote(topic), partition) for partition in range(partitions)]
        try:
            return sum(self._consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
        except KafkaException:
            return 0  # the topic was made a moment ago

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.parametrize(
    "age_ms", [pytest.param(0, id="fresh", marks=pytest.mark.nightly), pytest.param(DAYS_AGO_MS, id="old")]
)
def test_runs_that_follow_each_other_lose_nothing_and_copy_nothing_twice(
    source: EmbeddedCluster, forgetful: EmbeddedCluster, tmp_path: Path, age_ms: int
) -> None:
    world = World(source, forgetful, tmp_path)
    topic = world.topic(partitions=2)
    world.discover()
    with (
        writing(world, topic, partitions=2, age_ms=age_ms) as written,
        closing(Remote(world)) as remote,
        FunctionRun(world, seconds=60) as first,
    ):
        first.begun()
        until(lambda: remote.records(topic, partitions=2) > 500)
        with FunctionRun(world, seconds=60) as second:
            results = [first.result()]
            second.begun()
            seen = written()
            until(lambda: remote.records(topic, partitions=2) > seen)
            second.control.ask_to_stop()
            results.append(second.result())
    assert [result["note"] for result in results] == ["the next invocation takes over", "a stop was requested"]
    # What is left is a bounded copy, which completes.
    with closing(engine_of(world, bounded=True)) as engine:
        last = engine.run(Deadline.after(60), lambda _: None)
    assert (last.note, last.complete, last.lag_records) == ("everything was copied", True, 0)
    copied = world.assert_equal(topic)
    assert copied == written()
    assert sum(result["records"] for result in results) + last.records == copied
    assert results[1]["waited_s"] < TICK_S


def test_a_run_that_was_killed_is_followed_when_its_mark_has_expired(world: World) -> None:
    topic = world.topic()
    fill(world.source, topic, (b"%d" % number for number in range(1_000)))
    world.discover()
    flow = world.place().load()
    with closing(Remote(world)) as remote, closing(MarkReader(flow)) as marks, closing(engine_of(world)) as engine:
        with FunctionRun(world, seconds=60, valid_ms=5_000) as killed:
            killed.begun()
            until(lambda: remote.records(topic) == 1_000)
        fill(world.source, topic, [b"one more"])
        assert len(known(marks)) == 1
        deadline = Deadline.after(60)
        with ThreadPoolExecutor() as pool:
            run = pool.submit(engine.run, deadline, lambda _: None)
            until(lambda: remote.records(topic) == 1_001)
            deadline.end()
        result = run.result()
        assert result.records == 1
        assert 1 < result.waited_s < 8
        # The next one deletes it.
        assert engine.run(Deadline.after(0), lambda _: None).note == "its time was over before a lease could be planned"
        assert known(marks) == []
    world.assert_equal(topic)


def test_two_shares_copy_disjoint_parts_and_new_topics_at_once(world: World) -> None:
    # The file does not change: a running lease has the configuration that it began with.
    world.write_settings(**{f"{world.flow}.topics": "of-two-shares-.*"})
    topic = world.topic(name="of-two-shares-1", partitions=8)
    fill(world.source, topic, (b"%d" % number for number in range(8_000)), partitions=8)
    world.discover()
    with (
        closing(Remote(world)) as remote,
        FunctionRun(world, seconds=60, share=Share(0, 2)) as zero,
        FunctionRun(world, seconds=60, share=Share(1, 2)) as one,
    ):
        until(lambda: remote.records(topic, partitions=8) == 8_000)
        late = world.topic(name="of-two-shares-2", partitions=4)
        fill(world.source, late, (b"%d" % number for number in range(400)), partitions=4)
        world.discover()
        until(lambda: remote.records(late, partitions=4) == 400, seconds=5)
        for run in (zero, one):
            run.control.ask_to_stop()
        results = [zero.result(), one.result()]
    assert world.assert_equal(topic) + world.assert_equal(late) == 8_400
    assert sum(result["records"] for result in results) == 8_400
    assert all(result["records"] > 100 for result in results)
    assert {result["note"] for result in results} == {"a stop was requested"}


def test_a_third_run_and_one_of_a_paused_flow_return_at_once(world: World) -> None:
    world.topic()
    world.discover()
    flow = world.place().load()

    def refuse(_: list[Report]) -> None:
        raise AssertionError

    with closing(engine_of(world)) as engine:
        with closing(RunOrder(flow, engine="functions")) as one, closing(RunOrder(flow, engine="functions")) as two:
            one.claim()
            two.claim(ready=False)
            began = time.monotonic()
            assert engine.run(Deadline.after(60), refuse).note == "two other invocations are running"
            assert time.monotonic() - began < TICK_S
        states = TargetStates(flow)
        states.write(TargetState.PAUSED)
        began = time.monotonic()
        paused = engine.run(Deadline.after(60), refuse)
        assert time.monotonic() - began < TICK_S
        assert paused.note.startswith(f"flow {world.flow} is paused")
        assert not paused.copied
        states.close()


def test_spark_takes_over_and_an_idle_run_ends(world: World) -> None:
    topic = world.topic()
    world.write_settings(**{"mirrorless.copy.idle.exit": "true"})
    fill(world.source, topic, (b"%d" % number for number in range(100)))
    world.discover()
    flow = world.place().load()
    begun = threading.Event()
    with (
        closing(engine_of(world)) as engine,
        closing(RunOrder(flow, engine="spark")) as spark,
        ThreadPoolExecutor() as pool,
    ):
        run = pool.submit(engine.run, Deadline.after(60), lambda _: None, begins=begun.set)
        assert begun.wait(30)
        spark.claim()
        assert run.result(TICK_S).note == "the copy job takes over"
        write_choice(
            flow, EngineChoice(engine="spark", since_ms=0, reason="the lag has grown"), world.place().deployment
        )
        began = time.monotonic()
        assert engine.run(Deadline.after(60), lambda _: None).note == "the copy job copies the flow"
        assert time.monotonic() - began < 1
        # As long as Spark does not copy, functions do, whatever was chosen.
        spark.release()
        idle = engine.run(Deadline.after(60), lambda _: None)
    assert idle.note == "nothing arrives"
    assert world.assert_equal(topic) == 100
