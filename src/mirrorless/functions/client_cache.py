"""What a warm function keeps from invocation to invocation: clients that took their time to connect."""

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
    """One value by flow (or pair of clusters), made anew where its settings changed, and where it failed.

    A client resolves `${secretsmanager:...}` when it is made, so equal settings do not say that its password is still
    the right one: whatever fails begins with a new client the next time. Each function has one of its own, because on
    one machine several functions of a flow share the process. `close` ends a value that is not kept any more.
    """

    def __init__(self, close: Callable[[_Kept], None] = lambda _value: None) -> None:
        self._close = close
        self._entries: dict[str, _Entry[_Kept]] = {}

    @contextmanager
    def kept(self, name: str, settings: object, make: Callable[[], _Kept]) -> Iterator[_Kept]:
        """Yield the value of `name`, made if there is none for these settings; forgotten if an error comes out."""
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
        """Close the value, if there is one; the next one is made anew."""
        if (entry := self._entries.pop(name, None)) is not None:
            self._close(entry.value)
