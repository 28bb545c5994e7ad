"""Raw fetch and append: one cluster's connections, on an event loop that both clusters of a flow share.

Uses kafka-python's protocol and network layers, the only ones in Python that hand out record batches (design,
section 3). Fetch up to version 11 and Produce up to version 12 name topics; later ones use topic ids.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest
from kafka.protocol.producer.produce import ProduceRequest
from kafka.structs import TopicPartition

from mirrorless.errors import ClusterError, ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka.net.selector import NetworkSelector

EARLIEST = -2
EARLIEST_LOCAL = -4
"""First offset that is not in tiered storage only (KIP-405); brokers that do not know it answer as for the first."""
LATEST = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
RETRIABLE = (kafka_errors.RetriableError, kafka_errors.InvalidMetadataError, kafka_errors.BrokerNotAvailableError)
_RESPONSE_LIMIT_BYTES = 1 << 30
_REQUEST_TIMEOUT_MS = 35_000
"""A little more than the library's own limit, which begins when a request is written to its socket."""
_METADATA_TIMEOUT_MS = 5_000
_ACKS_ALL = -1
_ANY_LEADER_EPOCH = -1

Place = tuple[str, int]
"""Topic and partition."""


class Fetched(NamedTuple):
    """One partition of a fetch response; `aborted` are pairs of producer id and first offset."""

    place: Place
    error_code: int
    last_stable_offset: int
    log_start: int
    aborted: list[tuple[int, int]]
    records: bytes | memoryview


class Appended(NamedTuple):
    """One partition of a produce response."""

    place: Place
    error_code: int
    error_message: str | None
    base_offset: int


class ProducerState(NamedTuple):
    """What a leader remembers of a producer on one partition."""

    epoch: int
    last_sequence: int


class Offset(NamedTuple):
    """An offset of one place, or the error code in its stead."""

    offset: int
    error_code: int


