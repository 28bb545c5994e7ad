"""Sends stamped batches to the target's leaders: several requests in flight, each with one batch a partition."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mirrorless.copy.partition.send_window import BATCHES_IN_FLIGHT
from mirrorless.errors import ClusterError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.connection_manager import Second

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.partition.state import PartitionCopy, Pending
    from mirrorless.kafka_python.connection_manager import Node
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import AppendResult

    _Picked = dict[Place, tuple[PartitionCopy, Pending]]

_REQUESTS_IN_FLIGHT = BATCHES_IN_FLIGHT
_REQUEST_BYTES = 2 << 20
"""Several wait at a leader, which works at one after the other, while the next are read: large ones leave it idle."""
_WORTH_A_REQUEST_BYTES = 1 << 20
"""As much waits for one connection before more goes by the other: the same in small requests costs both sides more."""
_LARGE_BYTES = 64 << 10
"""Few such batches fill a request anyway, so copies that have them are shared evenly by both connections."""
_SHUNNED_S = 30.0


class AppendOutcome(Protocol):
    """Who hears how an append ended."""

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """The target holds `pending` from `base_offset` on."""

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None) -> None:
        """The target answered with an error code."""

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """Nobody knows whether the target holds the batch."""


@dataclass(slots=True, eq=False)
class _Lane:
    """A connection to a leader of the target: copies with something to send, in order of arrival, requests under way.

    `waits` while the leader has asked to be left alone, `slow` until it has answered without asking for that again.
    `refused` was not sent at all, and is to be heard of before more is; until `shunned_until` a second connection that
    failed is left alone.
    """

    node: Node
    ready: dict[PartitionCopy, None] = field(default_factory=dict)
    in_flight: int = 0
    waits: bool = False
    slow: bool = False
    refused: _Picked | None = None
    shunned_until: float = 0.0


class Appender:
    """Keeps every target leader busy, by two connections; batches of one partition stay in order.

    A leader works at the requests of one connection one by one, so one has only so much to send before more goes by the
    other. A copy stays with one of them as long as it has something queued or on its way.

    `spawn` runs a coroutine beside the caller. A leader whose quota is used up is sent nothing for as long as it says,
    and then one request at a time: it does not read what comes behind one that was too much, and that would be taken
    for lost.
    """

    def __init__(
        self,
        target: ClusterClient,
        outcome: AppendOutcome,
        *,
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._target = target
        self._outcome = outcome
        self._sleep = sleep
        self._spawn = spawn
        self._lanes: dict[int, tuple[_Lane, _Lane]] = {}
        self._lane_of: dict[PartitionCopy, _Lane] = {}
        self._closed = False
        self.queued_bytes = 0

    @property
    def in_flight(self) -> int:
        """Requests that were not answered yet."""
        return sum(lane.in_flight for lanes in self._lanes.values() for lane in lanes)

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
        lane = self._lane_of.get(copy)
        if lane is None or not (copy.in_flight or copy in lane.ready):
            lane = self._lane_of[copy] = self._lane(copy.node, copy.queue[0].batch.size_bytes)
        lane.ready[copy] = None
        return True

    def _lane(self, node: int, batch_bytes: int) -> _Lane:
        """The less busy lane whose next request has room for small batches; of large ones, or without, the emptier."""
        if node not in self._lanes:
            self._lanes[node] = _Lane(node), _Lane(Second(node))
        first, second = self._lanes[node]
        if time.monotonic() < second.shunned_until:
            return first
        if batch_bytes < _LARGE_BYTES:
            for lane in sorted((first, second), key=_busy):
                if len(lane.ready) * batch_bytes < _WORTH_A_REQUEST_BYTES:
                    return lane
        return second if len(second.ready) + second.in_flight < len(first.ready) + first.in_flight else first

    def withdraw(self, copy: PartitionCopy) -> None:
        """Drop what a copy has queued; what is on its way has to be heard of before more is offered."""
        self.queued_bytes -= copy.queued_bytes
        copy.drop_queue()
        if (lane := self._lane_of.pop(copy, None)) is not None:
            lane.ready.pop(copy, None)

    def pump(self) -> None:
        """Send as much as may be sent."""
        for lanes in self._lanes.values():
            for lane in lanes:
                self._pump(lane)

    def _pump(self, lane: _Lane) -> None:
        if self._closed or not lane.ready or lane.refused is not None:
            return
        if quiet_s := self._target.quiet_s(lane.node):
            lane.slow = True
            if not lane.waits:
                lane.waits = True
                self._spawn(self._pump_later(lane, quiet_s))
            return
        while lane.in_flight < (1 if lane.slow else _REQUESTS_IN_FLIGHT) and (picked := self._pick(lane)):
            lane.in_flight += 1
            batches = [(place, pending.batch) for place, (_, pending) in picked.items()]
            heard = partial(self._heard, lane, picked)
            if not self._target.append_at_once(lane.node, batches, heard=heard):
                lane.refused = picked
                return

    async def _pump_later(self, lane: _Lane, seconds: float) -> None:
        await self._sleep(seconds)
        lane.waits = False
        self._pump(lane)

    async def _pump_soon(self, lane: _Lane) -> None:
        self._pump(lane)

    def _pick(self, lane: _Lane) -> _Picked:
        """Take the oldest batch of as many copies as fit a request and may have one more in flight."""
        picked: _Picked = {}
        size = 0
        now_ms = int(time.time() * 1000)
        for copy in list(lane.ready):
            if not copy.window.has_room(now_ms):
                continue
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

    def _heard(self, lane: _Lane, picked: _Picked, answers: list[AppendResult] | BaseException) -> None:
        try:
            self._tell(lane, picked, answers)
        except BaseException as error:  # noqa: BLE001 -- raised where the lease hears of it, not where answers are read
            self._spawn(_raise(error))

    def _tell(self, lane: _Lane, picked: _Picked, answers: list[AppendResult] | BaseException) -> None:
        if lane.refused is picked:
            lane.refused = None
        if isinstance(answers, BaseException):
            if not isinstance(answers, kafka_errors.KafkaError):
                raise answers
            unanswered: BaseException = answers
            lane.shunned_until = time.monotonic() + _SHUNNED_S
        else:
            unanswered = ClusterError("the answer to an append left a partition out", cluster="target")
            quiet_s = self._target.quiet_s(lane.node)
            quiet_ms = round(quiet_s * 1000)
            lane.slow = quiet_s > 0
            for answer in answers:
                copy, pending = picked.pop(answer.place)
                copy.window.answered()
                if quiet_ms and (copy.in_flight or copy.queue):
                    copy.stats.produce_throttle_ms += quiet_ms
                if answer.error_code:
                    self._outcome.refused(copy, pending, answer.error_code, answer.error_message)
                else:
                    self._outcome.appended(copy, pending, answer.base_offset)
        for copy, _ in picked.values():
            copy.window.answered()
            self._outcome.unanswered(copy, unanswered)
        lane.in_flight -= 1  # not before: a landing waits for what may end the lease
        if picked:
            self._spawn(self._pump_soon(lane))  # not by a connection that is just being given up
        else:
            self._pump(lane)


def _busy(lane: _Lane) -> tuple[bool, int]:
    """Whether a lane cannot send at the moment, and how much it waits to hear of."""
    return lane.waits or lane.refused is not None, lane.in_flight


async def _raise(error: BaseException) -> None:
    raise error
