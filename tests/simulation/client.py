"""In place of `ClusterClient`: one process's connections to the brokers of a simulated cluster."""

# ruff: noqa: ARG002 -- it takes what the real one takes
from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mirrorless.errors import ClusterUnavailable
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.connection_manager import ExtraConnection
from mirrorless.kafka_python.structs import Future
from mirrorless.protocol.cluster_client import READ_COMMITTED, READ_UNCOMMITTED
from tests.simulation import answers
from tests.simulation.cluster import NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from uuid import UUID

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.connection_manager import Node
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.fetch_session import FetchSession
    from mirrorless.protocol.requests import AppendResult, Fetched, Offset, ProducerState
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.world import Process

REQUEST_TIMEOUT_S = 35.0
METADATA_MAX_AGE_S = 300.0
_REFRESH_S = 0.1
_FULL = 0.05


class Link:
    """The network between a process and a cluster: what it does to the next requests.

    `lose_requests` and `lose_answers` count requests whose connection is cut before or after the broker has read them;
    what was sent after them over the same connection is lost too, until the process has noticed.
    Until `held_until` nothing arrives on either side; `slow_s` is added to each way.
    """

    def __init__(self, process: Process, cluster: SimulatedCluster) -> None:
        self.process = process
        self.cluster = cluster
        self.lose_requests = self.lose_answers = 0
        self.held_until = 0.0
        self.slow_s = 0.0
        self._arrives: dict[object, float] = {}
        self._answered: dict[object, float] = {}
        self._under_way: dict[int, _Request] = {}
        self._number = 0
        self._broken: dict[object, bool] = {}

    def send(self, node: Node, carry_out: Callable[[Callable[[Any], None]], None]) -> Future:
        """Send a request: `carry_out` is what the broker does, and hands its answer on."""
        process = self.process
        world, future = process.world, Future()
        self._number += 1
        one = _Request(self, self._number, node, future, carry_out)
        self._under_way[one.number] = one
        world.events["requests"] += 1
        if self.lose_requests > 0 or node in self._broken:
            if node not in self._broken:
                self.lose_requests -= 1
                self._broken[node] = True
            world.events["requests lost"] += 1
            world.later(self._delay(), process, one.lost)
            return future
        now = world.now
        at = now + self._delay()
        if (earlier := self._arrives.get(node, 0.0)) > at:
            at = earlier
        self._arrives[node] = at
        world.later(at - now, None, one.arrive)
        if at - now > 1.0 or self.held_until > now or self.slow_s:
            self._limit(one.number)
        return future

    def _limit(self, number: int) -> None:
        def give_up() -> None:
            if number in self._under_way:
                self._give_up(number)

        self.process.world.later(REQUEST_TIMEOUT_S, self.process, give_up)

    def _give_up(self, number: int) -> None:
        one = self._under_way.pop(number)
        one.given_up = True
        if not one.future.is_done:
            one.future.failure(kafka_errors.KafkaConnectionError("no answer"))

    def give_up_all(self) -> None:
        """End the connections: what has not arrived does not arrive any more."""
        for number in list(self._under_way):
            self._give_up(number)

    def drop(self) -> None:
        """Drop what the link holds back, as sockets do that are reset on close."""
        if self.held_until > self.process.world.now:
            self.give_up_all()

    def _delay(self) -> float:
        world = self.process.world
        delay = 0.0005 + 0.002 * world.random.random() + self.slow_s
        return delay if self.held_until <= world.now else delay + self.held_until - world.now


class _Request:
    """A request under way; `given_up` is one whose connection ended before it arrived."""

    __slots__ = ("carry_out", "future", "given_up", "link", "node", "number")

    def __init__(
        self, link: Link, number: int, node: Node, future: Future, carry_out: Callable[[Callable[[Any], None]], None]
    ) -> None:
        self.link = link
        self.number = number
        self.node = node
        self.future = future
        self.carry_out = carry_out
        self.given_up = False

    def arrive(self) -> None:
        """Let the broker act on it."""
        if self.given_up:
            return
        link, node = self.link, self.node
        broker = node.node if isinstance(node, ExtraConnection) else node
        if link.cluster.down and broker % NAMES in link.cluster.down:
            link.process.world.later(link._delay(), link.process, self.lost)
        else:
            self.carry_out(self.answered)

    def answered(self, answer: Any) -> None:  # noqa: ANN401
        """Send the answer back."""
        link, node = self.link, self.node
        process = link.process
        world = process.world
        if link.lose_answers > 0 or node in link._broken:
            if node not in link._broken:
                link.lose_answers -= 1
                link._broken[node] = True
            world.events["answers lost"] += 1
            world.later(link._delay(), process, self.lost)
            return
        at = world.now + link._delay()
        if (earlier := link._answered.get(node, 0.0)) > at:
            at = earlier
        link._answered[node] = at
        world.later(at - world.now, process, lambda: self._end(answer))

    def _end(self, answer: Any) -> None:  # noqa: ANN401
        if self.link._under_way.pop(self.number, None) is not None and not self.future.is_done:
            self.future.success(answer)

    def lost(self) -> None:
        """Let the process notice that the connection is cut."""
        self.link._broken.pop(self.node, None)
        if self.link._under_way.pop(self.number, None) is not None and not self.future.is_done:
            self.future.failure(kafka_errors.KafkaConnectionError("connection lost"))


