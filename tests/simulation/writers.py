"""Applications that write to a source: single records, batches, transactions that commit or abort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.batches.header import TRANSACTIONAL
from tests.simulation.cluster import NAMES
from tests.simulation.log import batch_of
from tests.simulation.truth import Fate, value_of

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.log import PartitionLog
    from tests.simulation.setups import Setup
    from tests.simulation.truth import Truth

_DAY_MS = 86_400_000


class Writer:
    """All that write to one topic of the source of `truth`, while it `writes`."""

    def __init__(self, truth: Truth, topic: str, setup: Setup, *, writes: bool) -> None:
        self.truth = truth
        self.writes = writes
        self.ended = False
        self._topic = topic
        self._setup = setup
        self._transactions = 0
        self._decided: dict[int, bool] = {}
        self._source: SimulatedCluster = truth.source
        self._world = truth.source.world
        self._world.later(0.0, None, self._write)

    def _write(self) -> None:
        random = self._world.random
        if self.ended:
            return
        if self.writes and self._topic in self._source.topics:
            for _ in range(random.choice((1, 1, 2, 5))):
                partitions = self._source.topics[self._topic].partitions
                self._produce((self._topic, random.randrange(len(partitions))))
        self._world.later(random.choice((0.01, 0.1, 0.5, 2.0)), None, self._write)

    def _produce(self, place: TopicPartition) -> None:
        partition = self._source.topics[place[0]].partitions[place[1]]
        if partition.leader is None or partition.leader % NAMES in self._source.down:
            return
        random, log, records = self._world.random, partition.log, self.truth.of(place)
        transactional = self._setup.transactions and random.random() < 0.5
        count = random.choice((1, 1, 3, 10))
        numbers = records.add(log.end, count, Fate.OPEN if transactional else Fate.COMMITTED)
        age_ms = int(random.random() * 4 * _DAY_MS) if self._setup.old else 0
        producer: dict[str, int] = {}
        if transactional:
            self._transactions += 1
            producer = {
                "producer_id": self._transactions,
                "producer_epoch": 0,
                "base_sequence": 0,
                "attributes": TRANSACTIONAL,
            }
        values = [(None, value_of(number, self.truth.origin)) for number in numbers]
        log.write(batch_of(values, timestamp_ms=self._world.now_ms - age_ms, **producer))
        if transactional:
            self._end_later(place, log, self._transactions, numbers, commit=random.random() < 0.7)

    def _end_later(
        self, place: TopicPartition, log: PartitionLog, producer: int, numbers: range, *, commit: bool
    ) -> None:
        def end() -> None:
            if not self._source.has(place) or self._source.log(*place) is not log:
                return
            if producer not in log.open:
                return  # an election lost it
            self._decided[producer] = commit
            log.mark(producer, 0, commit=commit, now_ms=self._world.now_ms)
            self.truth.of(place).end(numbers, commit=commit)

        self._world.later(self._world.random.choice((0.0, 0.05, 0.5, 3.0)), None, end)

    def mark_again(self, log: PartitionLog) -> None:
        """Write markers again that a leader lost, as the coordinator does (or an administrator, KIP-664)."""
        for producer in sorted(log.open.keys() & self._decided):
            log.mark(producer, 0, commit=self._decided[producer], now_ms=self._world.now_ms)
