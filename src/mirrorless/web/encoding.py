"""Writes rows as JSON: names from their classes, each changed row encoded once for all pages. No I/O."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable


def encode(value: Any) -> str:  # noqa: ANN401 -- whatever a snapshot holds
    """Return a value as JSON, in ASCII; dataclasses become objects with the names of their fields."""
    return _ENCODE(value)


class EncodedRows:
    """The rows of one table as JSON; `key` returns the tuple that identifies a row."""

    def __init__(self, key: Callable[[Any], Any]) -> None:
        self._key = key
        self._rows: dict[Any, Any] = {}
        self._texts: dict[Any, str] = {}

    def update(self, rows: Iterable[Any]) -> tuple[list[str], list[Any]]:
        """Take all current rows; returns those that changed, as JSON, and the keys of those that are gone."""
        before = self._rows
        self._rows = {self._key(row): row for row in rows}
        changed: list[str] = []
        for key, row in self._rows.items():
            earlier = before.get(key)
            if earlier is not row and earlier != row:
                self._texts[key] = encode(row)
                changed.append(self._texts[key])
        gone = [key for key in before if key not in self._rows]
        for key in gone:
            del self._texts[key]
        return changed, gone

    @property
    def text(self) -> str:
        """All rows as one JSON array."""
        return f"[{','.join(self._texts[key] for key in self._rows)}]"


@cache
def _reading(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:  # noqa: ANN401 -- a dataclass
    names = tuple(one.name for one in fields(kind))
    read = attrgetter(*names)
    return names, read if len(names) > 1 else lambda value: (read(value),)


def _members(value: Any) -> dict[str, Any]:  # noqa: ANN401 -- a dataclass
    names, read = _reading(cast("Hashable", type(value)))
    return dict(zip(names, read(value), strict=True))


# `asdict` takes ten times as long.
_ENCODE: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, default=_members).encode