class SimulatedClient:
    """What `ClusterClient` does, over a link; what it knows of the cluster is as old as its last metadata."""

    def __init__(self, process: Process, cluster: SimulatedCluster) -> None:
        self.alias = cluster.alias
        self.rack = ""
        self.login_refused = False
        self.metadata_max_age_s = METADATA_MAX_AGE_S
        self.link = Link(process, cluster)
        self._process = process
        self._cluster = cluster
        self._tracked: set[str] = set()
        self._known: dict[str, tuple[UUID, list[int | None]]] = {}
        self._refreshing = False
        self._closed = False

    @property
    def client(self) -> ClusterClient:
        """Itself, as what it stands for."""
        return cast("ClusterClient", self)

    @property
    def cluster_id(self) -> str:
        """As of `ClusterClient`."""
        return self._cluster.id

    reported_id = cluster_id

    # Metadata

    async def connect(self, *, timeout_ms: int, topics: Iterable[str]) -> None:
        """As of `ClusterClient`."""
        try:
            await self.learn(topics)
        except kafka_errors.KafkaError as error:
            raise ClusterUnavailable(f"no answer: {error}", cluster=self.alias) from error

    async def learn(self, topics: Iterable[str]) -> None:
        """As of `ClusterClient`."""
        self._tracked.update(topics)
        nodes = [node for node in (1, 2, 3) if node not in self._cluster.down] or [1]
        self._known = await self.link.send(nodes[0], lambda answer: answer(self._metadata()))

    def _metadata(self) -> dict[str, tuple[UUID, list[int | None]]]:
        topics = self._cluster.topics
        return {
            name: (topics[name].id, [part.leader for part in topics[name].partitions])
            for name in self._tracked
            if name in topics
        }

    def refresh_leaders(self) -> None:
        """As of `ClusterClient`."""
        if not self._refreshing and not self._closed:
            self._refreshing = True
            self._process.call_soon(self._refresh())

    async def _refresh(self) -> None:
        await self._process.sleep(_REFRESH_S)
        try:
            await self.learn(())
        except kafka_errors.KafkaError:
            pass
        finally:
            self._refreshing = False

    def brokers(self) -> list[int]:
        """As of `ClusterClient`."""
        return [1, 2, 3]

    def leader(self, place: TopicPartition) -> int | None:
        """As of `ClusterClient`."""
        known = self._known.get(place[0])
        return known[1][place[1]] if known is not None and place[1] < len(known[1]) else None

    def topic_id(self, topic: str) -> UUID | None:
        """As of `ClusterClient`."""
        known = self._known.get(topic)
        return None if known is None else known[0]

    def partition_count(self, topic: str) -> int:
        """As of `ClusterClient`."""
        known = self._known.get(topic)
        return 0 if known is None else len(known[1])

    def replicas(self, place: TopicPartition) -> tuple[int, int] | None:
        """As of `ClusterClient`."""
        return (3, 3)

    def has_replica(self, place: TopicPartition, node: int) -> bool:
        """As of `ClusterClient`."""
        return True

    def quiet_s(self, node: Node) -> float:
        """As of `ClusterClient`."""
        return 0.0

    def round_trip_s(self, node: int) -> float:
        """As of `ClusterClient`."""
        return 0.003

    # Requests

    async def ask(self, request: Any, node: Node, *, timeout_ms: int = 0) -> Any:  # noqa: ANN401
        """As of `ClusterClient`, for the requests of `answers`."""
        broker = _broker(node)
        return await self.link.send(node, lambda answer: answer(answers.to(self._cluster, broker, request)))

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
        ids: Mapping[str, UUID] = {name: known[0] for name, known in self._known.items()}
        broker, cluster, world = _broker(node), self._cluster, self._process.world

        def look() -> list[Fetched]:
            # A response that is full leaves out the records of all partitions but the first one with any.
            full = len(wanted) > 1 and world.random.random() < _FULL
            return [
                cluster.fetched(
                    place,
                    broker,
                    offset=offset,
                    leader_epoch=epoch,
                    topic_id=ids.get(place[0]),
                    isolation=isolation,
                    max_bytes=0 if full and at else partition_max_bytes,
                )
                for at, (place, offset, epoch) in enumerate(wanted)
            ]

        def carry_out(answer: Callable[[Any], None]) -> None:
            found = look()
            if not max_wait_ms or any(
                one.records or one.error_code or one.diverges_at is not None or one.last_stable_offset < offset
                for one, (_, offset, _) in zip(found, wanted, strict=True)
            ):
                answer(found)
                return
            done = [False]

            def again() -> None:
                if not done[0]:
                    done[0] = True
                    answer(look())

            for place, _, _ in wanted:
                cluster.topics[place[0]].partitions[place[1]].waiting.append(again)
            world.later(max_wait_ms / 1000, None, again)

        answer: list[Fetched] = await self.link.send(node, carry_out)
        return answer

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
        (one,) = await self.fetch(
            node, [wanted], isolation=isolation, max_wait_ms=max_wait_ms, partition_max_bytes=partition_max_bytes
        )
        return one

    async def read_at(self, node: int, place: TopicPartition, offset: int) -> bytes:
        """As of `ClusterClient`."""
        one = await self.fetch_one(node, (place, offset, -1), isolation=READ_UNCOMMITTED)
        if one.error_code:
            raise answers.error(one.error_code)
        return bytes(one.records)

    async def read_each_at(
        self, node: int, wanted: Mapping[TopicPartition, int], *, partition_max_bytes: int = 4 << 20
    ) -> dict[TopicPartition, bytes | kafka_errors.KafkaError]:
        """As of `ClusterClient`."""
        if not wanted:
            return {}
        found = await self.fetch(
            node,
            [(place, offset, -1) for place, offset in wanted.items()],
            isolation=READ_UNCOMMITTED,
            partition_max_bytes=partition_max_bytes,
        )
        return {one.place: answers.error(one.error_code) if one.error_code else bytes(one.records) for one in found}

    async def offsets(
        self, node: int, places: Iterable[TopicPartition], *, at: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, Offset]:
        """As of `ClusterClient`."""
        some, cluster = list(places), self._cluster

        def carry_out(answer: Callable[[Any], None]) -> None:
            answer({place: cluster.listed(place, node, at=at, isolation=isolation) for place in some})

        found: dict[TopicPartition, Offset] = await self.link.send(node, carry_out)
        return found

    async def log_ends(self, node: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """As of `ClusterClient`."""
        some, cluster = list(places), self._cluster
        found: dict[TopicPartition, Offset] = await self.link.send(
            node, lambda answer: answer({place: cluster.log_end(place, node) for place in some})
        )
        return found

    async def producers(
        self, node: int, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ProducerState | int | None]:
        """As of `ClusterClient`."""
        found: dict[TopicPartition, ProducerState | int | None] = await self.link.send(
            node, lambda answer: answer(self._cluster.producers(node, wanted))
        )
        return found

    async def in_order(self, node: Node, *asking: Coroutine[Any, Any, Any]) -> list[Any]:
        """As of `ClusterClient`."""
        return await self.side_by_side(*asking)

    async def side_by_side(self, *asking: Coroutine[Any, Any, Any]) -> list[Any]:
        """As of `ClusterClient`."""
        under_way = [self._process.call_soon_with_future(one) for one in asking]
        return [await one for one in under_way]

    async def forget(self, node: Node, session: FetchSession) -> None:
        """As of `ClusterClient`."""

    async def append(
        self, node: Node, batches: Sequence[tuple[TopicPartition, Stamped]], *, timeout_ms: int
    ) -> list[AppendResult]:
        """As of `ClusterClient`."""
        answer: list[AppendResult] = await self._produce(node, batches)
        return answer

    def append_at_once(
        self,
        node: Node,
        batches: Sequence[tuple[TopicPartition, Stamped]],
        *,
        heard: Callable[[list[AppendResult] | BaseException], None],
    ) -> bool:
        """As of `ClusterClient`."""
        future = self._produce(node, batches)
        future.add_callback(heard)
        future.add_errback(heard)
        return True

    def _produce(self, node: Node, batches: Sequence[tuple[TopicPartition, Stamped]]) -> Future:
        some = list(batches)
        known = {place[0]: self.topic_id(place[0]) for place, _ in some}
        ids: Mapping[str, UUID | None] = known if all(known.values()) else {}
        return self.link.send(node, lambda answer: self._cluster.append(_broker(node), some, ids, answer))

    def give_up_unanswered(self) -> None:
        """As of `ClusterClient`."""
        self.link.give_up_all()

    def close(self) -> None:
        """As of `ClusterClient`."""
        self._closed = True
        self.link.give_up_all()


def _broker(node: Node) -> int:
    return node.node if isinstance(node, ExtraConnection) else node
