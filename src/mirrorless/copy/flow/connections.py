"""Connections to both ends of one flow, on one event loop: raw ones, and a reader of the progress topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.clusters.identity import ends_of
from mirrorless.copy.flow.memory_limits import SPARK_WORKER, MemoryLimits
from mirrorless.kafka_python.receive_buffers import ReceiveBuffers
from mirrorless.progress.topic import ProgressTopic
from mirrorless.protocol import clients

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from mirrorless.settings import Flow

_TIMEOUT_MS = 20_000
_Answer = TypeVar("_Answer")


class FlowConnections:
    """Opens nothing before `connect`; connections stay open until `close`."""

    def __init__(self, flow: Flow, memory: MemoryLimits = SPARK_WORKER) -> None:
        self.net = clients.event_loop()
        self.source = clients.cluster_client(
            self.net,
            cluster=flow.source.alias,
            cluster_id=flow.source.cluster_id,
            config=for_kafka_python(flow.source, role="consumer"),
            frames=ReceiveBuffers(memory.frames),
        )
        self.target = clients.cluster_client(
            self.net,
            cluster=flow.target.alias,
            cluster_id=flow.target.cluster_id,
            config=for_kafka_python(flow.target, role="producer"),
        )
        self._confirmed: str | None = None
        self.progress = ProgressTopic(flow, Admin(flow.target))

    def start(self) -> None:
        """Run the event loop between two calls of `run`, in a separate thread."""
        self.net.start()

    def run(self, work: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Run a coroutine to its end."""
        answer: _Answer = self.net.run(work)
        return answer

    async def connect(self, flow: Flow, *, topics: Iterable[str], remote_topics: Iterable[str]) -> None:
        """Connect to both ends; raises `ClusterError`, and `SameClusterError` if there is only one cluster."""
        await self.source.connect(timeout_ms=_TIMEOUT_MS, topics=topics)
        await self.target.connect(timeout_ms=_TIMEOUT_MS, topics={*remote_topics, flow.offset_storage_topic})
        reported = self.source.reported_id
        if reported == self.target.reported_id and reported != self._confirmed:
            source, target = Admin(flow.source), Admin(flow.target)
            ends_of(flow, source=source, target=target, at_source=source.metadata(), at_target=target.metadata())
            self._confirmed = reported  # only once: it needs requests that block the event loop

    def close(self) -> None:
        """Close all connections."""
        self.net.stop()
        self.progress.close()
        self.source.close()
        self.target.close()
        self.net.close()
