"""What the brokers of this machine can do at most: fetching record batches, and appending them, alone and side by side.

Both clients know nothing of what they carry. The fetcher reads headers only, to know where to go on; the appender sends
what the fetcher brought, one batch of each partition a request as the protocol has it, by two connections with five
requests in flight each, to be acknowledged by all replicas. No engine that copies is faster than the slower one. Side
by side, a process each, begun at the same moment, they share the processors as the two halves of a copy have to.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections import defaultdict, deque
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from confluent_kafka.admin import AdminClient, NewTopic

from bench.logs import until_gone, until_made
from mirrorless.batches.header import HEADER_BYTES, scan
from mirrorless.batches.stamp import Stamped, body_of
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.kafka_python.connection_manager import ExtraConnection
from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import LATEST, ClusterClient
from mirrorless.settings import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.connection_manager import Node
    from mirrorless.local.embedded_kafka import EmbeddedCluster

    Ready = Callable[[], object]
    """Called when everything is there that a client needs to begin; returns when it shall."""

_FETCHES: Final = 2
_APPENDS: Final = 5
_REQUEST_BYTES: Final = 2 << 20
_TIMEOUT_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that a topic took to be fetched, to be appended elsewhere, and to be both at the same time."""

    fetch_s: float
    append_s: float
    both_s: float

    @property
    def slower_s(self) -> float:
        """Seconds of the slower one."""
        return max(self.fetch_s, self.append_s)


def fastest(found: Sequence[Limits]) -> Limits:
    """The least of each of several measurements."""
    return _of_each(found, min)


def median(found: Sequence[Limits]) -> Limits:
    """The one in the middle of each of several measurements."""
    return _of_each(found, statistics.median)


def _of_each(found: Sequence[Limits], chosen: Callable[[list[float]], float]) -> Limits:
    both_s = chosen([one.both_s for one in found])  # what both take together bounds what each takes alone
    return Limits(
        fetch_s=min(both_s, chosen([one.fetch_s for one in found])),
        append_s=min(both_s, chosen([one.append_s for one in found])),
        both_s=both_s,
    )


def _at_once() -> None:
    """Begin without waiting for anybody."""


def measure(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, partitions: int, config: Mapping[str, str]
) -> Limits:
    """Fetch a whole topic from the source's only broker, append it to a topic of the target's, then do both at once.

    `config` is the topic's, for the target's topics as well.
    """
    batches = _batches(source, topic, partitions)
    # Measured without keeping what comes, as a copier does not: new memory for it all costs as much as reading it.
    fetch_s = _run(source, "consumer", topic, partial(_fetch, topic, partitions, None))
    with _scratch(target, partitions, config) as scratch:
        again = {partition: deque(many) for partition, many in batches.items()}
        append_s = _run(target, "producer", scratch, partial(_append, scratch, again))
    with _scratch(target, partitions, config) as scratch:
        both_s = _side_by_side(
            lambda ready: _run(source, "consumer", topic, partial(_fetch, topic, partitions, None, ready=ready)),
            lambda ready: _run(target, "producer", scratch, partial(_append, scratch, batches, ready=ready)),
        )
    return Limits(fetch_s=fetch_s, append_s=append_s, both_s=both_s)


def repeat(cluster: EmbeddedCluster, topic: str, partitions: int, times: int) -> None:
    """Append all batches of a topic to it again, so often: faster than a producer makes them.

    The topic's batches have no producer id, so that the broker takes each again.
    """
    batches = _batches(cluster, topic, partitions)
    again = {partition: deque([*many] * times) for partition, many in batches.items()}
    _run(cluster, "producer", topic, partial(_append, topic, again))


def _batches(cluster: EmbeddedCluster, topic: str, partitions: int) -> dict[int, deque[Stamped]]:
    """Every batch of a topic, by partition, as a producer sends it."""
    fetched: list[tuple[int, bytes | memoryview]] = []
    _run(cluster, "consumer", topic, partial(_fetch, topic, partitions, fetched))
    batches: dict[int, deque[Stamped]] = defaultdict(deque)
    for partition, records in fetched:
        for header, at in scan(records):
            # A producer's offsets begin at 0; they are not under the checksum.
            head = bytes(8) + records[at + 8 : at + HEADER_BYTES]
            batches[partition].append(Stamped(head, body_of(records, at, header), header.size_bytes))
    return batches


@contextmanager
def _scratch(target: EmbeddedCluster, partitions: int, config: Mapping[str, str]) -> Iterator[str]:
    topic = f"limit-{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": target.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1, config=dict(config))])[topic].result()
    until_made(target, topic, partitions)
    yield topic
    admin.delete_topics([topic])[topic].result()
    until_gone(target, topic)  # else the next one is measured beside it


