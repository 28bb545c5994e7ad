"""kafka-python's event loop, with timers that stay cheap while thousands of requests are in flight."""

from __future__ import annotations

import heapq
import selectors
import threading
import time
from typing import TYPE_CHECKING, Any

from kafka.net import selector
from kafka.net.selector import NetworkSelector, Task, TaskState

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

_MANY_DEAD = 256


def _say_nothing(msg: str, *_: object) -> None:
    """Replace the library's trace of every step, which costs 3 % of the CPU of a dense copy, logged or not."""


selector.log_trace = _say_nothing


class EventLoop(NetworkSelector):
    """Runs the connections of both clusters; steps may take longer than the library's threshold for a warning.

    Every request has a timer that is cancelled when its response comes. The library then searches its heap for the
    timer and sorts the heap again, a tenth of the CPU of the first requests of a thousand partitions. Here a cancelled
    timer stays in the heap, without its task, until its time comes or most of the heap are cancelled timers.
    """

    if TYPE_CHECKING:
        # What is used of it, which the library leaves without types.
        run: Callable[..., Any]
        sleep: Callable[[float], Any]
        call_later: Callable[..., Any]
        call_soon: Callable[..., Any]
        call_soon_with_future: Callable[..., Any]
        close: Callable[[], None]
        start: Callable[..., Any]
        stop: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__(slow_task_threshold_secs=0)  # type: ignore[no-untyped-call]
        self._dead = 0

    def _add_ready_task(self, task: Any) -> None:  # noqa: ANN401
        # In this order: once it is appended, by any thread, the loop may have run it up to its next wait.
        task.state = TaskState.READY
        self._ready.append(task)

    def _unschedule(self, task: Any) -> None:  # noqa: ANN401 -- the library is untyped
        task.scheduled_at = None
        task.state = TaskState.UNSCHEDULED
        self._dead += 1
        if self._dead > _MANY_DEAD and self._dead > len(self._scheduled) // 2:
            self._scheduled[:] = [entry for entry in self._scheduled if _alive(*entry)]
            heapq.heapify(self._scheduled)
            self._dead = 0

    def _schedule_tasks(self) -> None:
        now = time.monotonic()
        while self._scheduled and (self._scheduled[0][0] <= now or not _alive(*self._scheduled[0])):
            when, task = heapq.heappop(self._scheduled)
            if _alive(when, task):
                task.scheduled_at = None
                self._add_ready_task(task)
            else:
                self._dead -= 1

    def wakeup(self) -> None:
        """Wake the loop if it waits; called from its own thread, it looks at ready tasks next anyway."""
        if self._poll_owner is not threading.current_thread():
            super().wakeup()  # type: ignore[no-untyped-call]

    def register_event(self, fileobj: socket.socket, event: int, task: Any) -> None:  # noqa: ANN401
        """Wait for an event of a socket.

        The library looks up a new socket first, and the KeyError has its addresses in its text.
        """
        if fileobj.fileno() in self._selector.get_map():
            super().register_event(fileobj, event, task)  # type: ignore[no-untyped-call]
            return
        task = task if isinstance(task, Task) else Task(task)
        self._selector.register(fileobj, event, (task, None) if event == selectors.EVENT_READ else (None, task))


def _alive(when: float, task: Any) -> bool:  # noqa: ANN401
    return bool(task.scheduled_at == when and task.state is TaskState.SCHEDULED)
