"""Requests that are sent without waiting for each other's answers, and connections that are opened so."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.structs import Future

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from mirrorless.kafka_python.connection_manager import ConnectionManager
    from mirrorless.kafka_python.event_loop import EventLoop

_OPEN_TIMEOUT_MS = 5_000.0


async def side_by_side(net: EventLoop, asking: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Await coroutines side by side; returns their answers, raises the first error in their order."""
    under_way = [net.call_soon_with_future(one) for one in asking]
    return [await one for one in under_way]


async def open_connections(
    net: EventLoop, manager: ConnectionManager, leaders: Iterable[int | None], *, until: float
) -> None:
    """Open a connection to each of these brokers, all side by side, and wait for the first one, not for long.

    `until` is in `time.monotonic` seconds; None is a partition without a leader.
    The bootstrap closes its own: without another, the next one would be bootstrapped again.
    """
    nodes = {node for node in leaders if node is not None}
    first, waiting = Future(), set(nodes)
    timeout_ms = min(_OPEN_TIMEOUT_MS, (until - time.monotonic()) * 1000)

    async def opened(node: int) -> None:
        with suppress(kafka_errors.KafkaError):  # the first request to this broker meets the error
            await manager.get_connection(node)
        waiting.discard(node)
        if (manager.connected or not waiting) and not first.is_done:
            first.success(node)

    for node in nodes:
        net.call_soon(opened(node))
    if nodes and not manager.connected and timeout_ms > 0:
        with suppress(kafka_errors.KafkaTimeoutError):
            await manager.wait_for(first, timeout_ms)
