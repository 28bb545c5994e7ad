"""A thread that reads something again and again, at an interval and for a bounded share of a core."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

from mirrorless.errors import MirrorlessError

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST_S: Final = 10.0
_PAUSE_PER_CPU: Final = 20
"""A thread pauses for this many times the CPU that it used, so it takes a twentieth of a core at most."""


class RepeatingReader(ABC):
    """Calls `read` every `every_s` seconds; `error` is why the last call failed, `read_ms` when one last succeeded.

    The first call is made when those `after` which it comes were called once. `cpu_s` is the CPU time that the last
    call used in this thread.
    """

    def __init__(self, name: str, *, every_s: float, after: Sequence[RepeatingReader] = ()) -> None:
        self._every_s = every_s
        self._after = after
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.error: str | None = None
        self.read_ms: int | None = None
        self.was_tried = threading.Event()
        self.cpu_s = 0.0

    @abstractmethod
    def read(self) -> None:
        """Read once; raises `MirrorlessError`."""

    def close(self) -> None:  # noqa: B027 -- not every reader has a connection
        """Close the connections; called in the thread at its end."""

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def end(self) -> None:
        """Request the end, which comes after the current call."""
        self._ended.set()

    def join(self, seconds: float) -> None:
        """Wait for the end, at most so long: a call may wait for a cluster that does not answer."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    @property
    def is_ending(self) -> bool:
        """Whether the end was requested."""
        return self._ended.is_set()

    def _run(self) -> None:
        try:
            for one in self._after:
                one.was_tried.wait(_FIRST_S)
            while not self._ended.is_set():
                self._ended.wait(max(self._every_s, _PAUSE_PER_CPU * self._once()))
        finally:
            self.close()

    def _once(self) -> float:
        began = time.thread_time()
        try:
            self.read()
        except MirrorlessError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 -- the page shows the error, and the next call may succeed
            self.error = f"{type(error).__name__}: {error}"
        else:
            self.error, self.read_ms = None, int(time.time() * 1000)
        self.was_tried.set()
        self.cpu_s = time.thread_time() - began
        return self.cpu_s
