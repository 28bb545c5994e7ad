"""Has markers written for copies whose next offsets have no record, one hole of a partition at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mirrorless.errors import MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mirrorless.copy.identical.holes import HoleWriter
    from mirrorless.copy.partition.pending import Pending
    from mirrorless.copy.partition.state import PartitionCopy
    from mirrorless.copy.slot.send_queues import SendQueues


class HoleOutcome(Protocol):
    """Decides what follows from markers that were written, or were not."""

    def appended(self, copy: PartitionCopy, pending: Pending, base_offset: int) -> None:
        """The target's log ends after the hole `pending`."""

    def hole_failed(self, copy: PartitionCopy, error: BaseException) -> None:
        """Some markers may have been written, or none."""

    def retry_later(self, copy: PartitionCopy, error: BaseException | str) -> None:
        """Resume the copy."""


class HoleSender:
    """Takes copies from `queues.at_hole`; batches of a copy are sent again when its hole is taken."""

    def __init__(
        self,
        queues: SendQueues,
        writer: HoleWriter,
        outcome: HoleOutcome,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._queues = queues
        self._writer = writer
        self._outcome = outcome
        self._spawn = spawn

    def pump(self, then: Callable[[], None]) -> None:
        """Begin with copies that have nothing in flight; `then` is called after each hole."""
        for copy in [copy for copy in self._queues.at_hole if not copy.in_flight]:
            del self._queues.at_hole[copy]
            if copy.exact is None or not copy.queue:
                continue
            if copy.queue[0].record_count:
                self._offer(copy)
                continue
            copy.exact.begin_hole()
            self._queues.holes_in_flight += 1
            self._spawn(self._write(copy, copy.next_to_send(), then))

    async def _write(self, copy: PartitionCopy, pending: Pending, then: Callable[[], None]) -> None:
        assert not pending.record_count, f"{copy.place}: records at {pending.base_offset} are no hole"
        error: BaseException | None = None
        try:
            await self._writer.write(copy, copy.node, pending.base_offset, pending.last_offset + 1)
        except (kafka_errors.KafkaError, MirrorlessError) as failure:
            error = failure
        assert copy.exact is not None
        copy.exact.end_hole()
        copy.window.answered()
        if error is not None:
            self._outcome.hole_failed(copy, error)
        else:
            self._outcome.appended(copy, pending, pending.base_offset)
        self._queues.holes_in_flight -= 1
        if copy.queue:
            self._offer(copy)
        then()

    def _offer(self, copy: PartitionCopy) -> None:
        if not self._queues.offer(copy):
            self._outcome.retry_later(copy, f"{copy.row.remote_topic}-{copy.row.partition} has a new leader")
