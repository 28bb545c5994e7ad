"""Ends a command within seconds of Ctrl-C, also while a client library waits for a cluster that does not answer.

Python runs a signal handler between two of its own steps only, and waits at its end for threads of pools: a wait in a
library of up to a minute would delay both.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from mirrorless.cli.status_codes import COULD_NOT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_GRACE_S: Final = 3.0
"""How long a command may take to end by itself."""
_WATCHER: Final = "interrupts"
_undoes = threading.Event()


def must_end_by_itself() -> None:
    """Let this command end by itself after Ctrl-C, however long that takes: it has something to undo or to finish."""
    _undoes.set()


@contextmanager
def watched() -> Iterator[None]:
    """End the process some seconds after the first Ctrl-C while the context lasts; only in the main thread."""
    _undoes.clear()
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    over = threading.Event()
    threading.Thread(target=_watch, args=(reading, over), name=_WATCHER, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        writing.close()


def _watch(reading: socket.socket, over: threading.Event) -> None:
    with reading, suppress(OSError):
        while received := reading.recv(1):
            if received[0] == signal.SIGINT and not over.wait(_GRACE_S) and not _undoes.is_set():
                sys.stderr.write("error: interrupted\n")
                leave(COULD_NOT)


def leave(status: int) -> None:
    """Exit without waiting for threads that wait for clusters; what they were doing was given up."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def has_waiting_threads(earlier: Collection[threading.Thread]) -> bool:
    """Whether threads are left that `earlier` does not have: Python might wait for them at its end.

    It does so for daemon threads of pools too.
    """
    return any(one not in earlier and one.name != _WATCHER for one in threading.enumerate())
