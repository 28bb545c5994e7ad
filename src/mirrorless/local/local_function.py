"""Calls the handlers of the Lambda functions, each in a separate thread, one event after the other."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters import outages
from mirrorless.errors import ClusterUnavailable, MirrorlessError
from mirrorless.functions.runtime_context import within
from mirrorless.local.events import schedule_event
from mirrorless.local.lambda_context import LocalContext
from mirrorless.local.script_loader import attribute_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.functions.runtime_context import RuntimeContext
    from mirrorless.local.display_sink import DisplaySink
    from mirrorless.local.wiring import FunctionSpec

_LOOK_S: Final = 1.0
_A_YEAR_S: Final = 365 * 86_400.0


class LocalFunction:
    """One function of one flow; its handler is loaded separately, and never runs twice at once.

    `ended` says that the run is to end: a running invocation then has no time left, and no other begins. While the
    clusters that it needs are `away`, none begins either.
    """

    def __init__(
        self,
        spec: FunctionSpec,
        runtime_context: RuntimeContext,
        sink: DisplaySink,
        *,
        flow: str,
        ended: Callable[[], bool],
        away: Callable[[], bool] = lambda: False,
    ) -> None:
        self.sink = sink
        self._away = away
        self._spec = spec
        self._context = runtime_context
        self._ended = ended
        self._name = f"{spec.name} of {flow}"
        self._handler: Callable[[Mapping[str, Any], LocalContext], Mapping[str, Any]] = attribute_of(
            spec.folder / "app.py", "handler", module=self._name, of=f"function {spec.name}"
        )
        self._lock = threading.Lock()
        # Not a SimpleQueue, whose first `get` may wait endlessly if its time is over before it waits (CPython).
        self._events: queue.Queue[tuple[Mapping[str, Any], threading.Event] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._every_s: float | None = None
        self._due = 0.0

    def invoke(
        self, event: Mapping[str, Any], *, ended: Callable[[], bool] | None = None, limited: bool = True
    ) -> Mapping[str, Any]:
        """Call the handler in this thread; raises its errors. `ended` replaces the run's own.

        If not `limited` it has unlimited time: there is no next invocation that would continue.
        """
        context = LocalContext(timeout_s=self._spec.timeout_s if limited else _A_YEAR_S, ended=ended or self._ended)
        with self._lock, within(self._context):
            self.sink.fresh()
            return self._handler(event, context)

    def attempt(
        self, event: Mapping[str, Any], *, ended: Callable[[], bool] | None = None, limited: bool = True
    ) -> bool:
        """Call the handler as `invoke` does, report its error, and return whether there was none."""
        try:
            self.invoke(event, ended=ended, limited=limited)
        except MirrorlessError as error:
            if isinstance(error, ClusterUnavailable) and outages.suspect(error.cluster):
                self.sink.failed_again(str(error))
            else:
                self.sink.trouble(str(error), certain=not error.retriable)
        except Exception as error:  # noqa: BLE001 -- on Lambda too, the function handles the next event
            self.sink.trouble(f"{type(error).__name__}: {error}", certain=True)
        return self.sink.went_well

    def hand(self, event: Mapping[str, Any]) -> threading.Event:
        """Queue an event for the function; the returned event is set when it was handled."""
        handled = threading.Event()
        self._events.put((event, handled))
        return handled

    def start(self, *, every_s: float | None, first_s: float = 0.0) -> None:
        """Begin to handle events, and scheduled events every so many seconds, the first one `first_s` from now."""
        self._every_s = every_s
        self._due = time.monotonic() + first_s
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wake up the thread that waits for an event; `ended` already says that the run is to end."""
        self._events.put(None)

    def join(self, *, until: float) -> None:
        """Wait for the end until the monotonic time `until`; unfinished work may be repeated."""
        if self._thread is not None:
            self._thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._ended():
            wait_s = None if self._every_s is None else self._due - time.monotonic()
            if wait_s is not None and wait_s <= 0:
                if self._away():
                    time.sleep(_LOOK_S)
                else:
                    self._tick()
                continue
            try:
                item = self._events.get(timeout=wait_s)
            except queue.Empty:
                continue
            if item is None:
                break
            event, handled = item
            while self._away() and not self._ended():
                time.sleep(_LOOK_S)
            self.attempt(event)
            handled.set()

    def _tick(self) -> None:
        assert self._every_s is not None
        late_s = time.monotonic() - self._due
        self.attempt(schedule_event(self._spec.name, at=time.time() - late_s))
        self._due += self._every_s
        # Scheduled events while the function is busy are dropped, as on Lambda.
        behind_s = time.monotonic() - self._due
        if behind_s > self._every_s:
            self._due += behind_s // self._every_s * self._every_s
