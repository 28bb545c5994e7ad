"""Sends stamped batches to the target's leaders: several requests in flight, each with one batch a partition."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mirrorless.errors import ClusterError
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.hole_sender import HoleSender
    from mirrorless.copy.slot.send_queues import Batches, SendQueue, SendQueues
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import AppendResult

_AVOIDED_S = 30.0


class AppendOutcome(Protocol):
    """Decides what follows from the answer to an append."""

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """The target holds `pending` from `base_offset` on."""

    def refused(self, copy: PartitionCopy, pending: Pending, code: int, message: str | None, records: int = 0) -> None:
        """The target answered with an error code, and named so many `records` of the batch as invalid."""

    def unanswered(self, copy: PartitionCopy, error: BaseException) -> None:
        """The target may hold the batch, or not."""


class Appender:
    """Keeps every target leader busy with the batches of `queues`, and hands the answers to `outcome`.

    `spawn` runs a coroutine beside the caller. A leader whose quota is used up is sent nothing for as long as it asks
    for, and then one request at a time: it does not read what follows a request that exceeded the quota, which would
    time out.
    """

    def __init__(
        self,
        target: ClusterClient,
        queues: SendQueues,
        outcome: AppendOutcome,
        *,
        holes: HoleSender,
        sleep: Callable[[float], Any],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._target = target
        self._queues = queues
        self._outcome = outcome
        self._holes = holes
        self._sleep = sleep
        self._spawn = spawn
        self._closed = False

    def close(self) -> None:
        """Send nothing more; what is in flight is not affected."""
        self._closed = True

    def pump(self) -> None:
        """Send as much as may be sent."""
        for queue in self._queues:
            self._pump(queue)

    def _pump(self, queue: SendQueue) -> None:
        self._send(queue)
        if self._queues.at_hole and not self._closed:
            self._holes.pump(self.pump)

    def _send(self, queue: SendQueue) -> None:
        if self._closed or not queue.ready or queue.unsent is not None:
            return
        if quiet_s := self._target.quiet_s(queue.node):
            queue.slow = True
            if not queue.waits:
                queue.waits = True
                self._spawn(self._pump_later(queue, quiet_s))
            return
        most = 1 if queue.slow else queue.limit.requests
        while queue.in_flight < most and (sent := self._queues.take_request(queue)):
            queue.in_flight += 1
            batches = [(place, pending.batch) for place, (_, pending) in sent.items()]
            answered = partial(self._answered, queue, sent, time.monotonic())
            if not self._target.append_at_once(queue.node, batches, heard=answered):
                queue.unsent = sent
                return

    async def _pump_later(self, queue: SendQueue, seconds: float) -> None:
        await self._sleep(seconds)
        queue.waits = False
        self._pump(queue)

    async def _pump_soon(self, queue: SendQueue) -> None:
        self._pump(queue)

    def _answered(
        self, queue: SendQueue, sent: Batches, sent_at: float, answers: list[AppendResult] | BaseException
    ) -> None:
        size_bytes = sum(pending.batch.size_bytes for _, pending in sent.values())
        now = time.monotonic()
        self._queues.answered(size_bytes, now=now)
        if not isinstance(answers, BaseException):
            queue.limit.answered(now - sent_at, limited=bool(queue.ready))
        try:
            self._handle(queue, sent, answers)
        except BaseException as error:  # noqa: BLE001 -- ends the lease; the client only logs what a callback raises
            self._spawn(_raise(error))

    def _handle(self, queue: SendQueue, sent: Batches, answers: list[AppendResult] | BaseException) -> None:
        if queue.unsent is sent:
            queue.unsent = None
        if isinstance(answers, BaseException):
            if not isinstance(answers, kafka_errors.KafkaError):
                raise answers
            unanswered: BaseException = answers
            queue.avoided_until = time.monotonic() + _AVOIDED_S
        else:
            unanswered = ClusterError("the answer to an append left a partition out", cluster="target")
            quiet_s = self._target.quiet_s(queue.node)
            quiet_ms = round(quiet_s * 1000)
            queue.slow = quiet_s > 0
            for answer in answers:
                copy, pending = sent.pop(answer.place)
                copy.window.answered()
                if quiet_ms and (copy.in_flight or copy.queue):
                    copy.stats.throttled(produce_ms=quiet_ms)
                if answer.error_code:
                    self._outcome.refused(
                        copy, pending, answer.error_code, answer.error_message, answer.refused_records
                    )
                else:
                    self._outcome.appended(copy, pending, answer.base_offset)
        for copy, _ in sent.values():
            copy.window.answered()
            self._outcome.unanswered(copy, unanswered)
        queue.in_flight -= 1  # last: a lease that ends waits for what may still end it with an error
        if sent:
            self._spawn(self._pump_soon(queue))  # not by a connection that is just being closed
        else:
            self._pump(queue)


async def _raise(error: BaseException) -> None:
    raise error
