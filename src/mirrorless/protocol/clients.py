"""Makes event loops and the connections on them: nothing else does, as `clusters.clients` for the other clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirrorless.kafka_python.event_loop import EventLoop
from mirrorless.protocol.cluster_client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.kafka_python.receive_buffers import ReceiveBuffers


def event_loop() -> EventLoop:
    """Return a loop that runs in the thread that calls `run`."""
    return EventLoop()


def cluster_client(
    net: EventLoop,
    *,
    cluster: str,
    config: Mapping[str, Any],
    cluster_id: str | None = None,
    frames: ReceiveBuffers | None = None,
) -> ClusterClient:
    """Return connections to one cluster; the parameters are those of `ClusterClient`."""
    return ClusterClient(net, cluster=cluster, config=config, cluster_id=cluster_id, frames=frames)
