"""Three functions copy skewed partitions, which deals move between them while runs are killed and follow each other."""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from mirrorless.local.embedded_kafka import ClusterSpec, EmbeddedCluster, start_clusters
from mirrorless.progress.deals import hash_share
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.run_marks import Share
from tests.kafka.copy.test_functions_engine import Remote, until
from tests.kafka.copy.test_refused_while_forgotten import DAYS_AGO_MS, FORGETFUL
from tests.support.function_run import Deadline, FunctionRun, engine_of
from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mirrorless.copy.partition.lease_rows import Report

SHARES = 3
PARTITIONS = 18
DEALS = 3
DEAL_S = 4.0
VALID_MS = 5_000


@pytest.fixture(scope="module")
def forgetful() -> Iterator[EmbeddedCluster]:
    with start_clusters([ClusterSpec(name="forgetful", settings=FORGETFUL)]) as started:
        yield started["forgetful"]


class Writer:
    """Produces two thousand records a second to those `hot` partitions, and a few to all."""

    def __init__(self, world: World, topic: str, *, age_ms: int) -> None:
        self.written = 0
        self.hot: list[int] = [0]
        self._ended = threading.Event()
        self._client = producer(world.source, batch_size=4_000)
        self._topic, self._age_ms = topic, age_ms

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()
            assert self._client.flush(60) == 0

    def _run(self) -> None:
        while not self._ended.wait(0.02):
            hot = self.hot
            for number in range(40):
                partition = hot[number % len(hot)] if number else self.written % PARTITIONS
                timestamp = int(time.time() * 1000) - self._age_ms
                self._client.produce(self._topic, b"%100d" % self.written, partition=partition, timestamp=timestamp)
                self.written += 1
            self._client.poll(0)


class Functions:
    """The runs of each share: the one that copies, and the one that follows it."""

    def __init__(self, world: World, stack: ExitStack) -> None:
        self._world, self._stack = world, stack
        self.runs = [self._start(number) for number in range(SHARES)]

    def _start(self, number: int) -> FunctionRun:
        share = Share(number, SHARES)
        run = FunctionRun(self._world, seconds=600, share=share, valid_ms=VALID_MS, deal_s=DEAL_S)
        return self._stack.enter_context(run)

    def follow(self, number: int, *, killed: bool) -> None:
        """Start the next run of a share; the one before is killed, or ends when this one is ready."""
        before = self.runs[number]
        if killed:
            before.kill()
        self.runs[number] = self._start(number)

    def stop(self) -> None:
        """End all runs, also those that have just started."""
        for run in self.runs:
            run.control.ask_to_stop()
        for run in self.runs:
            run.result()


@pytest.mark.parametrize("age_ms", [0, DAYS_AGO_MS], ids=["fresh", "old"])
def test_deals_under_load_with_kills_lose_nothing_and_copy_nothing_twice(
    source: EmbeddedCluster, forgetful: EmbeddedCluster, tmp_path: Path, age_ms: int
) -> None:
    world = World(source, forgetful, tmp_path)
    world.write_settings(**{"mirrorless.lease.seconds": "3"})
    topic = world.topic(partitions=PARTITIONS)
    world.discover()
    owned = [[one for one in range(PARTITIONS) if hash_share((topic, one), SHARES) == share] for share in range(SHARES)]
    chance = random.Random(age_ms)
    writer = Writer(world, topic, age_ms=age_ms)
    moved = 0
    with (
        closing(Remote(world)) as remote,
        closing(MarkReader(world.place().load())) as marks,
        ExitStack() as stack,
        writer.running(),
    ):
        functions = Functions(world, stack)
        until(lambda: remote.records(topic, partitions=PARTITIONS) > 500)
        for number in range(1, DEALS + 1):
            # What one share has by the last deal is all that is busy, so that another deal follows.
            last = marks.read().deal(world.place().deployment, SHARES)
            busy = number % SHARES
            if last is None:
                writer.hot = owned[busy]
            else:
                writer.hot = [one for one in range(PARTITIONS) if last.share_of((topic, one)) == busy]
            ends, kills = time.monotonic() + 300, 0
            while ((last := marks.read().deal(world.place().deployment, SHARES)) is None) or last.number < number:
                assert time.monotonic() < ends, f"no deal {number}"
                time.sleep(chance.uniform(2, 5))
                kills += 1
                if kills == 2:
                    functions.follow(busy, killed=False)
            moved += len(last.moved)
            # At once, while partitions change hands.
            functions.follow(busy, killed=True)
            functions.follow(chance.choice([one for one in range(SHARES) if one != busy]), killed=chance.random() < 0.5)
            seen = writer.written
            until(lambda: remote.records(topic, partitions=PARTITIONS) >= seen)  # noqa: B023 -- called at once
        functions.stop()
    with closing(engine_of(world, bounded=True)) as engine:
        reports: list[Report] = []
        ends = time.monotonic() + 60
        while (rest := engine.run(Deadline.after(60), reports.extend)).note == "two other invocations are running":
            assert time.monotonic() < ends  # marks of killed runs expire
            time.sleep(1)
    assert (rest.complete, rest.lag_records) == (True, 0), (rest, [one for one in reports if one.error or one.events])
    assert moved >= DEALS
    assert world.assert_equal(topic) == writer.written