class Wire:
    """Connections to one cluster; every coroutine runs on `net` and raises kafka-python's errors.

    `config` are parameters of kafka-python's `KafkaConnectionManager`.
    """

    def __init__(self, net: NetworkSelector, *, cluster: str, config: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._manager: Any = KafkaConnectionManager(
            net,
            **{
                **config,
                "receive_message_max_bytes": _RESPONSE_LIMIT_BYTES,
                # The library fails requests above its limit; the copier keeps a limit of its own.
                "max_in_flight_requests_per_connection": 1_000_000,
            },
        )
        # Asking for metadata must never create a topic.
        self._manager.cluster.config["allow_auto_create_topics"] = False

    async def connect(self, *, timeout_ms: int, topics: Iterable[str]) -> None:
        """Reach the cluster and learn who leads the partitions of `topics`; raises `ClusterError` in one line.

        Topics that are not there are their partitions' trouble, seen when they are asked for.
        """
        manager, cluster = self._manager, self._manager.cluster
        until = time.monotonic() + timeout_ms / 1000
        try:
            # The library's own time limit does not cover a TLS handshake.
            await manager.wait_for(manager.bootstrap_async(timeout_ms, refresh=False), timeout_ms)
            # Not by set_topics: it would keep asking for topics of earlier leases that were deleted since.
            cluster._topics = set(topics)
            while any(cluster.partitions_for_topic(topic) is None for topic in cluster._topics):
                try:
                    await manager.wait_for(cluster.request_update(), _METADATA_TIMEOUT_MS)
                    break
                except kafka_errors.UnknownTopicOrPartitionError:
                    break
                except RETRIABLE:
                    if time.monotonic() > until:
                        raise
        except (kafka_errors.KafkaTimeoutError, *RETRIABLE) as error:
            manager._bootstrap_future = None  # a failed bootstrap may be tried again
            servers = ",".join(manager.config["bootstrap_servers"])
            raise ClusterUnavailable(f"no answer from {servers}: {error}", cluster=self._cluster) from error
        except kafka_errors.KafkaError as error:
            raise ClusterError(str(error), cluster=self._cluster) from error

    async def _ask(self, request: Any, node: int, *, timeout_ms: int = _REQUEST_TIMEOUT_MS) -> Any:  # noqa: ANN401
        """Send a request and wait for its answer; a broker that says nothing at all loses its connection."""
        try:
            return await self._manager.wait_for(self._manager.send(request, node), timeout_ms)
        except kafka_errors.KafkaTimeoutError:
            self._manager.close(node)
            raise

    @property
    def cluster_id(self) -> str:
        """The cluster's own id, known after `connect`."""
        return str(self._manager.cluster.cluster_id)

    def leader(self, place: Place) -> int | None:
        """Broker id of the partition's leader, None while there is none or it is not known."""
        node: int | None = self._manager.cluster.leader_for_partition(TopicPartition(*place))
        return None if node is None or node < 0 else node

    def partition_count(self, topic: str) -> int:
        """Number of partitions of a topic given to `connect`, 0 if it is unknown."""
        return len(self._manager.cluster.partitions_for_topic(topic) or ())

    def refresh_leaders(self) -> None:
        """Ask for metadata again, soon."""
        self._manager.cluster.request_update()

    async def fetch(
        self,
        node: int,
        wanted: Sequence[tuple[Place, int]],
        *,
        isolation: int = READ_COMMITTED,
        max_wait_ms: int = 0,
        max_bytes: int = 32 << 20,
        partition_max_bytes: int = 4 << 20,
    ) -> list[Fetched]:
        """Fetch from each wanted place and offset; partitions that come first are served first."""
        by_topic: dict[str, list[Any]] = defaultdict(list)
        for (topic, partition), offset in wanted:
            by_topic[topic].append(
                FetchRequest.FetchTopic.FetchPartition(
                    partition=partition,
                    current_leader_epoch=_ANY_LEADER_EPOCH,
                    fetch_offset=offset,
                    log_start_offset=-1,
                    partition_max_bytes=partition_max_bytes,
                )
            )
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            isolation_level=isolation,
            session_id=0,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=parts) for topic, parts in by_topic.items()],
            forgotten_topics_data=[],
            rack_id="",
            max_version=11,
        )
        response = await self._ask(request, node)
        if response.error_code:
            raise error_for(response.error_code)
        return [
            Fetched(
                (topic.topic, part.partition_index),
                part.error_code,
                part.last_stable_offset,
                part.log_start_offset,
                [(aborted.producer_id, aborted.first_offset) for aborted in part.aborted_transactions or ()],
                part.records or b"",
            )
            for topic in response.responses
            for part in topic.partitions
        ]

    async def append(self, node: int, batches: Sequence[tuple[Place, bytes]], *, timeout_ms: int) -> list[Appended]:
        """Send one batch for each place, to be acknowledged by all in-sync replicas within `timeout_ms`."""
        by_topic: dict[str, list[Any]] = defaultdict(list)
        for (topic, partition), batch in batches:
            by_topic[topic].append(ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=batch))
        request = ProduceRequest(
            transactional_id=None,
            acks=_ACKS_ALL,
            timeout_ms=timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(name=topic, partition_data=parts) for topic, parts in by_topic.items()
            ],
            max_version=12,
        )
        response = await self._ask(request, node, timeout_ms=timeout_ms + _REQUEST_TIMEOUT_MS)
        return [
            Appended((topic.name, part.index), part.error_code, part.error_message, part.base_offset)
            for topic in response.responses
            for part in topic.partition_responses
        ]

    async def producers(self, node: int, wanted: Mapping[Place, int]) -> dict[Place, ProducerState | int | None]:
        """Ask a leader what it remembers of one producer id on each place (`DescribeProducers`, KIP-664).

        None where it remembers nothing, and everywhere for brokers before 2.8, which cannot be asked; an error code
        where it does not say.
        """
        found: dict[Place, ProducerState | int | None] = dict.fromkeys(wanted)
        request = DescribeProducersRequest(
            topics=[
                DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=partitions)
                for topic, partitions in _by_topic(wanted).items()
            ]
        )
        try:
            response = await self._ask(request, node)
        except kafka_errors.IncompatibleBrokerVersion:
            return found
        for topic in response.topics:
            for part in topic.partitions:
                place = (topic.name, part.partition_index)
                if part.error_code:
                    found[place] = part.error_code
                for state in part.active_producers:
                    if state.producer_id == wanted[place] and state.last_sequence >= 0:
                        found[place] = ProducerState(state.producer_epoch, state.last_sequence)
        return found

    async def offsets(
        self, node: int, places: Iterable[Place], *, at: int, isolation: int = READ_UNCOMMITTED
    ) -> dict[Place, Offset]:
        """First (`EARLIEST`) or next (`LATEST`, the high watermark) offset of each place, from its leader."""
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                            partition_index=partition, current_leader_epoch=_ANY_LEADER_EPOCH, timestamp=at
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in _by_topic(places).items()
            ],
        )
        response = await self._ask(request, node)
        return {
            (topic.name, part.partition_index): Offset(part.offset, part.error_code)
            for topic in response.topics
            for part in topic.partitions
        }

    def close(self) -> None:
        """Close every connection."""
        self._manager.close()


def error_for(code: int) -> type[Exception]:
    """kafka-python's class for a broker's error code."""
    found: type[Exception] = kafka_errors.for_code(code)
    return found


def error_name(code: int) -> str:
    """An error code as operators know it, such as `OUT_OF_ORDER_SEQUENCE_NUMBER (45)`."""
    message = getattr(error_for(code), "message", None) or error_for(code).__name__
    return f"{message} ({code})"


def _by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = defaultdict(list)
    for topic, partition in places:
        grouped[topic].append(partition)
    return grouped
