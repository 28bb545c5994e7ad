r"""Finds patterns that match no topic name, because every match has a character that no topic name may have.

Names consist of ASCII letters, digits, `.`, `_` and `-`. A pattern with a blank comes from a comment or a list without
commas, one with a control character from a single backslash in a properties file: `.*\replica` begins with `.*` and a
carriage return.
"""

from __future__ import annotations

import re
import string
from typing import Final

_LEGAL: Final = string.ascii_letters + string.digits + "._-"
_ATOM: Final = re.compile(
    r"(?P<group>\((?:\?(?:(?P<around><?[=!])|(?P<flags>[a-z-]+\))|[a-z-]*:|>))?)"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<escape>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.))"
    r"|(?P<anchor>[.^$])"
    r"|(?P<literal>.)",
    re.DOTALL,
)
_REPEAT: Final = re.compile(r"(?P<maybe>[?*]|\{0*(?:,\d*)?\})?(?:\+|\{\d+(?:,\d*)?\})?[?+]?")
_NO_CHARACTER: Final = re.compile(r"\\[bBAZzG0-9]")


def never_in_a_name(pattern: str) -> str | None:
    """Return a character, or an expression for one, that each match has and no topic name; None if a name may match.

    The pattern has to compile. Patterns that match nothing for another reason are not found.
    """
    return _RequiredReader(pattern).required()


class _RequiredReader:
    """A pattern and a position in it; each method reads one construct and returns what it requires."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def required(self) -> str | None:
        """Read alternatives, up to the end of their group: what is required is required by all of them."""
        found = [self._sequence()]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            found.append(self._sequence())
        self._at += 1  # the closing parenthesis
        return found[0] if all(one is not None for one in found) else None

    def _sequence(self) -> str | None:
        found = None
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            one = self._atom()
            repeat = _REPEAT.match(self._text, self._at)
            if repeat is not None and repeat.end() > self._at:
                self._at = repeat.end()
                one = None if repeat["maybe"] else one
            found = found or one
        return found

    def _atom(self) -> str | None:
        atom = _ATOM.match(self._text, self._at)
        if atom is None:  # not with a pattern that compiles
            self._at = len(self._text)
            return None
        self._at = atom.end()
        if atom["group"] is not None:
            if atom["flags"] is not None:
                return None
            inner = self.required()
            return None if atom["around"] is not None else inner
        if atom["anchor"] is not None or _NO_CHARACTER.fullmatch(atom[0]) is not None:
            return None
        if atom["literal"] is not None:
            return None if atom[0] in _LEGAL else atom[0]
        return None if any(re.fullmatch(atom[0], sign, re.ASCII) for sign in _LEGAL) else atom[0]
