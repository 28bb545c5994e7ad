"""Batches that wait to be sent to the target, by leader and connection."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mirrorless.clusters.round_trips import FAR_S
from mirrorless.copy.partition.exact_state import is_at_hole
from mirrorless.copy.slot.in_flight_limit import InFlightLimit
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
"""Few batches of this size fill a request, so copies that have them are spread evenly over all connections."""
_CONNECTIONS = 2
_FAR_CONNECTIONS = 8
"""A broker lets 100 KiB of a connection be unacknowledged, as it comes: that is 1 MB/s where a round trip is 100 ms."""


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
    limit: InFlightLimit = field(default_factory=InFlightLimit)
    waits: bool = False
    slow: bool = False
    unsent: Batches | None = None
    avoided_until: float = 0.0


class SendQueues:
    """Queues for each leader of the target, two or, if it is far away, eight; batches of one partition stay in order.

    A leader works at the requests of one connection one by one, so the others are used where there is enough to send. A
    copy stays with one connection as long as it has batches queued or in flight, which are `most_in_flight_bytes` for
    all of them together. Copies `at_hole` have a hole to be taken by markers, before which nothing else is sent.
    """

    def __init__(self, target: ClusterClient, *, most_in_flight_bytes: int = 64 << 20) -> None:
        self._target = target
        self._most_in_flight_bytes = most_in_flight_bytes
        self._by_leader: dict[int, list[SendQueue]] = {}
        self._of: dict[PartitionCopy, SendQueue] = {}
        self.queued_bytes = 0
        self.in_flight_bytes = 0
        self.at_hole: dict[PartitionCopy, None] = {}
        self.holes_in_flight = 0
        self._idle_since: float | None = None

    def __iter__(self) -> Iterator[SendQueue]:
        for queues in self._by_leader.values():
            yield from queues

    @property
    def in_flight(self) -> int:
        """Requests that were not answered yet."""
        return sum(queue.in_flight for queue in self) + self.holes_in_flight

    def idle_s(self, now: float) -> float:
        """For how many seconds nothing was queued or in flight; `now` is `time.monotonic`."""
        return 0.0 if self._idle_since is None else now - self._idle_since

    def enqueue(self, copy: PartitionCopy, pending: Pending, *, now_ms: int) -> None:
        """Queue a batch of a copy; `offer` has to follow before it is sent."""
        self.queued_bytes += pending.batch.size_bytes
        self._idle_since = None
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
        self.at_hole.pop(copy, None)  # `take_request` finds again whether it is
        return True

    def withdraw(self, copy: PartitionCopy) -> None:
        """Drop what a copy has queued; what is in flight has to be answered before more is offered."""
        self.queued_bytes -= copy.queued_bytes
        copy.drop_queue()
        self.at_hole.pop(copy, None)
        if (queue := self._of.pop(copy, None)) is not None:
            queue.ready.pop(copy, None)

    def take_request(self, queue: SendQueue) -> Batches:
        """Take the oldest batch of as many copies as fit a request and may have one more in flight."""
        taken: Batches = {}
        if queue.in_flight and self.in_flight_bytes >= self._most_in_flight_bytes:
            return taken  # its next answer has more sent: a queue with nothing in flight would wait for ever
        size = 0
        now_ms = int(time.time() * 1000)
        for copy in list(queue.ready):
            if is_at_hole(copy):
                del queue.ready[copy]
                self.at_hole[copy] = None
                continue
            if not copy.window.has_room(now_ms, queue.limit.requests):
                continue
            if taken and size + copy.queue[0].batch.size_bytes > _REQUEST_BYTES:
                break
            pending = copy.next_to_send()
            size += pending.batch.size_bytes
            taken[copy.remote_place] = copy, pending
            del queue.ready[copy]
            if is_at_hole(copy):
                self.at_hole[copy] = None
            elif copy.queue:
                queue.ready[copy] = None  # at the end: copies take turns
        self.queued_bytes -= size
        self.in_flight_bytes += size
        return taken

    def answered(self, size_bytes: int, *, now: float) -> None:
        """Note that batches of so many bytes are not in flight any more; `now` is `time.monotonic`."""
        self.in_flight_bytes -= size_bytes
        if not self.in_flight_bytes and not self.queued_bytes:
            self._idle_since = now

    def _choose(self, node: int, batch_bytes: int) -> SendQueue:
        """Return the least busy queue whose next request has room for small batches, else that with least to send."""
        queues = self._by_leader.setdefault(node, [SendQueue(node)])
        first = queues[0]
        far = FAR_S <= min(first.limit.shortest_s, self._target.round_trip_s(node)) < math.inf
        while len(queues) < (_FAR_CONNECTIONS if far else _CONNECTIONS):
            queues.append(SendQueue(ExtraConnection(node, len(queues) + 1)))
        now = time.monotonic()
        usable = [first, *(queue for queue in queues[1:] if now >= queue.avoided_until)]
        if batch_bytes < _LARGE_BYTES:
            for queue in sorted(usable, key=_busy):
                if len(queue.ready) * batch_bytes < _WORTH_A_REQUEST_BYTES:
                    return queue
        return min(usable, key=lambda queue: len(queue.ready) + queue.in_flight)


def _busy(queue: SendQueue) -> tuple[bool, int]:
    """Sort key: whether a queue cannot send at the moment, and how many of its requests are in flight."""
    return queue.waits or queue.unsent is not None, queue.in_flight
