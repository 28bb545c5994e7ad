"""Comma-separated lists, and the lists of Java regular expressions among them.

Rules (MirrorMaker 2's `DefaultTopicFilter` and Kafka's type LIST): split at commas, trim, match the whole name. A plain
name is a pattern too, so its dots match any character. A comma always separates, even inside braces.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# A `]` that comes first in a character class is an ordinary one, in both languages.
_OUTSIDE_A_CLASS: Final = re.compile(r"\\.|\[\^?\]?|.", re.DOTALL)
_INSIDE_A_CLASS: Final = re.compile(r"\\.|&&|.", re.DOTALL)


def split_list(text: str) -> tuple[str, ...]:
    """Split at commas and trim; empty elements are left out, and repeated ones after the first (KIP-1161)."""
    return tuple(dict.fromkeys(element for part in text.split(",") if (element := part.strip())))


def compile_patterns(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Compile every element of comma-separated lists by itself, for use with `fullmatch`.

    By itself, because MirrorMaker 2 joins the elements with `|`, where an inline flag such as `(?i)` leaks into those
    behind it. Raises ValueError, in one line with the pattern and the reason, for what Python does not compile or would
    read differently.
    """
    return tuple(_compile(element) for text in patterns for element in split_list(text))


def _compile(pattern: str) -> re.Pattern[str]:
    position = _class_operation(pattern)
    if position is not None:
        reason = f"Java's operations on character classes are not supported at position {position}"
        raise ValueError(f"pattern {pattern!r} does not compile: {reason}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # what is left to warn of means the same in Java
            # Java's \d, \w and (?i) are ASCII unless told otherwise.
            return re.compile(pattern, re.ASCII)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"pattern {pattern!r} does not compile: {error}") from None


def _class_operation(pattern: str) -> int | None:
    """Return where a set operation of Java's begins, as in `[a-z&&[^b]]` and `[a[b]]`, or None.

    Python reads those as something else, mostly without a word.
    """
    inside, position = False, 0
    while match := (_INSIDE_A_CLASS if inside else _OUTSIDE_A_CLASS).match(pattern, position):
        if inside and match[0] in ("[", "&&"):
            return position
        inside = match[0] != "]" if inside else match[0].startswith("[")
        position = match.end()
    return None
