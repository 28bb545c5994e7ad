"""A cluster in memory, in place of `ClusterClient`: logs, leaders, and answers that are late, lost or refused."""

# ruff: noqa: ARG002 -- a fake takes what the real one takes
from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from kafka.protocol.admin.transactions import DescribeProducersResponse

from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.connection_manager import ExtraConnection
from mirrorless.protocol.cluster_client import EARLIEST, EARLIEST_LOCAL, LATEST, READ_COMMITTED
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE, AppendResult, Fetched, Offset, described_producers
from tests.support.fake_log import FakeLog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.connection_manager import Node
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.fetch_session import FetchSession
    from mirrorless.protocol.requests import ProducerState
    from tests.support.virtual_loop import VirtualLoop

LATENCY_S = 0.001
UNKNOWN_TOPIC = 3


class Fault(Enum):
    """What happens to a produce request."""

    REQUEST_LOST = auto()
    """The connection is lost before the broker has read it."""
    ANSWER_LOST = auto()
    """The connection is lost after the broker has appended its batches."""
    NOT_SENT = auto()
    """There is no connection to send it over."""
    NO_ANSWER = auto()
    """The broker has appended its batches, and the answer does not come until the request times out."""


_MAGIC_AT = 16
_TIMEOUT_S = 30.0


@dataclass(slots=True)
class Follower:
    """A follower's log: the leader's up to `behind` offsets before its end, from `start` on, without `cleaned` batches.

    Its high watermark is `hidden` offsets before its end. `errors` are codes to answer the next requests with;
    `diverges` answers as if the log was cut at its end, `damaged` spoils the first batch of each answer.
    """

    behind: int = 0
    start: int = 0
    errors: deque[int] = field(default_factory=deque)
    cleaned: set[int] = field(default_factory=set)
    diverges: bool = False
    hidden: int = 0
    damaged: bool = False

    def fetched(self, place: TopicPartition, log: FakeLog, offset: int, *, max_bytes: int) -> Fetched:
        """What it answers; by the last leader epoch, or without it, an offset after its end is out of its range."""
        end = log.high_watermark - self.behind
        high = end - self.hidden
        stable = min(high, log.stable)
        if self.diverges:
            return Fetched(place, 0, stable, [], b"", end, high)
        if not self.start <= offset <= end:
            return Fetched(place, OFFSET_OUT_OF_RANGE, -1, [], b"")
        own = FakeLog()
        own.batches = [batch for batch in log.batches if batch.header.base_offset not in self.cleaned]
        records = own.read(offset, below=stable, max_bytes=max_bytes)
        if self.damaged and records:
            records = records[:_MAGIC_AT] + b"\x09" + records[_MAGIC_AT + 1 :]
        return Fetched(place, 0, stable, [], records, None, high)