def _side_by_side(*clients: Callable[[Ready], float]) -> float:
    """Seconds until the last one is through; each begins when all say that they are ready."""
    forks = multiprocessing.get_context("fork")  # what is to be appended is there already
    together, seconds = forks.Barrier(len(clients)), forks.SimpleQueue()

    def one(client: Callable[[Ready], float]) -> None:
        seconds.put(client(partial(together.wait, _TIMEOUT_MS / 1000)))
        os._exit(0)  # the clients that this process was forked with are not its own to close

    processes = [forks.Process(target=one, args=(client,)) for client in clients]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    slowest: float = max(seconds.get() for _ in processes)
    return slowest


def _run(
    cluster: EmbeddedCluster,
    role: Literal["consumer", "producer"],
    topic: str,
    work: Callable[[EventLoop, ClusterClient], Coroutine[Any, Any, float]],
) -> float:
    net = EventLoop()
    end = Cluster(alias="only", bootstrap_servers=cluster.bootstrap_servers, client=cluster.client_settings())
    wire = ClusterClient(net, cluster="only", config=for_kafka_python(end, role=role))

    async def whole() -> float:
        await wire.connect(timeout_ms=_TIMEOUT_MS, topics=[topic])
        return await work(net, wire)

    try:
        seconds: float = net.run(whole)
        return seconds
    finally:
        wire.close()
        net.close()


async def _fetch(
    topic: str,
    partitions: int,
    fetched: list[tuple[int, bytes | memoryview]] | None,
    net: EventLoop,
    wire: ClusterClient,
    *,
    ready: Ready = _at_once,
) -> float:
    places = [(topic, number) for number in range(partitions)]
    node = await _only(net, wire, topic)
    ends = {place: one.offset for place, one in (await wire.offsets(node, places, at=LATEST)).items()}
    following = dict.fromkeys(places, 0)
    ready()
    began = time.monotonic()

    async def lane(mine: deque[TopicPartition]) -> None:
        while mine:
            wanted = [(place, following[place], -1) for place in mine]
            for got in await wire.fetch(node, wanted, max_wait_ms=100):
                assert not got.error_code, got.error_code
                last = None
                for header, _ in scan(got.records):
                    last = header
                if last is None:
                    continue
                if fetched is not None:
                    fetched.append((got.place[1], got.records))
                following[got.place] = last.last_offset + 1
                mine.remove(got.place)
                if following[got.place] < ends[got.place]:
                    mine.append(got.place)  # the others first

    lanes = [deque(place for place in places[number::_FETCHES] if ends[place]) for number in range(_FETCHES)]
    await _together(net, wire, [lane(mine) for mine in lanes])
    return time.monotonic() - began


async def _append(
    topic: str, batches: dict[int, deque[Stamped]], net: EventLoop, wire: ClusterClient, *, ready: Ready = _at_once
) -> float:
    node = await _only(net, wire, topic)
    connections: tuple[Node, Node] = node, ExtraConnection(node, 2)
    places = [(topic, partition) for partition in batches]
    halves = [{place: batches[place[1]] for place in places[number::2]} for number in range(2)]
    while any(one.error_code for one in (await wire.offsets(node, places, at=LATEST)).values()):
        await net.sleep(0.2)  # the broker is still busy with the topic that was just made
    ready()
    began = time.monotonic()

    async def lane(connection: Node, left: dict[TopicPartition, deque[Stamped]]) -> None:
        while left:
            request: list[tuple[TopicPartition, Stamped]] = []
            size = 0
            for place in list(left):
                if request and size + left[place][0].size_bytes > _REQUEST_BYTES:
                    break
                many = left.pop(place)
                request.append((place, many.popleft()))
                size += request[-1][1].size_bytes
                if many:
                    left[place] = many  # behind the others
            for answer in await wire.append(connection, request, timeout_ms=_TIMEOUT_MS):
                assert not answer.error_code, (answer.error_code, answer.error_message)

    await _together(net, wire, [lane(*one) for one in zip(connections, halves, strict=True) for _ in range(_APPENDS)])
    return time.monotonic() - began


async def _only(net: EventLoop, wire: ClusterClient, topic: str) -> int:
    """Broker id of the only broker, known once it has a topic's partitions."""
    until = time.monotonic() + _TIMEOUT_MS / 1000
    while (node := wire.leader((topic, 0))) is None:
        assert time.monotonic() < until, f"{topic}-0 has no leader"
        wire.refresh_leaders()
        await net.sleep(0.2)
    return node


async def _together(net: EventLoop, wire: ClusterClient, work: list[Coroutine[Any, Any, None]]) -> None:
    """Wait for coroutines that run side by side on the wire's event loop; the first failure is raised."""
    for future in [net.call_soon_with_future(one) for one in work]:
        await wire._manager.wait_for(future, _TIMEOUT_MS * 10)
