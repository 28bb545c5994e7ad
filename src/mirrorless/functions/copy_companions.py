"""Emits heartbeats and checkpoints while an invocation of `copy` copies, as the functions of these names do.

And follows groups, which no function does: their commits are to be on the target within a second.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mirrorless.errors import MirrorlessError
from mirrorless.functions.budget import TimeBudget
from mirrorless.functions.checkpoint import checkpoint
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.heartbeat import beat, reachable_pairs
from mirrorless.group_sync.following import ENDS_S, FOLLOWER, follow, follows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from mirrorless.functions.invocation import Invocation
    from mirrorless.group_sync.follower import FollowReport

_CHECKPOINTS_EVERY_S: Final = 10.0
_MEASURED_EVERY_S: Final = 10.0
_SHARE: Final = 10
"""Checkpoint runs take at most a tenth of the time."""
_PAUSE_S: Final = 5.0
"""After an error, and between calls that return at once: no heartbeat is due in the next minute, or its topic is used
for something else."""


class Companions:
    """Threads from `start` to the end of the context; `answer` has what they did.

    Without `emits` groups are followed only: on one machine the functions of these names emit. An error of theirs does
    not end the copy; it is in the log, and the next run retries.
    """

    def __init__(self, invocation: Invocation, *, enabled: bool, emits: bool) -> None:
        self.answer: dict[str, Any] = {}
        self._invocation = invocation
        self._enabled = enabled
        self._emits = emits
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._oldest_s = self._measure_at = 0.0

    def __enter__(self) -> Companions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(ENDS_S if thread.name == FOLLOWER else None)

    def start(self) -> None:
        """Begin to emit: the invocation copies now."""
        if not self._enabled or self._threads:
            return
        flow = self._invocation.flow
        if follows(flow):
            self._started(threading.Thread(target=self._follow, name=FOLLOWER, daemon=True))
        if not self._emits:
            return
        if reachable_pairs(self._invocation):  # whatever the flow's own setting: the reverse pair may have another
            self._thread("heartbeats", beat, pause_s=0.0)
        if flow.writes_checkpoints:
            every_s = min(_CHECKPOINTS_EVERY_S, flow.emit_checkpoints_interval_seconds)
            self._thread("checkpoints", checkpoint, pause_s=every_s)

    def _thread(self, name: str, work: Callable[[Invocation], Mapping[str, Any]], *, pause_s: float) -> None:
        self._started(threading.Thread(target=self._run, args=(name, work, pause_s), name=name, daemon=True))

    def _started(self, thread: threading.Thread) -> None:
        self._threads.append(thread)
        thread.start()

    def _follow(self) -> None:
        follow(self._invocation.flow, self._invocation.sink.tell, self._followed, self._ended)

    def _followed(self, report: FollowReport) -> None:
        if report.written:
            self.answer["followed_offsets"] = self.answer.get("followed_offsets", 0) + report.written
        self._oldest_s = max(self._oldest_s, report.oldest_s)
        if self._emits and (now := time.monotonic()) >= self._measure_at:
            self._invocation.measure("group-offset-age-ms", round(self._oldest_s * 1000))
            self._measure_at, self._oldest_s = now + _MEASURED_EVERY_S, 0.0

    def _run(self, name: str, work: Callable[[Invocation], Mapping[str, Any]], pause_s: float) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            invocation = replace(
                self._invocation,
                event=ScheduleEvent(at=datetime.now(UTC)),
                budget=TimeBudget(_UntilEnded(self._invocation.budget, self._ended), 0.0),
                continues=True,
            )
            try:
                self.answer[name] = work(invocation)
                took_s = time.monotonic() - began
                pause = max(pause_s, took_s * _SHARE if pause_s else _PAUSE_S - took_s)
            except Exception as error:  # noqa: BLE001 -- also of a custom policy: it would end the thread, not the copy
                text = str(error) if isinstance(error, MirrorlessError) else f"{type(error).__name__}: {error}"
                self._invocation.sink.tell("error", f"{name}: {text}")
                pause = _PAUSE_S
            self._ended.wait(pause)


class _UntilEnded:
    """A context of Lambda whose time is over once the copy has ended."""

    def __init__(self, budget: TimeBudget, ended: threading.Event) -> None:
        self.aws_request_id = budget.context.aws_request_id
        self._budget = budget
        self._ended = ended

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds for work."""
        return 0 if self._ended.is_set() else round(self._budget.left_s * 1000)
