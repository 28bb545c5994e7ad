"""Keeps connected clients between the invocations of a function."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

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

    @contextmanager
    def kept(self, name: str, settings: object, make: Callable[[], _Kept]) -> Iterator[_Kept]:
        """Yield the value of `name`, made if there is none for these settings; dropped if an error is raised."""
        entry = self._entries.get(name)
        if entry is None or entry.settings != settings:
            self.forget(name)
            entry = self._entries[name] = _Entry(settings, make())
        try:
            yield entry.value
        except Exception:
            self.forget(name)
            raise

    def forget(self, name: str) -> None:
        """Close the value, if there is one; the next call makes a new one."""
        if (entry := self._entries.pop(name, None)) is not None:
            self._close(entry.value)
