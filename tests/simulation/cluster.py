"""The brokers of one cluster: topics with their ids, leaders and logs, and what is answered to requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from mirrorless.protocol.cluster_client import LATEST, READ_COMMITTED
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE, AppendResult, Fetched, Offset, ProducerState
from tests.simulation.log import UNKNOWN, PartitionLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topic_partition import TopicPartition
    from tests.simulation.world import World

UNKNOWN_TOPIC = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER = 6
TIMED_OUT = 7
UNKNOWN_TOPIC_ID = 100
BROKERS = (1, 2, 3)
NAMES = 10
_APART_S = 5.0
"""A log is not cut twice within this, and after a cut its leaders have ids of their own (the broker's and tens).

A client that comes back to a leader of before, and has asked no other one meanwhile, finds that the tail is lost when
its next batch is appended (`unexpected_append`).
"""


@dataclass(slots=True)
class Partition:
    """One partition: the log of its leader, None while there is no leader, and who waits for new records."""

    log: PartitionLog
    leader: int | None
    cut_at: float = 0.0
    cuts: int = 0
    waiting: list[Callable[[], None]] = field(default_factory=list)

    def wake(self) -> None:
        """Let those look who wait for records."""
        waiting, self.waiting = self.waiting, []
        for look in waiting:
            look()


@dataclass(slots=True)
class Topic:
    """A topic until it is deleted; a recreated one has another id."""

    name: str
    id: UUID
    partitions: list[Partition]
    configs: dict[str, str] = field(default_factory=dict)


class SimulatedCluster:
    """Three brokers; `down` are those that answer nothing. `appended` hears of every batch that a client appended."""

    def __init__(self, world: World, alias: str) -> None:
        self.world = world
        self.alias = alias
        self.id = f"id-of-{alias}"
        self.topics: dict[str, Topic] = {}
        self.down: set[int] = set()
        self.appended: Callable[[TopicPartition, int], None] = lambda _place, _base: None
        self._ids = 0
        world.clusters[alias] = self

    # What administrators do

    def create(self, name: str, partitions: int, **configs: str) -> Topic:
        """Create a topic with an id of its own."""
        self._ids += 1
        topic = Topic(name, UUID(int=sum(self.alias.encode()) << 64 | self._ids), [], configs)
        self.topics[name] = topic
        self.add_partitions(name, partitions)
        return topic

    def add_partitions(self, name: str, count: int) -> None:
        """Add partitions to a topic."""
        topic = self.topics[name]
        for _ in range(count):
            partition = Partition(PartitionLog(topic.id), BROKERS[len(topic.partitions) % len(BROKERS)])
            partition.log.changed = partition.wake
            topic.partitions.append(partition)

    def delete(self, name: str) -> None:
        """Delete a topic; who waits for its records hears of it."""
        topic = self.topics.pop(name)
        for partition in topic.partitions:
            partition.leader = None
            partition.log.fail_waiting(UNKNOWN_TOPIC)
            partition.wake()

    def log(self, name: str, partition: int = 0) -> PartitionLog:
        """The log of a partition."""
        return self.topics[name].partitions[partition].log

    def has(self, place: TopicPartition) -> bool:
        """Whether there is such a partition."""
        topic = self.topics.get(place[0])
        return topic is not None and place[1] < len(topic.partitions)

    def move_leader(self, place: TopicPartition, leader: int | None, *, lost: int | None = None) -> None:
        """Elect another leader, whose log ends at `lost` at most; a clean one has all that is replicated."""
        partition = self.topics[place[0]].partitions[place[1]]
        log = partition.log
        if leader is not None:
            if lost is not None and lost < partition.log.end and self.world.now - partition.cut_at > _APART_S:
                partition.log.truncate(lost)
                partition.cut_at = self.world.now
                partition.cuts += 1
            leader += partition.cuts * NAMES
            if leader == partition.leader:
                leader = leader - leader % NAMES + leader % NAMES % len(BROKERS) + 1
        partition.leader = leader
        log.fail_waiting(NOT_LEADER)
        if leader is None:
            return
        log.held_at = None
        log.lead(log.leader_epoch + 1)
        partition.wake()

    # What is answered

    def find(self, place: TopicPartition, node: int, topic_id: UUID | None = None) -> Partition | int:
        """The partition that a broker leads, or the error code that it answers with."""
        topic = self.topics.get(place[0])
        if topic is None or place[1] >= len(topic.partitions):
            return UNKNOWN_TOPIC if topic_id is None else UNKNOWN_TOPIC_ID
        if topic_id is not None and topic.id != topic_id:
            return UNKNOWN_TOPIC_ID
        partition = topic.partitions[place[1]]
        return partition if partition.leader == node else NOT_LEADER

    def fetched(
        self,
        place: TopicPartition,
        node: int,
        *,
        offset: int,
        leader_epoch: int,
        topic_id: UUID | None,
        isolation: int,
        max_bytes: int,
    ) -> Fetched:
        """Answer a fetch of one partition."""
        found = self.find(place, node, topic_id)
        if isinstance(found, int):
            return Fetched(place, found, -1, [], b"")
        log = found.log
        if leader_epoch >= 0:
            diverges = log.diverges(offset, leader_epoch)
            if diverges == UNKNOWN:
                return Fetched(place, OFFSET_OUT_OF_RANGE, -1, [], b"")
            if diverges is not None:
                return Fetched(place, 0, log.stable, [], b"", diverges, log.high_watermark)
        if not log.start <= offset <= log.end:
            return Fetched(place, OFFSET_OUT_OF_RANGE, -1, [], b"")
        below = log.stable if isolation == READ_COMMITTED else log.high_watermark
        aborted = log.aborted_between(offset, below) if log.ended and isolation == READ_COMMITTED else []
        records = log.read(offset, below=below, max_bytes=max_bytes)
        return Fetched(place, 0, log.stable, aborted, records, None, log.high_watermark)

    def listed(self, place: TopicPartition, node: int, *, at: int, isolation: int) -> Offset:
        """Answer a ListOffsets of one partition."""
        found = self.find(place, node)
        if isinstance(found, int):
            return Offset(-1, found)
        log = found.log
        if at == LATEST:
            return Offset(log.stable if isolation == READ_COMMITTED else log.high_watermark, 0)
        if at < 0:
            return Offset(log.start, 0)
        return Offset(
            next((one.header.base_offset for one in log.batches if one.header.max_timestamp_ms >= at), UNKNOWN), 0
        )

    def log_end(self, place: TopicPartition, node: int) -> Offset:
        """Answer a ListOffsets of the debugging replica: the end of the leader's own log."""
        found = self.find(place, node)
        return Offset(-1, found) if isinstance(found, int) else Offset(found.log.end, 0)

    def producers(
        self, node: int, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ProducerState | int | None]:
        """Answer a DescribeProducers about one producer of each partition."""
        answer: dict[TopicPartition, ProducerState | int | None] = {}
        for place, producer_id in wanted.items():
            found = self.find(place, node)
            if isinstance(found, int):
                answer[place] = found
            else:
                known = found.log.producers.get(producer_id)
                # Of a producer with markers only nothing is reported.
                shown = known is not None and known.last_sequence >= 0
                answer[place] = ProducerState(known.epoch, known.last_sequence) if known is not None and shown else None
        return answer

    def append(
        self,
        node: int,
        batches: Iterable[tuple[TopicPartition, Stamped]],
        ids: Mapping[str, UUID | None],
        heard: Callable[[list[AppendResult]], None],
    ) -> None:
        """Append a batch to each partition; `heard` has the answer once all in-sync replicas have them."""
        answers: list[AppendResult] = []
        left = list(batches)
        expected = len(left)

        def answered(place: TopicPartition, code: int, base: int) -> None:
            answers.append(AppendResult(place, code, None, base))
            if len(answers) == expected:
                heard(answers)

        for place, batch in left:
            found = self.find(place, node, ids.get(place[0]))
            if isinstance(found, int):
                answered(place, found, -1)
                continue
            log = found.log
            before = log.end
            base, code = log.append(batch)
            if code:
                answered(place, code, -1)
                continue
            if base == before:
                self.appended(place, base)
            log.when_replicated(log.end if base == before else base + 1, _hearing(answered, place, base))


def _hearing(
    answered: Callable[[TopicPartition, int, int], None], place: TopicPartition, base: int
) -> Callable[[int], None]:
    return lambda code: answered(place, code, -1 if code else base)
