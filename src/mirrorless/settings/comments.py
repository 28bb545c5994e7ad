"""Removes a comment after a value, which Java's properties format does not have: `tasks.max = 4  # cores`.

Java reads the comment as a part of the value. Only lists, numbers, booleans and values that are one of several words
are read without it: none of them can contain white space followed by `#` or `//` and still have an effect.
"""

from __future__ import annotations

import re
from typing import Final

_QUOTED_OR_COMMENT: Final = re.compile(r"\"[^\"]*\"|'[^']*'|(?P<comment>(?<=[ \t\f])(?:#|//).*)", re.DOTALL)


def without_comment(value: str) -> tuple[str, str | None]:
    """Return a value without the comment that follows white space outside of quotes, and the comment."""
    for match in _QUOTED_OR_COMMENT.finditer(value):
        if match["comment"] is not None:
            return value[: match.start()].strip(), match["comment"]
    return value, None