class FakeCluster:
    """Every partition has the leader 1, unless `leaders` says otherwise; None is no leader.

    `fetch_errors` and `append_errors` are codes to answer the next requests of a partition with, `faults` what happens
    to the next produce requests, `producer_errors` codes to answer DescribeProducers with, `lost_fetches` how many of
    the next fetches lose their connection. Answers take `latency_s`. `quiet` is how long a connection is throttled.
    `requests` counts all of them by name, `fetches` has connection, rack and partitions of each fetch.

    `followers` are replicas by partition and broker, `nearest` is the one that a leader names to consumers with a rack,
    or with `names_to_all` to all. Brokers that are `down` refuse connections, those `hanging` do not answer fetches.
    """

    def __init__(self, loop: VirtualLoop, alias: str) -> None:
        self.alias = alias
        self.login_refused = False
        self.loop = loop
        self.latency_s = LATENCY_S
        self.accepts_extra_connections = True
        self.logs: dict[TopicPartition, FakeLog] = {}
        self.leaders: dict[TopicPartition, int | None] = {}
        self.in_sync: dict[TopicPartition, tuple[int, int]] = {}
        self.quiet: dict[Node, float] = {}
        self.fetch_errors: dict[TopicPartition, deque[int]] = defaultdict(deque)
        self.append_errors: dict[TopicPartition, deque[int]] = defaultdict(deque)
        self.followers: dict[tuple[TopicPartition, int], Follower] = {}
        self.nearest: dict[TopicPartition, int] = {}
        self.names_to_all = False
        self.down: set[int] = set()
        self.hanging: set[int] = set()
        self.offline: set[int] = set()
        self.rack = ""
        self.metadata_max_age_s = 300.0
        self.fetches: list[tuple[Node, str, list[TopicPartition]]] = []
        self.producer_errors: dict[TopicPartition, int] = {}
        self.faults: deque[Fault | None] = deque()
        self.unanswered: list[Callable[[list[AppendResult] | BaseException], None]] = []
        self.lost_fetches = 0
        self.requests: dict[str, int] = defaultdict(int)
        self.sent: list[tuple[Node, list[TopicPartition]]] = []
        self.refreshed = 0
        self._ids = 0

    @property
    def client(self) -> ClusterClient:
        """Itself, as what it stands for."""
        return cast("ClusterClient", self)

    @property
    def cluster_id(self) -> str:
        """As of `ClusterClient`."""
        return f"id of {self.alias}"

    def create(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, with an id of its own."""
        self._ids += 1
        for partition in range(partitions):
            self.logs[topic, partition] = FakeLog(UUID(int=self._ids))

    def log(self, topic: str, partition: int = 0) -> FakeLog:
        """The log of a partition."""
        return self.logs[topic, partition]

    # Metadata

    def leader(self, place: TopicPartition) -> int | None:
        """As of `ClusterClient`."""
        return self.leaders.get(place, 1) if place in self.logs else None

    def topic_id(self, topic: str) -> UUID | None:
        """As of `ClusterClient`."""
        found = self.logs.get((topic, 0))
        return None if found is None else found.topic_id

    def replicas(self, place: TopicPartition) -> tuple[int, int] | None:
        """As of `ClusterClient`."""
        return self.in_sync.get(place)

    def has_replica(self, place: TopicPartition, node: int) -> bool:
        """As of `ClusterClient`."""
        return (place, node) in self.followers and node not in self.offline

    def partition_count(self, topic: str) -> int:
        """As of `ClusterClient`."""
        return sum(name == topic for name, _ in self.logs)

    def refresh_leaders(self) -> None:
        """As of `ClusterClient`."""
        self.refreshed += 1

    def quiet_s(self, node: Node) -> float:
        """As of `ClusterClient`."""
        return self.quiet.get(node, 0.0)

    def round_trip_s(self, node: int) -> float:
        """As of `ClusterClient`."""
        return self.latency_s

    async def learn(self, topics: Iterable[str]) -> None:
        """As of `ClusterClient`."""

    # Reading

    async def fetch(
        self,
        node: Node,
        wanted: Sequence[tuple[TopicPartition, int, int]],
        *,
        isolation: int = READ_COMMITTED,
        max_wait_ms: int = 0,
        max_bytes: int = 32 << 20,
        partition_max_bytes: int = 4 << 20,
        session: FetchSession | None = None,
        rack: str = "",
    ) -> list[Fetched]:
        """As of `ClusterClient`, without sessions: the answer has every partition."""
        await self._request("fetch")
        broker = node.node if isinstance(node, ExtraConnection) else node
        self.fetches.append((node, rack, [place for place, _, _ in wanted]))
        while broker in self.hanging:
            await self.loop.sleep(LATENCY_S)
        if broker in self.down:
            raise kafka_errors.KafkaConnectionError("connection lost")
        if isinstance(node, ExtraConnection) and not self.accepts_extra_connections:
            raise kafka_errors.KafkaConnectionError("connection refused")
        if self.lost_fetches:
            self.lost_fetches -= 1
            raise kafka_errors.KafkaConnectionError("connection lost")
        answer = [self._answered(broker, one, isolation, partition_max_bytes, rack) for one in wanted]
        at_once = (
            part.records
            or part.error_code
            or part.replica >= 0
            or part.diverges_at is not None
            or self._is_before(part, at)
            for part, (_, at, _) in zip(answer, wanted, strict=True)
        )
        if max_wait_ms and not any(at_once):
            await self.loop.sleep(max_wait_ms / 1000)
            answer = [self._answered(broker, one, isolation, partition_max_bytes, rack) for one in wanted]
        return answer

    def _is_before(self, part: Fetched, offset: int) -> bool:
        """Whether a follower's end is before an offset: then it does not wait (`DelayedFetch.tryComplete`)."""
        return bool(self.followers) and part.last_stable_offset < offset

    def _answered(
        self, broker: int, wanted: tuple[TopicPartition, int, int], isolation: int, max_bytes: int, rack: str
    ) -> Fetched:
        """What a broker answers: a leader may name a follower, and a follower has a log of its own (KIP-392)."""
        place, offset, _ = wanted
        follower = self.followers.get((place, broker))
        if follower is not None and self.leader(place) != broker:
            if follower.errors:
                return Fetched(place, follower.errors.popleft(), -1, [], b"")
            return follower.fetched(place, self.logs[place], offset, max_bytes=max_bytes)
        named = self.nearest.get(place, -1) if rack or self.names_to_all else -1
        if named >= 0 and place in self.logs:
            log = self.logs[place]
            return Fetched(place, 0, log.stable, [], b"", None, log.high_watermark, named)
        return self._fetched(wanted, isolation, max_bytes)

    def _fetched(self, wanted: tuple[TopicPartition, int, int], isolation: int, max_bytes: int) -> Fetched:
        place, offset, leader_epoch = wanted
        log = self.logs.get(place)
        if self.fetch_errors[place]:
            return Fetched(place, self.fetch_errors[place].popleft(), -1, [], b"")
        if log is None:
            return Fetched(place, UNKNOWN_TOPIC, -1, [], b"")
        if log.diverges_at is not None and leader_epoch >= 0:
            return Fetched(place, 0, log.stable, [], b"", log.diverges_at, log.high_watermark)
        if not log.start <= offset <= log.end:
            return Fetched(place, OFFSET_OUT_OF_RANGE, -1, [], b"")
        below = log.stable if isolation == READ_COMMITTED else log.high_watermark
        records = log.read(offset, below=below, max_bytes=max_bytes)
        return Fetched(place, 0, log.stable, [], records, None, log.high_watermark)

    async def fetch_one(
        self,
        node: int,
        wanted: tuple[TopicPartition, int, int],
        *,
        isolation: int = READ_COMMITTED,
        max_wait_ms: int = 0,
        partition_max_bytes: int = 1 << 16,
    ) -> Fetched:
        """As of `ClusterClient`."""
        await self._request("fetch_one")
        return self._fetched(wanted, isolation, partition_max_bytes)

    async def read_at(self, node: int, place: TopicPartition, offset: int) -> bytes:
        """As of `ClusterClient`."""
        await self._request("read_at")
        if not self.logs[place].start <= offset < self.logs[place].end:
            raise kafka_errors.OffsetOutOfRangeError
        return self.logs[place].read(offset, below=self.logs[place].end, max_bytes=1)

    async def read_each_at(
        self, node: int, wanted: Mapping[TopicPartition, int], *, partition_max_bytes: int = 1
    ) -> dict[TopicPartition, bytes | kafka_errors.KafkaError]:
        """As of `ClusterClient`."""
        await self._request("read_each_at")
        return {
            place: self.logs[place].read(offset, below=self.logs[place].end, max_bytes=partition_max_bytes)
            for place, offset in wanted.items()
        }

    async def offsets(
        self, node: int, places: Iterable[TopicPartition], *, at: int, isolation: int = 0
    ) -> dict[TopicPartition, Offset]:
        """As of `ClusterClient`; a timestamp is not looked up, but is one of the beginning."""
        await self._request("offsets")
        found = {}
        for place in places:
            log = self.logs.get(place)
            if log is None:
                found[place] = Offset(-1, UNKNOWN_TOPIC)
            elif at == LATEST:
                found[place] = Offset(log.stable if isolation == READ_COMMITTED else log.high_watermark, 0)
            else:
                assert at in (EARLIEST, EARLIEST_LOCAL) or at >= 0
                found[place] = Offset(log.start, 0)
        return found

    async def in_order(self, node: Node, *asking: Coroutine[Any, Any, Any]) -> list[Any]:
        """As of `ClusterClient`."""
        return await self.side_by_side(*asking)

    async def side_by_side(self, *asking: Coroutine[Any, Any, Any]) -> list[Any]:
        """As of `ClusterClient`."""
        under_way = [self.loop.call_soon_with_future(one) for one in asking]
        return [await one for one in under_way]

    async def log_ends(self, node: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """As of `ClusterClient`."""
        await self._request("log_ends")
        return {place: Offset(self.logs[place].end, 0) for place in places if place in self.logs}

    async def producers(
        self, node: int, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ProducerState | int | None]:
        """As of `ClusterClient`."""
        await self._request("producers")
        found: dict[TopicPartition, ProducerState | int | None] = dict.fromkeys(wanted)
        return found | described_producers(self._described_producers(wanted), wanted)

    def _described_producers(self, wanted: Mapping[TopicPartition, int]) -> DescribeProducersResponse:
        topic = DescribeProducersResponse.TopicResponse
        part = topic.PartitionResponse
        topics = []
        for (name, index), producer_id in wanted.items():
            log = self.logs.get((name, index))
            known = None if log is None or log.forgets else log.producers.get(producer_id)
            code = UNKNOWN_TOPIC if log is None else self.producer_errors.get((name, index), 0)
            states = [
                part.ProducerState(
                    producer_id=producer_id, producer_epoch=one.epoch, last_sequence=one.last_sequence, last_timestamp=0
                )
                for one in (known,)
                if one is not None and not code
            ]
            parts = [part(partition_index=index, error_code=code, error_message=None, active_producers=states)]
            topics.append(topic(name=name, partitions=parts))
        return DescribeProducersResponse(throttle_time_ms=0, topics=topics)

    async def forget(self, node: Node, session: FetchSession) -> None:
        """As of `ClusterClient`."""

    # Writing

    async def append(
        self, node: Node, batches: Sequence[tuple[TopicPartition, Stamped]], *, timeout_ms: int
    ) -> list[AppendResult]:
        """As of `ClusterClient`."""
        await self._request("append")
        return [self._append(place, batch) for place, batch in batches]

    def append_at_once(
        self,
        node: Node,
        batches: Sequence[tuple[TopicPartition, Stamped]],
        *,
        heard: Callable[[list[AppendResult] | BaseException], None],
    ) -> bool:
        """As of `ClusterClient`; a request whose leader has moved is refused, all others are answered in order."""
        self.requests["append_at_once"] += 1
        self.sent.append((node, [place for place, _ in batches]))
        fault = self.faults.popleft() if self.faults else None
        lost = kafka_errors.KafkaConnectionError("connection lost")
        if fault is Fault.NOT_SENT:
            self.loop.call_soon(lambda: heard(lost))
            return False
        answers = [] if fault is Fault.REQUEST_LOST else [self._append(place, batch) for place, batch in batches]
        if fault is Fault.NO_ANSWER:
            self.unanswered.append(heard)
            self.loop.call_later(_TIMEOUT_S, lambda: self._give_up([one for one in self.unanswered if one is heard]))
            return True
        self.loop.call_later(self.latency_s, lambda: heard(answers if fault is None else lost))
        return True

    def give_up_unanswered(self) -> None:
        """As of `ClusterClient`."""
        self._give_up(self.unanswered.copy())

    def _give_up(self, unanswered: Iterable[Callable[[list[AppendResult] | BaseException], None]]) -> None:
        for heard in unanswered:
            self.unanswered.remove(heard)
            heard(kafka_errors.KafkaConnectionError("no answer"))

    def _append(self, place: TopicPartition, batch: Stamped) -> AppendResult:
        if self.append_errors[place]:
            return AppendResult(place, self.append_errors[place].popleft(), None, -1)
        if place not in self.logs:
            return AppendResult(place, UNKNOWN_TOPIC, None, -1)
        base_offset, code = self.logs[place].append(batch)
        return AppendResult(place, code, None, base_offset)

    async def _request(self, name: str) -> None:
        self.requests[name] += 1
        await self.loop.sleep(self.latency_s)
