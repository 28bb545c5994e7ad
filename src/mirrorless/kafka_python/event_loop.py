"""kafka-python's event loop, without what made it slow where thousands of requests are under way."""

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
    """Stand for the library's trace of every step, which nobody reads and which is 3 % of a dense copy's CPU."""


selector.log_trace = _say_nothing


class EventLoop(NetworkSelector):
    """Runs the connections of both clusters; a step may take longer than the library thinks decent for many users.

    Every request has a timer that is cancelled with its answer. The library looks for it in its heap and sorts the heap
    anew, which a thousand partitions' first requests paid with a tenth of their CPU; here a cancelled timer stays where
    it is, without what it held, until its time comes or until most of the heap are such.
    """

    if TYPE_CHECKING:
        # What is used of it, which the library leaves without types.
        run: Callable[..., Any]
        sleep: Callable[[float], Any]
        call_soon: Callable[..., Any]
        call_soon_with_future: Callable[..., Any]
        close: Callable[[], None]
        start: Callable[..., Any]
        stop: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__(slow_task_threshold_secs=0)  # type: ignore[no-untyped-call]
        self._dead = 0

    def _add_ready_task(self, task: Any) -> None:  # noqa: ANN401
        # In this order: as soon as it is appended, by whichever thread, the loop may have run it up to its next wait.
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
        """Wake the loop if it waits; where its own thread asks, what is ready is looked at next anyway."""
        if self._poll_owner is not threading.current_thread():
            super().wakeup()  # type: ignore[no-untyped-call]

    def register_event(self, fileobj: socket.socket, event: int, task: Any) -> None:  # noqa: ANN401
        """Wait for an event of a socket; the library first asks for it in vain, which spells out its addresses."""
        if fileobj.fileno() in self._selector.get_map():
            super().register_event(fileobj, event, task)  # type: ignore[no-untyped-call]
            return
        task = task if isinstance(task, Task) else Task(task)
        self._selector.register(fileobj, event, (task, None) if event == selectors.EVENT_READ else (None, task))


def _alive(when: float, task: Any) -> bool:  # noqa: ANN401
    return bool(task.scheduled_at == when and task.state is TaskState.SCHEDULED)
