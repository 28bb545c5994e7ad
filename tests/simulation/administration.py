"""What a cluster keeps besides logs: configs, ACLs, groups with members and offsets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mirrorless.kafka_python.structs import DefaultRecordBatch
from tests.simulation.cluster import NAMES, UNKNOWN_TOPIC, Partition, SimulatedCluster, Topic
from tests.simulation.log import batch_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from tests.simulation.log import PartitionLog
    from tests.simulation.world import World

LEADER_NOT_AVAILABLE = 5
MESSAGE_TOO_LARGE = 10
NOT_EMPTY = 68
"""NON_EMPTY_GROUP."""
UNKNOWN_MEMBER = 25
TOPIC_EXISTS = 36
TOPIC_DENIED = 29
MAX_BYTES = "max.message.bytes"
DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": "86400000",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
}
IDLE_MS = 600_000
"""`connections.max.idle.ms` of the brokers."""


class Record(NamedTuple):
    """A record as a reader gets it; markers are no records."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: list[tuple[str, bytes]]


class AclEntry(NamedTuple):
    """An ACL, in Kafka's words in upper case."""

    kind: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


@dataclass(slots=True)
class Group:
    """A consumer group: `members` are those that are in it now."""

    offsets: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)


class AdministeredCluster(SimulatedCluster):
    """A cluster with everything that operations read and change."""

    def __init__(self, world: World, alias: str) -> None:
        super().__init__(world, alias)
        self.acls: set[AclEntry] = set()
        self.groups: dict[str, Group] = {}
        self.transactions: dict[str, int] = {}
        """The epoch of each transactional id."""
        self._records: dict[int, tuple[PartitionLog, dict[int, list[Record]]]] = {}

    @property
    def address(self) -> str:
        """What a file names it by."""
        return f"{self.alias.lower()}.simulated:9092"

    @property
    def nodes(self) -> list[int]:
        """The brokers that answer."""
        return [node for node in (1, 2, 3) if node not in self.down]

    def up(self, brokers: set[int]) -> None:
        """Let brokers answer again."""
        self.down -= brokers
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.wake()

    def allow(self, principal: str, topic: str) -> None:
        """Let applications write to a topic: a first ACL of a fence would take READ from everybody."""
        for operation in ("READ", "WRITE"):
            self.acls.add(AclEntry("TOPIC", topic, "LITERAL", principal, "*", operation, "ALLOW"))

    # Topics

    def create(self, name: str, partitions: int, **configs: str) -> Topic:
        """As of `SimulatedCluster`."""
        topic = super().create(name, partitions, **configs)
        self._limit(topic)
        return topic

    def add_partitions(self, name: str, count: int) -> None:
        """As of `SimulatedCluster`."""
        super().add_partitions(name, count)
        self._limit(self.topics[name])

    def delete(self, name: str) -> None:
        """As of `SimulatedCluster`; groups lose their offsets of the topic."""
        super().delete(name)
        for group in self.groups.values():
            group.offsets = {place: one for place, one in group.offsets.items() if place[0] != name}

    def set_config(self, name: str, config: str, value: str | None) -> None:
        """Change a config of a topic, or with None let the default apply."""
        topic = self.topics[name]
        if value is None:
            topic.configs.pop(config, None)
        else:
            topic.configs[config] = value
        self._limit(topic)

    def configs(self, name: str) -> dict[str, tuple[str, int]]:
        """Every config with its value and origin, by the protocol's numbers."""
        own = self.topics[name].configs
        return {key: (value, 5) for key, value in DEFAULTS.items()} | {key: (value, 1) for key, value in own.items()}

    def _limit(self, topic: Topic) -> None:
        limit = int(topic.configs.get(MAX_BYTES, DEFAULTS[MAX_BYTES]))
        for partition in topic.partitions:
            partition.log.max_message_bytes = limit

    # Groups

    def commit(self, name: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, member: str = "") -> int:
        """Commit offsets, by a member or by somebody outside; returns the error code."""
        group = self.groups.setdefault(name, Group())
        if member and member not in group.members:
            return UNKNOWN_MEMBER
        if not member and group.members:
            return UNKNOWN_MEMBER
        group.offsets.update(offsets)
        return 0

    # Records

    def led(self, place: TopicPartition) -> Partition | int:
        """The partition if its leader answers, or an error code."""
        topic = self.topics.get(place[0])
        if topic is None or place[1] >= len(topic.partitions):
            return UNKNOWN_TOPIC
        found = topic.partitions[place[1]]
        if found.leader is None or found.leader % NAMES in self.down:
            return LEADER_NOT_AVAILABLE
        return found

    def produce(
        self,
        place: TopicPartition,
        records: Sequence[tuple[bytes | None, bytes | None]],
        *,
        principal: str = "",
        producer: tuple[int, int] = (-1, -1),
    ) -> tuple[int, int]:
        """Append what a producer sends; returns the first offset and the error code.

        A `principal` is bound by ACLs, clients of this program are super users. `producer` is the id of an idempotent
        one and the sequence, which is not checked: none of its requests is lost.
        """
        found = self.led(place)
        if isinstance(found, int):
            return -1, found
        if principal and self._denies(place[0]):
            return -1, TOPIC_DENIED
        known = (
            {"producer_id": producer[0], "producer_epoch": 0, "base_sequence": producer[1]} if producer[0] >= 0 else {}
        )
        batch = batch_of(records, timestamp_ms=self.world.now_ms, **known)
        size = len(batch.header.pack()) + len(batch.body)
        if found.log.max_message_bytes is not None and size > found.log.max_message_bytes:
            return -1, MESSAGE_TOO_LARGE
        return found.log.write(batch), 0

    def _denies(self, topic: str) -> bool:
        return any(
            (one.kind, one.name, one.pattern, one.operation, one.permission)
            == ("TOPIC", topic, "LITERAL", "WRITE", "DENY")
            for one in self.acls
        )

    def records(self, place: TopicPartition, *, since: int, below: int) -> list[Record]:
        """The records of a partition between two offsets, those of aborted transactions included."""
        log = self.log(*place)
        known, by_base = self._records.get(id(log), (None, {}))
        if known is not log:
            by_base = {}
            self._records[id(log)] = (log, by_base)
        found: list[Record] = []
        for header, body in log.batches:
            if header.next_offset <= since or header.base_offset >= below or header.is_control:
                continue
            some = by_base.get(header.base_offset)
            if some is None or (some and some[-1].offset != header.next_offset - 1):
                some = by_base[header.base_offset] = [
                    Record(one.offset, one.key, one.value, one.timestamp, [*(one.headers or ())])
                    for one in DefaultRecordBatch(header.pack() + body)
                ]
            found += [one for one in some if since <= one.offset < below]
        return found

    def values(self, topic: str) -> dict[int, list[bytes]]:
        """All values that a topic has, by partition; none if it does not exist."""
        if topic not in self.topics:
            return {}
        return {
            number: [one.value or b"" for one in self.records((topic, number), since=0, below=1 << 62)]
            for number in range(len(self.topics[topic].partitions))
        }
