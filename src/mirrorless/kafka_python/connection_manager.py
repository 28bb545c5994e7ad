"""Connections to one cluster, one or more for each broker, and what `ClusterClient` needs to know of them.

kafka-python has one for each broker, and picks at random the broker that it asks for metadata; both are changed here.
"""

from __future__ import annotations

import itertools
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka.cluster import ClusterMetadata
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager

from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.transport import Plain, Tls, reset_on_close

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable

    from mirrorless.kafka_python.receive_buffers import ReceiveBuffers

_BOOTSTRAP_PARTS = 3
_SOON_S = 0.001


class ExtraConnection(NamedTuple):
    """Names one more connection to the broker `node`; `number` is 2 or more, since the first is named by the id."""

    node: int
    number: int

    def __repr__(self) -> str:
        return f"{self.node} (connection {self.number})"  # as errors name brokers


Node = int | ExtraConnection
"""What a connection is to: a broker's id, or one more connection to it."""


class _Broker(NamedTuple):
    node_id: ExtraConnection
    host: str
    port: int
    rack: str | None


class _Metadata(ClusterMetadata):
    """Knows every broker by several names: the library has one connection for each broker that it knows."""

    def bootstrap_brokers(self) -> list[Any]:
        """Return the next bootstrap server only: the library picks one at random, and might never pick some."""
        if not hasattr(self, "_turns"):
            servers = super().bootstrap_brokers()  # type: ignore[no-untyped-call]
            self._turns = itertools.cycle(random.sample(servers, len(servers)))
        return [next(self._turns)]

    def broker_metadata(self, broker_id: Any) -> Any:  # noqa: ANN401
        """Return the address of a broker, also for an extra connection; None if it is not known."""
        if not isinstance(broker_id, ExtraConnection):
            return super().broker_metadata(broker_id)  # type: ignore[no-untyped-call]
        found: Any = super().broker_metadata(broker_id.node)  # type: ignore[no-untyped-call]
        return None if found is None else _Broker(broker_id, found.host, found.port, found.rack)


