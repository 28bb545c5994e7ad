"""Raw fetch and append: one cluster's connections, on an event loop that both clusters of a flow share.

Uses kafka-python's protocol and network layers. The messages themselves are in `requests`.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mirrorless.clusters import outages
from mirrorless.errors import ClusterError, ClusterUnavailable, without_frames
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.connection_manager import ConnectionManager, Node
from mirrorless.kafka_python.dead_connections import SOCKET_OPTIONS, DeadConnections, end_unanswered
from mirrorless.kafka_python.receive_buffers import ReceiveBuffers
from mirrorless.protocol import requests
from mirrorless.protocol.broker_errors import RETRIABLE, error_for, refusal
from mirrorless.protocol.fetch_session import NOT_KNOWN, Asked
from mirrorless.protocol.known_metadata import KnownMetadata
from mirrorless.protocol.side_by_side import open_connections, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.protocol.fetch_session import FetchSession
    from mirrorless.protocol.requests import AppendResult, Fetched, Offset, ProducerState

EARLIEST = -2
EARLIEST_LOCAL = -4
"""First offset that is not in tiered storage only (KIP-405); brokers that do not know it answer as for the first."""
LATEST = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_RESPONSE_LIMIT_BYTES = 1 << 30
_REQUEST_TIMEOUT_MS = 35_000
"""A little more than the library's own limit as it comes, which begins when a request is written to its socket."""
_METADATA_TIMEOUT_MS = 5_000
_ONE_BATCH_BYTES = 1 << 16
_THROTTLED_ATTEMPTS = 10
_TO_CONNECT = 4
"""At least so many round trips go to a first request: to connect, learn the versions, log in or not, and answer."""


