"""Reads a file in Java's properties format, with blanks allowed around the arrow of a flow and around dots.

Java ends a key at the first blank, so to `java.util.Properties` the line `A -> B.enabled = true` is the key `A`. Such
entries are read as if there were no blanks, because that is what is meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import javaproperties

from mirrorless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ARROW: Final = "->"
NOBODYS: Final = -1

# Blanks as Java defines them; a backslash at the end of a line joins it with the next one.
_BLANKS_AND_ARROW: Final = re.compile(r"(?:[ \t\f]|\\\n)*->(?:[ \t\f]|\\\n)*")
# A key with blanks around dots; only an `=` or `:` after it distinguishes it from a key and its value: `topics .*`.
_DOTTED: Final = re.compile(r"[ \t\f]*[^\s=:\\#!.][^\s=:\\.]*(?:[ \t\f]*\.[ \t\f]*[^\s=:\\.]+)+(?=[ \t\f]*[=:])")
_BLANKS_AND_DOT: Final = re.compile(r"[ \t\f]*\.[ \t\f]*")
# A character set: in it a dot is a dot, with or without a backslash.
_SET: Final = re.compile(r"(?<!\\)\[[^\]]*\]")
# An escape of which the format drops the backslash, and which is another regular expression without it.
_DROPPED: Final = re.compile(r"\\(?:\\|([.dDwWsSbB*+?|(){}\[\]^$]))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PropertyEntry:
    """A setting's text, which repr leaves out because it may be a secret, and where it is set.

    `line` counts from 1, is 0 if there are no lines and `NOBODYS` if the setting is in no file; `written` is the key
    as the file has it, if it was corrected. `earlier` is the entry before, if the file sets the key twice to different
    values. `dropped` are the escapes, such as a backslash and a dot, of which the format drops the backslash.
    """

    value: str = field(repr=False)
    line: int
    file: str | None = None
    written: str | None = None
    earlier: PropertyEntry | None = field(default=None, repr=False)
    dropped: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """File and line, as far as they are known."""
        return f"{self.file or ''}:{self.line}" if self.line > 0 else self.file or ""


def parse(text: str, *, file: str | None = None) -> Mapping[str, PropertyEntry]:
    """Read a text into a mapping in the order of its lines; the last of several equal keys wins, as in Java.

    `file` only names it. Raises ConfigurationError for a broken unicode escape.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    entries: dict[str, PropertyEntry] = {}
    line = 1
    elements = _elements(text)
    while True:
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError:
            # The escape itself may be part of a secret; its line is enough to find it.
            raise ConfigurationError(
                rf"line {line} or soon after has a \u without four hexadecimal digits", file=file
            ) from None
        if element is None:
            return entries
        if isinstance(element, javaproperties.KeyValue):
            key, value = _join_arrow(element)
            earlier = entries.pop(key, None)  # in the order of the lines that are in effect
            if earlier is not None and earlier.value.strip() == value.strip():
                earlier = earlier.earlier
            entries[key] = PropertyEntry(value, line, file, earlier=earlier, dropped=_dropped(element.source))
        line += element.source.count("\n")


def _dropped(source: str) -> tuple[str, ...]:
    escaped = dict.fromkeys(sign for sign in _DROPPED.findall(_SET.sub("", source)) if sign)
    return tuple(f"\\{sign}" for sign in escaped)


def _elements(text: str) -> Iterator[javaproperties.PropertiesElement]:
    yield from javaproperties.parse(text)


def _join_arrow(element: javaproperties.KeyValue) -> tuple[str, str]:
    """Return key and value, read again without the blanks around an arrow if they cut the key in two."""
    if element.value.startswith(ARROW) or element.key.endswith(ARROW):
        again = next(iter(javaproperties.parse(_BLANKS_AND_ARROW.sub(ARROW, element.source, count=1))))
        # `A = -> x` has its arrow in the value, and without blanks it still has.
        if isinstance(again, javaproperties.KeyValue) and ARROW in again.key:
            element = again
    if dotted := _DOTTED.match(element.source):
        joined = _BLANKS_AND_DOT.sub(".", dotted[0])
        again = (
            element
            if joined == dotted[0]
            else next(iter(javaproperties.parse(joined + element.source[dotted.end() :])))
        )
        if isinstance(again, javaproperties.KeyValue):
            element = again
    # Blanks in a key may also be escaped: `A\ ->\ B.enabled`.
    source, arrow, rest = element.key.partition(ARROW)
    return (f"{source.strip()}{ARROW}{rest.strip()}" if arrow else source), element.value