class ConnectionManager(KafkaConnectionManager):
    """kafka-python's connections to one cluster, one or more for each broker; responses are read into `frames`."""

    if TYPE_CHECKING:
        # What is used of it, which the library leaves without types.
        config: dict[str, Any]
        bootstrap_async: Callable[..., Any]
        close: Callable[..., None]
        send: Callable[..., Any]
        wait_for: Callable[..., Any]

    def __init__(self, net: Any, *, frames: ReceiveBuffers, **config: Any) -> None:  # noqa: ANN401
        super().__init__(net, **config)  # type: ignore[no-untyped-call]
        self._frames = frames
        self.cluster.__class__ = _Metadata
        # A request for metadata must never create a topic.
        self.cluster.config["allow_auto_create_topics"] = False

    @property
    def connected(self) -> bool:
        """Whether there is any connection."""
        return any(connection.connected for connection in self._conns.values())

    @property
    def tracked_topics(self) -> frozenset[str]:
        """The topics whose metadata is asked for."""
        return frozenset(self.cluster._topics)

    def track_topics(self, topics: Iterable[str]) -> None:
        """Ask for metadata of these topics only, from the next request on.

        Not by the library's `set_topics`, which sends a request at once.
        """
        self.cluster._topics = set(topics)

    def restart_bootstrap(self) -> None:
        """Have the next bootstrap ask the bootstrap servers again."""
        self._bootstrap_future = None

    def close_at_once(self, node: Node, error: Exception) -> None:
        """End a connection, if there is one; the library's `close` first waits until all is written."""
        if (connection := self._conns.get(node)) is not None:
            connection.close(error)

    def is_in_flight(self, answer: Any, node: Node) -> bool:  # noqa: ANN401
        """Whether the request with this future was the last one sent, and does not wait for a connection."""
        connection = self._conns.get(node)
        sent: Any = connection.in_flight_requests if connection is not None else ()
        return bool(sent) and sent[-1][1] is answer

    def throttled_s(self, node: Node) -> float:
        """Seconds for which a broker throttles us, since a quota is used up (KIP-219); 0 if it does not."""
        connection = self._conns.get(node)
        if connection is None or "throttle" not in connection.paused:
            return 0.0
        left: float = connection._throttle_time - time.monotonic()
        return max(_SOON_S, left)

    def replicas(self, topic: str, partition: int) -> tuple[int, int] | None:
        """How many replicas of a partition are in sync, and how many there are; None where that is not known."""
        found: Any = self.cluster._partitions.get(topic, {}).get(partition)
        return None if found is None else (len(found.isr_nodes), len(found.replica_nodes))

    def has_replica(self, topic: str, partition: int, node: int) -> bool:
        """Whether a broker is known, and has a replica of the partition that is not offline.

        The rule of the Java client's `Cluster.nodeIfOnline`.
        """
        found: Any = self.cluster._partitions.get(topic, {}).get(partition)
        if found is None or self.cluster.broker_metadata(node) is None:
            return False
        return node in found.replica_nodes and node not in (found.offline_replicas or ())

    def get_connection(self, node_id: Any, timeout_ms: float | None = None, *how: Any, **named: Any) -> Any:  # noqa: ANN401
        """Return a connection, or open one; with several bootstrap servers, each has a part of the time.

        The library gives all the time that is left to the one it picks.
        """
        if timeout_ms is not None and len(self.cluster._bootstrap_brokers) > 1:
            timeout_ms /= _BOOTSTRAP_PARTS
        return super().get_connection(node_id, timeout_ms, *how, **named)  # type: ignore[no-untyped-call]

    def least_loaded_node(self) -> Any:  # noqa: ANN401
        """Choose the broker to ask for metadata: a connected one without requests, or with the youngest oldest request.

        The library prefers a broker without connection to a busy one, and one that hangs has the fewest requests.
        """
        now = time.monotonic()
        owes_since = {
            node: connection.in_flight_requests[0][2] if connection.in_flight_requests else now
            for node, connection in random.sample(list(self._conns.items()), len(self._conns))
            if isinstance(node, int) and connection.connected and not connection.paused
        }
        if owes_since:
            return max(owes_since, key=owes_since.__getitem__)
        return super().least_loaded_node()  # type: ignore[no-untyped-call]

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:  # noqa: ANN401
        sock = await self._connected(node.host, node.port, until=timeout_at)
        transport: Plain | Tls
        if not self.ssl_enabled:
            transport = Plain(self._net, sock, host=node.host)  # type: ignore[no-untyped-call]
            transport.frames = self._frames
            return transport
        how = {key: value for key, value in self.config.items() if key.startswith("ssl_")}
        transport = Tls(self._net, sock, host=node.host, **how)  # type: ignore[no-untyped-call]
        transport.frames = self._frames
        try:
            await transport.shake_hands(until=timeout_at)
        except Exception as error:
            transport.abort()
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from error
        return transport

    async def _connected(self, host: str, port: int, *, until: float | None) -> socket.socket:
        """Connect to the first address of a host that accepts, with a part of the time for each (KIP-302).

        The library gives the first address all the time, and leaves refused sockets to the garbage collector.
        """
        network: Any = KafkaNetSocket()
        failure: Exception = kafka_errors.KafkaConnectionError(f"{host} has no address")
        found = network.dns_lookup(host, port)
        for left, one in zip(range(len(found), 0, -1), found, strict=True):
            now = time.monotonic()
            try:
                return await self._connected_at(
                    network, one, until=None if until is None else now + (until - now) / left
                )
            except (OSError, kafka_errors.KafkaError) as error:
                failure = error
        raise kafka_errors.KafkaConnectionError(f"{host}:{port} cannot be reached: {failure}")

    async def _connected_at(self, network: Any, found: Any, *, until: float | None) -> socket.socket:  # noqa: ANN401
        family, kind, protocol, _, address = found
        options: Any = self.config["socket_options"]
        sock: socket.socket = network.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            for option in options:
                sock.setsockopt(*option)
            reset_on_close(sock)
            await network.sock_connect(self._net, sock, address, timeout_at=until)
        except BaseException:
            sock.close()
            raise
        return sock
