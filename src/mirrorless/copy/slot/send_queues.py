"""Batches that wait to be sent to the target, by leader and connection."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.kafka_python.connection_manager import ExtraConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.kafka_python.connection_manager import Node
    from mirrorless.protocol.cluster_client import ClusterClient

    Batches = dict[TopicPartition, tuple[PartitionCopy, Pending]]
    """The content of a produce request: at most one batch of each remote partition."""

_REQUEST_BYTES = 2 << 20
"""A leader works at one request after the other while the next ones are read: large ones leave it idle."""
_WORTH_A_REQUEST_BYTES = 1 << 20
"""So much has to wait for one connection before the other one is used: small requests cost both sides more."""
_LARGE_BYTES = 64 << 10
"""Few batches of this size fill a request, so copies that have them are spread evenly over both connections."""


@dataclass(slots=True, eq=False)
class SendQueue:
    """Copies with batches to send over one connection to a leader, in order of arrival, and the requests in flight.

    `waits` until the time is over for which the leader asked to be sent nothing, because a quota is used up; `slow`
    until it has answered a request without asking for that again. `unsent` is a request that could not be sent, and
    whose failure is yet to be handled. A second connection that failed is not used until `avoided_until`.
    """

    node: Node
    ready: dict[PartitionCopy, None] = field(default_factory=dict)
    in_flight: int = 0
    waits: bool = False
    slow: bool = False
    unsent: Batches | None = None
    avoided_until: float = 0.0


class SendQueues:
    """Two queues for each leader of the target; batches of one partition stay in order.

    A leader works at the requests of one connection one by one, so the second connection is used where there is enough
    to send. A copy stays with one connection as long as it has batches queued or in flight.
    """

    def __init__(self, target: ClusterClient) -> None:
        self._target = target
        self._by_leader: dict[int, tuple[SendQueue, SendQueue]] = {}
        self._of: dict[PartitionCopy, SendQueue] = {}
        self.queued_bytes = 0

    def __iter__(self) -> Iterator[SendQueue]:
        for queues in self._by_leader.values():
            yield from queues

    @property
    def in_flight(self) -> int:
        """Requests that were not answered yet."""
        return sum(queue.in_flight for queue in self)

    def enqueue(self, copy: PartitionCopy, pending: Pending, *, now_ms: int) -> None:
        """Queue a batch of a copy; `offer` has to follow before it is sent."""
        self.queued_bytes += pending.batch.size_bytes
        copy.enqueue(pending, now_ms=now_ms)

    def offer(self, copy: PartitionCopy) -> bool:
        """Mark a copy as having batches to send; False if its leader or topic is not that it was resumed at.

        The old leader may hold what the new one does not know of yet, so what is in flight is waited for first. A topic
        that was created again knows nothing of the copy, and would accept any sequence.
        """
        if self._target.leader(copy.remote_place) != copy.node:
            return False
        if self._target.topic_id(copy.row.remote_topic) != copy.remote_id:
            return False
        queue = self._of.get(copy)
        if queue is None or not (copy.in_flight or copy in queue.ready):
            queue = self._of[copy] = self._choose(copy.node, copy.queue[0].batch.size_bytes)
        queue.ready[copy] = None
        return True

    def withdraw(self, copy: PartitionCopy) -> None:
        """Drop what a copy has queued; what is in flight has to be answered before more is offered."""
        self.queued_bytes -= copy.queued_bytes
        copy.drop_queue()
        if (queue := self._of.pop(copy, None)) is not None:
            queue.ready.pop(copy, None)

    def take_request(self, queue: SendQueue) -> Batches:
        """Take the oldest batch of as many copies as fit a request and may have one more in flight."""
        taken: Batches = {}
        size = 0
        now_ms = int(time.time() * 1000)
        for copy in list(queue.ready):
            if not copy.window.has_room(now_ms):
                continue
            if taken and size + copy.queue[0].batch.size_bytes > _REQUEST_BYTES:
                break
            pending = copy.next_to_send()
            size += pending.batch.size_bytes
            taken[copy.remote_place] = copy, pending
            del queue.ready[copy]
            if copy.queue:
                queue.ready[copy] = None  # at the end: copies take turns
        self.queued_bytes -= size
        return taken

    def _choose(self, node: int, batch_bytes: int) -> SendQueue:
        """Return the less busy queue whose next request has room for small batches; else the one with less to send."""
        if node not in self._by_leader:
            self._by_leader[node] = SendQueue(node), SendQueue(ExtraConnection(node, 2))
        first, second = self._by_leader[node]
        if time.monotonic() < second.avoided_until:
            return first
        if batch_bytes < _LARGE_BYTES:
            for queue in sorted((first, second), key=_busy):
                if len(queue.ready) * batch_bytes < _WORTH_A_REQUEST_BYTES:
                    return queue
        return second if len(second.ready) + second.in_flight < len(first.ready) + first.in_flight else first


def _busy(queue: SendQueue) -> tuple[bool, int]:
    """Sort key: whether a queue cannot send at the moment, and how many of its requests are in flight."""
    return queue.waits or queue.unsent is not None, queue.in_flight