class ClusterClient(KnownMetadata):
    """Connections to one cluster; every coroutine runs on `net` and raises kafka-python's errors.

    Answers are read into `frames`, which no other thread may use. `config` are parameters of kafka-python's
    `KafkaConnectionManager`, and `client_rack`, which is `rack` here. `cluster_id` is what the operator calls the
    cluster, if its own id does not tell it apart (`mirrorless.cluster.id`). `login_refused` says that a broker did not
    let us in: the login was right when the first connections were made, and may have been exchanged since.
    """

    def __init__(
        self,
        net: EventLoop,
        *,
        cluster: str,
        config: Mapping[str, Any],
        cluster_id: str | None = None,
        frames: ReceiveBuffers | None = None,
    ) -> None:
        self.login_refused = False
        self.rack: str = config.get("client_rack", "")
        self._net = net
        self._named = cluster_id
        self._cluster = self.alias = cluster
        self._round_trips: dict[int, float] = {}
        self._manager = ConnectionManager(
            net,
            frames=ReceiveBuffers() if frames is None else frames,
            **{
                **config,
                "socket_options": SOCKET_OPTIONS,
                "receive_message_max_bytes": _RESPONSE_LIMIT_BYTES,
                # The library fails requests above its limit; the copier keeps a limit of its own.
                "max_in_flight_requests_per_connection": 1_000_000,
            },
        )
        DeadConnections(net, self._manager)

    async def connect(self, *, timeout_ms: int, topics: Iterable[str]) -> None:
        """Reach the cluster and learn who leads the partitions of `topics`; raises `ClusterError` in one line.

        Topics that are not there are their partitions' trouble, seen when they are asked for.
        """
        manager = self._manager
        until = time.monotonic() + timeout_ms / 1000
        try:
            # Only these: topics of earlier leases may have been deleted since. Before the bootstrap, which then tells
            # all: whom to ask next is a guess, and might be a broker that hangs.
            manager.track_topics(topics)
            if not manager.connected:
                # Perhaps all brokers have other addresses by now: those that the bootstrap servers tell (KIP-899).
                manager.restart_bootstrap()
            await manager.wait_for(manager.bootstrap_async(timeout_ms, refresh=False), timeout_ms)
            if not all(map(self.partition_count, manager.tracked_topics)):
                await self._update(until)
            places = [(one, number) for one in manager.tracked_topics for number in range(self.partition_count(one))]
            await open_connections(self._net, manager, map(self.leader, places), until=until)
        except (kafka_errors.KafkaTimeoutError, *RETRIABLE) as error:
            manager.restart_bootstrap()  # a failed one may be tried again
            servers = ",".join(manager.config["bootstrap_servers"])
            raise ClusterUnavailable(f"no answer from {servers}: {error}", cluster=self._cluster) from error
        except kafka_errors.KafkaError as error:
            self._note_login(error)
            raise ClusterError(str(error), cluster=self._cluster) from error

    async def learn(self, topics: Iterable[str]) -> None:
        """Learn who leads the partitions of more topics, or of more partitions of a topic that is known."""
        self._manager.track_topics(self._manager.tracked_topics.union(topics))
        await self._update(time.monotonic() + _METADATA_TIMEOUT_MS / 1000)

    async def _update(self, until: float) -> None:
        """Ask for metadata, until some comes or the monotonic time `until`."""
        while True:
            try:
                await self._manager.wait_for(self._manager.cluster.request_update(), _METADATA_TIMEOUT_MS)
                return
            except kafka_errors.UnknownTopicOrPartitionError:
                return
            except RETRIABLE:
                if time.monotonic() > until:
                    raise

    async def ask(self, request: Any, node: Node, *, timeout_ms: int = _REQUEST_TIMEOUT_MS) -> Any:  # noqa: ANN401
        """Send a request and wait for its answer; a broker that says nothing at all loses its connection.

        One that asked to be left alone is not asked before that is over: the library would refuse to send.
        """
        while quiet_s := self.quiet_s(node):
            await self._net.sleep(quiet_s)
        began = time.monotonic()
        answer = self._manager.send(request, node)
        exchanges = 1 if self._manager.is_in_flight(answer, node) else _TO_CONNECT
        try:
            response = await self._answer(answer, node, timeout_ms)
        except kafka_errors.SaslAuthenticationFailedError as error:
            self._note_login(error)
            raise
        broker = node if isinstance(node, int) else node.node
        self._round_trips[broker] = min(self.round_trip_s(broker), (time.monotonic() - began) / exchanges)
        return response

    async def in_order(self, node: Node, *asking: Coroutine[Any, Any, Any]) -> list[Any]:
        """Await requests to `node` that are sent one right after the other; returns their answers.

        A broker processes the requests of a connection in the order in which they were sent, so that each sees what the
        one before saw or something newer, without a round trip for each.
        """
        while quiet_s := self.quiet_s(node):
            await self._net.sleep(quiet_s)  # each would wait for itself, and might be sent before the one before it
        return await self.side_by_side(*asking)

    async def side_by_side(self, *asking: Coroutine[Any, Any, Any]) -> list[Any]:
        """Await coroutines side by side; returns their answers, raises the first error in their order."""
        return await side_by_side(self._net, asking)

    def round_trip_s(self, node: int) -> float:
        """Shortest time that a broker took to answer, about a round trip; infinite as long as it was not asked."""
        return self._round_trips.get(node, math.inf)

    async def _answer(self, answer: Any, node: Node, timeout_ms: int) -> Any:  # noqa: ANN401
        if self._manager.is_in_flight(answer, node):
            return await answer  # the library has its own limit for what was sent
        try:
            return await self._manager.wait_for(answer, timeout_ms)
        except kafka_errors.KafkaTimeoutError as error:
            self._manager.close_at_once(node, error)
            raise

    def quiet_s(self, node: Node) -> float:
        """Seconds that a broker asked to be left alone for, since a quota is used up (KIP-219); 0 if it did not."""
        return self._manager.throttled_s(node)

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
        """Fetch from each wanted place, offset and leader epoch; partitions that come first are served first.

        The epoch is that of the record before the offset, or -1; by it a leader tells a log that was cut (KIP-320).
        Where topic ids are known, a topic that was created again is not mistaken for the one that was (KIP-516). With a
        `session` the answer has what is new since the one before, and the leader takes care who is served first. A
        leader that knows our `rack` may name a replica to read instead (KIP-392).
        """
        ids = self._ids({topic for (topic, _), _, _ in wanted})
        while True:
            asked = Asked(wanted, ids) if session is None else session.ask(wanted, ids)
            request = requests.fetch(
                asked,
                isolation=isolation,
                max_wait_ms=max_wait_ms,
                max_bytes=max_bytes,
                partition_max_bytes=partition_max_bytes,
                rack=rack,
            )
            response = await self.ask(request, node)
            if response.error_code in NOT_KNOWN and asked.names_changes:
                continue
            if response.error_code:
                raise error_for(response.error_code)
            if session is not None:
                session.answered(response.session_id, version=request.API_VERSION)
            return requests.fetched(response, asked.ids)

    async def forget(self, node: Node, session: FetchSession) -> None:
        """Tell a leader that it need not remember this session; one that cannot be reached will forget by itself."""
        if not self._manager.closed and (asked := session.close()) is not None:
            with suppress(kafka_errors.KafkaError):
                await self.ask(requests.fetch(asked), node)

    async def fetch_one(
        self,
        node: int,
        wanted: tuple[TopicPartition, int, int],
        *,
        isolation: int = READ_COMMITTED,
        max_wait_ms: int = 0,
        partition_max_bytes: int = _ONE_BATCH_BYTES,
    ) -> Fetched:
        """Fetch one place from its leader, without our rack; raises `BrokerNotAvailableError` if it names a replica.

        A broker whose quota is used up answers with nothing at all, and is asked again later.
        """
        for _ in range(_THROTTLED_ATTEMPTS):
            fetched = await self.fetch(
                node,
                [wanted],
                isolation=isolation,
                max_wait_ms=max_wait_ms,
                partition_max_bytes=partition_max_bytes,
            )
            if fetched and fetched[0].replica >= 0 and not fetched[0].records and not fetched[0].error_code:
                # A selector of its own does so; the leader has not looked for records (`ReplicaManager.readFromLog`).
                raise kafka_errors.BrokerNotAvailableError(
                    f"{self._cluster} names a replica to a client without a rack"
                )
            if fetched:
                return fetched[0]
        raise kafka_errors.KafkaTimeoutError(f"quotas of {self._cluster} do not let anything through")

    async def append(
        self, node: Node, batches: Sequence[tuple[TopicPartition, Stamped]], *, timeout_ms: int
    ) -> list[AppendResult]:
        """Send one batch for each place, to be acknowledged by all in-sync replicas within `timeout_ms`."""
        ids = self._ids({topic for (topic, _), _ in batches})
        request = requests.produce(batches, ids, timeout_ms=timeout_ms)
        response = await self.ask(request, node, timeout_ms=timeout_ms + _REQUEST_TIMEOUT_MS)
        return requests.appended(response, ids)

    def append_at_once(
        self,
        node: Node,
        batches: Sequence[tuple[TopicPartition, Stamped]],
        *,
        heard: Callable[[list[AppendResult] | BaseException], None],
    ) -> bool:
        """As `append`, without a task: `heard` receives the answers, or the error in their stead, and must not raise.

        The replicas have the cluster's `request.timeout.ms` to take it, as from a Java producer. What is sent over one
        connection is written and heard of in the order of these calls, never within one of them. False if it is not
        sent at all, which `heard` is told a moment later; until then nothing more may be. A broker that asked to be
        left alone refuses.
        """
        ids = self._ids({topic for (topic, _), _ in batches})
        timeout_ms: int = self._manager.config["request_timeout_ms"]
        refused: BaseException | None
        try:
            answer = self._manager.send(requests.produce(batches, ids, timeout_ms=timeout_ms), node)
            refused = answer.exception
        except kafka_errors.KafkaError as error:  # the broker is not known any more, or has refused the login
            refused = without_frames(error)
        if refused is not None:
            self._note_login(refused)
            self._net.call_soon(lambda: heard(refused))
            return False

        def came(response: Any) -> None:  # noqa: ANN401
            try:
                answers = requests.appended(response, ids)
            except KeyError:  # what a callback raises, the library only logs
                heard(ClusterError("the answer to an append names a topic that was not sent", cluster=self._cluster))
            else:
                heard(answers)

        def failed(error: BaseException) -> None:
            self._note_login(error)
            heard(error)

        answer.add_callback(came)
        answer.add_errback(failed)
        if not self._manager.is_in_flight(answer, node):
            self._net.call_soon(self._limit(answer, node, timeout_ms + _REQUEST_TIMEOUT_MS))
        return True

    def _note_login(self, error: BaseException) -> None:
        if isinstance(error, kafka_errors.SaslAuthenticationFailedError):
            self.login_refused = True
            outages.suspect(self.alias, refused=True)

    async def _limit(self, answer: Any, node: Node, timeout_ms: int) -> None:  # noqa: ANN401
        try:
            await self._answer(answer, node, timeout_ms)
        except kafka_errors.KafkaError as error:
            if not answer.is_done:  # the library has lost it
                answer.failure(error)

    async def producers(
        self, node: int, wanted: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ProducerState | int | None]:
        """Ask a leader what it remembers of one producer id on each place (`DescribeProducers`, KIP-664).

        None where it remembers nothing, and everywhere for brokers that cannot be asked: those before 2.8, and managed
        ones that list the API and refuse it. An error code where it does not say.
        """
        found: dict[TopicPartition, ProducerState | int | None] = dict.fromkeys(wanted)
        try:
            response = await self.ask(requests.describe_producers(wanted), node)
        except kafka_errors.IncompatibleBrokerVersion:
            return found
        return found | requests.described_producers(response, wanted)

    async def offsets(
        self, node: int, places: Iterable[TopicPartition], *, at: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, Offset]:
        """First (`EARLIEST`) or next (`LATEST`, the high watermark) offset of each place, from its leader."""
        return requests.listed_offsets(await self.ask(requests.list_offsets(places, at=at, isolation=isolation), node))

    async def log_ends(self, node: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Next offset of each place in its leader's own log, replicated or not."""
        request = requests.list_offsets(places, at=LATEST, isolation=READ_UNCOMMITTED, replica=requests.DEBUGGING)
        return requests.listed_offsets(await self.ask(request, node))

    async def read_each_at(
        self, node: int, wanted: Mapping[TopicPartition, int], *, partition_max_bytes: int = 4 << 20
    ) -> dict[TopicPartition, bytes | memoryview | kafka_errors.KafkaError]:
        """As `read_at` for many places, in as few requests as answers have room; an error in place of what fails."""
        found: dict[TopicPartition, bytes | memoryview | kafka_errors.KafkaError] = {}
        left = dict(wanted)
        while left:
            came: dict[TopicPartition, bytes | memoryview | kafka_errors.KafkaError] = {}
            positions = [(place, offset, -1) for place, offset in left.items()]
            answers = await self.fetch(
                node, positions, isolation=READ_UNCOMMITTED, partition_max_bytes=partition_max_bytes
            )
            for one in answers:
                if one.error_code:
                    came[one.place] = refusal(one.error_code, right="READ", topic=one.place[0])
                elif one.records:
                    came[one.place] = one.records
            if not came:
                # A quota is used up, or the broker has nothing there.
                place, offset = next(iter(left.items()))
                try:
                    came[place] = await self.read_at(node, place, offset)
                except kafka_errors.KafkaError as error:
                    came[place] = without_frames(error)
            found |= came
            left = {place: offset for place, offset in left.items() if place not in came}
        return found

    async def read_at(self, node: int, place: TopicPartition, offset: int) -> bytes | memoryview:
        """What the leader `node` holds of one partition from the batch with `offset` on, uncommitted."""
        fetched = await self.fetch_one(node, (place, offset, -1), isolation=READ_UNCOMMITTED)
        if fetched.error_code:
            raise refusal(fetched.error_code, right="READ", topic=place[0])
        return fetched.records

    def give_up_unanswered(self) -> None:
        """End the connections with requests that are not answered: none of them reaches a broker later."""
        end_unanswered(self._manager, "the request was given up, because it was not answered in time")

    def close(self) -> None:
        """Close every connection."""
        self._manager.close()
