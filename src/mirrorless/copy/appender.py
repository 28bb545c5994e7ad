"""Sends stamped batches to the target's leaders: several requests in flight, each with one batch a partition."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kafka import errors as kafka_errors

from mirrorless.copy.partition import BATCHES_IN_FLIGHT
from mirrorless.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mirrorless.copy.partition import PartitionCopy, Pending
    from mirrorless.copy.requests import Place
    from mirrorless.copy.wire import Wire

_REQUESTS_IN_FLIGHT = BATCHES_IN_FLIGHT
_REQUEST_BYTES = 2 << 20
"""Several wait at a leader, which works at one after the other, while the next are read: large ones leave it idle."""


class Outcome(Protocol):
    """Who hears how an append ended."""

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """The target holds `pending` from `base_offset` on."""

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None) -> None:
        """The target answered with an error code."""

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """Nobody knows whether the target holds the batch."""


@dataclass(slots=True)
class _Lane:
    """One leader of the target: copies with something to send, in order of arrival, and requests under way.

    `waits` while the leader has asked to be left alone, `slow` until it has answered without asking for that again.
    """

    ready: dict[PartitionCopy, None] = field(default_factory=dict)
    in_flight: int = 0
    waits: bool = False
    slow: bool = False


class Appender:
    """Keeps every target leader busy; batches of one partition stay in order.

    `timeout_ms` is the target's time to replicate an append; `spawn` runs a coroutine beside the caller. A leader whose
    quota is used up is sent nothing for as long as it says, and then one request at a time: it does not read what comes
    behind one that was too much, and that would be taken for lost.
    """

    def __init__(
        self,
        target: Wire,
        outcome: Outcome,
        *,
        timeout_ms: int,
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._target = target
        self._outcome = outcome
        self._timeout_ms = timeout_ms
        self._sleep = sleep
        self._spawn = spawn
        self._lanes: dict[int, _Lane] = defaultdict(_Lane)
        self._closed = False
        self.queued_bytes = 0

    @property
    def in_flight(self) -> int:
        """Requests that were not answered yet."""
        return sum(lane.in_flight for lane in self._lanes.values())

    def close(self) -> None:
        """Send nothing more; what is on its way stays on its way."""
        self._closed = True

    def offer(self, copy: PartitionCopy) -> bool:
        """Mark a copy as having batches to send; False if the leader or the topic is not that it was resumed at.

        The old leader may hold what the new one does not know of yet, so what is on its way is waited for first. A
        topic that was created again knows nothing of the copy, and would take any sequence.
        """
        if self._target.leader(copy.remote_place) != copy.node:
            return False
        if self._target.topic_id(copy.row.remote_topic) != copy.remote_id:
            return False
        self._lanes[copy.node].ready[copy] = None
        return True

    def withdraw(self, copy: PartitionCopy) -> None:
        """Drop what a copy has queued; what is on its way stays on its way."""
        self.queued_bytes -= copy.queued_bytes
        copy.drop_queue()
        self._lanes[copy.node].ready.pop(copy, None)

    def pump(self) -> None:
        """Send as much as may be sent."""
        if self._closed:
            return
        for node, lane in self._lanes.items():
            if quiet_s := self._target.quiet_s(node):
                lane.slow = True
                if not lane.waits:
                    lane.waits = True
                    self._spawn(self._pump_later(lane, quiet_s))
                continue
            while lane.in_flight < (1 if lane.slow else _REQUESTS_IN_FLIGHT) and (picked := self._pick(lane)):
                lane.in_flight += 1
                self._spawn(self._send(node, lane, picked))

    async def _pump_later(self, lane: _Lane, seconds: float) -> None:
        await self._sleep(seconds)
        lane.waits = False
        self.pump()

    def _pick(self, lane: _Lane) -> dict[Place, tuple[PartitionCopy, Pending]]:
        """Take the oldest batch of as many copies as fit a request and may have one more in flight."""
        picked: dict[Place, tuple[PartitionCopy, Pending]] = {}
        size = 0
        for copy in [copy for copy in lane.ready if copy.in_flight < copy.window]:
            if picked and size + copy.queue[0].batch.size_bytes > _REQUEST_BYTES:
                break
            pending = copy.next_to_send()
            size += pending.batch.size_bytes
            picked[copy.remote_place] = copy, pending
            del lane.ready[copy]
            if copy.queue:
                lane.ready[copy] = None  # behind the others: they take turns
        self.queued_bytes -= size
        return picked

    async def _send(self, node: int, lane: _Lane, picked: dict[Place, tuple[PartitionCopy, Pending]]) -> None:
        batches = [(place, pending.batch) for place, (_, pending) in picked.items()]
        unanswered: BaseException | None = None
        try:
            answers = await self._target.append(node, batches, timeout_ms=self._timeout_ms)
            lane.slow = self._target.quiet_s(node) > 0
        except kafka_errors.KafkaError as error:
            # Its traceback holds this frame, which holds it and the batches.
            answers, unanswered = [], error.with_traceback(None)
        lane.in_flight -= 1
        for answer in answers:
            copy, pending = picked.pop(answer.place)
            copy.in_flight -= 1
            if answer.error_code:
                self._outcome.refused(copy, pending, answer.error_code, answer.error_message)
            else:
                self._outcome.appended(copy, pending, answer.base_offset)
        missing = unanswered or ClusterError("the answer to an append left a partition out", cluster="target")
        for copy, _ in picked.values():
            copy.in_flight -= 1
            self._outcome.unanswered(copy, missing)
        self.pump()
