"""Keeps connected clients between the invocations of a function."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mirrorless.clusters import outages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class _Entry(Generic[_Kept]):
    settings: object
    value: _Kept


class ClientCache(Generic[_Kept]):
    """One value per flow (or pair of clusters), made again if its settings changed, or after an error.

    A client resolves `${secretsmanager:...}` when it is made, so with equal settings its password may still be out of
    date: after any error the next invocation makes a new client. Each function has a separate cache, because on
    one machine several functions of a flow share the process. `close` releases a value that is dropped.
    """

    def __init__(self, close: Callable[[_Kept], None] = lambda _value: None) -> None:
        self._close = close
        self._entries: dict[str, _Entry[_Kept]] = {}
        self._used: set[str] = set()
        self._lock = threading.Lock()
        outages.close_with_outages(self)

    @contextmanager
    def kept(self, name: str, settings: object, make: Callable[[], _Kept]) -> Iterator[_Kept]:
        """Yield the value of `name`, made if there is none for these settings; dropped if an error is raised."""
        with self._lock:
            self._used.add(name)
        try:
            entry = self._entries.get(name)
            if entry is None or entry.settings != settings:
                self.forget(name)
                entry = self._entries[name] = _Entry(settings, make())
            yield entry.value
        except Exception:
            self.forget(name)
            raise
        finally:
            with self._lock:
                self._used.discard(name)

    def forget(self, name: str) -> None:
        """Close the value, if there is one; the next call makes a new one."""
        if (entry := self._entries.pop(name, None)) is not None:
            self._close(entry.value)

    def close_unused(self) -> None:
        """Close all values that are not in use, in any thread: a cluster does not answer, or has another login."""
        with self._lock:
            unused = [self._entries.pop(name) for name in set(self._entries) - self._used]
        for entry in unused:
            self._close(entry.value)
