"""Read a file in Java's properties format, with blanks allowed around the arrow of a flow.

Java ends a key at the first blank, so to `java.util.Properties` the line `A -> B.enabled = true` is the key `A`. Such
entries are read as if the blanks were not there, because that is what everybody means by them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import javaproperties

from mirrorless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

ARROW: Final = "->"

# Blanks as Java knows them; a backslash at the end of a line joins it with the next one.
_BLANKS_AND_ARROW: Final = re.compile(r"(?:[ \t\f]|\\\n)*->(?:[ \t\f]|\\\n)*")


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting's text, and the line where it begins, counted from 1. It may be a secret, so repr leaves it out."""

    value: str = field(repr=False)
    line: int


def read(path: str | PathLike[str]) -> Mapping[str, Entry]:
    """Read a UTF-8 file into a mapping in the order of its lines; the last of several equal keys wins, as in Java.

    Raises ConfigurationError where the file cannot be read, is not UTF-8, or has a broken unicode escape.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"is not UTF-8 at byte {error.start}", file=str(path)) from None
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror or error}", file=str(path)) from None
    return parse(text, file=str(path))


def parse(text: str, *, file: str | None = None) -> Mapping[str, Entry]:
    """Do the same with a text that is already read; `file` only names it in errors."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    entries: dict[str, Entry] = {}
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
            entries.pop(key, None)  # the order is that of the lines that count
            entries[key] = Entry(value, line)
        line += element.source.count("\n")


def _elements(text: str) -> Iterator[javaproperties.PropertiesElement]:
    yield from javaproperties.parse(text)


def _join_arrow(element: javaproperties.KeyValue) -> tuple[str, str]:
    """Return key and value, read again without the blanks around an arrow if they cut the key in two."""
    if element.value.startswith(ARROW) or element.key.endswith(ARROW):
        again = next(iter(javaproperties.parse(_BLANKS_AND_ARROW.sub(ARROW, element.source, count=1))))
        # `A = -> x` has its arrow in the value, and without blanks it still has.
        if isinstance(again, javaproperties.KeyValue) and ARROW in again.key:
            element = again
    # Blanks in a key may also be escaped: `A\ ->\ B.enabled`.
    source, arrow, rest = element.key.partition(ARROW)
    return (f"{source.strip()}{ARROW}{rest.strip()}" if arrow else source), element.value
