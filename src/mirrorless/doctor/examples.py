"""Derives example names from patterns, to check rights on topics and groups that are not visible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FIXED: Final = re.compile(r"[^\\^$|?*+()\[\]{}]*")
_NAME: Final = "mirrorless-doctor"


def literals(patterns: Iterable[str], selects: Callable[[str], bool]) -> list[str]:
    """Return the patterns that are plain names, of those that the filter selects."""
    plain = (_plain(pattern) for pattern in patterns)
    return [name for name in plain if _FIXED.fullmatch(name) and selects(name)]


def examples(patterns: Iterable[str], selects: Callable[[str], bool]) -> list[str]:
    """Return plain names, and for `billing-.*` an invented name with this prefix, if the filter selects it."""
    found = []
    for pattern in patterns:
        name = _plain(pattern)
        fixed = "".join(_FIXED.findall(name)[:1])
        if fixed != name:
            quantified = name[len(fixed)] in "*+?{"
            name = f"{fixed[:-1] if quantified else fixed}{_NAME}"
        if selects(name):
            found.append(name)
    return found


def is_invented(name: str) -> bool:
    """Whether a name is one of `examples` that no topic or group has."""
    return name.endswith(_NAME)


def _plain(pattern: str) -> str:
    return re.sub(r"\\([.\-_])", r"\1", pattern)
