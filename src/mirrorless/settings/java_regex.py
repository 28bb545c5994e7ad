"""Differences between Java and Python in regular expressions, so that they are refused instead of misread.

Java: `java.util.regex.Pattern` of JDK 17. Python: `re` since 3.11, which has possessive quantifiers (`a*+`) and atomic
groups (`(?>a)`) just as Java. What both refuse, and what only Java refuses, is left to Python.
"""

from __future__ import annotations

import re
from typing import Final

# A `]` at the beginning of a character class is an ordinary character, in both languages.
_OUTSIDE_A_CLASS: Final = re.compile(
    r"(?P<escape>\\(?:b\{|k<|[1-9][0-9]+|x\{|.))"
    r"|(?P<named>\(\?<(?![=!]))"
    r"|(?P<flags>\(\?[a-zA-Z]*(?:-[a-zA-Z]*)?[:)])"
    r"|(?P<brace>\{(?!\d+(?:,\d*)?\}))"
    r"|\[\^?\]?|.",
    re.DOTALL,
)
_INSIDE_A_CLASS: Final = re.compile(r"(?P<escape>\\(?:x\{|.))|&&|.", re.DOTALL)

# The character after the backslash -> its meaning in Java, and what to write instead.
_ESCAPES: Final = {
    "p": (r"Java's \p{...} is not supported", "list the characters, as in [a-z]"),
    "P": (r"Java's \P{...} is not supported", "list the characters, as in [^a-z]"),
    "Q": (r"Java's \Q...\E is not supported", r"put a backslash before each special character, as in a\.b"),
    "E": (r"Java's \Q...\E is not supported", r"put a backslash before each special character, as in a\.b"),
    "h": (r"Java's \h is not supported", r"write [ \t]"),
    "H": (r"Java's \H is not supported", r"write [^ \t]"),
    "v": (r"\v is any vertical space in Java and one character in Python", r"write [\n\x0B\f\r]"),
    "V": (r"Java's \V is not supported", r"write [^\n\x0B\f\r]"),
    "R": (r"Java's \R is not supported", r"write (\r\n|[\n\r])"),
    "X": (r"Java's \X is not supported", "write a dot"),
    "G": (r"Java's \G is not supported", "remove it: the whole name is matched"),
    "z": (r"\z does not mean the same in all versions", "remove it: the whole name is matched"),
    "Z": (r"\Z matches another position in Python than in Java", "remove it: the whole name is matched"),
    "0": (r"octal numbers are read differently", r"write \xhh"),
    "e": (r"Java's \e is not supported", r"write \x1B"),
    "c": (r"Java's \c is not supported", r"write \xhh"),
    "k<": (r"Java's \k<name> is not supported", r"refer to the group by its number, as in \1"),
    "b{": (r"Java's \b{g} is not supported", "remove it"),
    "x{": (r"Java's \x{...} is not supported", r"write \xhh or \uhhhh"),
}
_FLAGS: Final = "ims"


def difference(pattern: str) -> str | None:
    """Return position, construct and replacement of the first construct with another meaning in Java; or None."""
    inside, position = False, 0
    while match := (_INSIDE_A_CLASS if inside else _OUTSIDE_A_CLASS).match(pattern, position):
        if (told := _told(match, inside=inside)) is not None:
            return f"{told[0]} at position {position}; {told[1]}"
        inside = match[0] != "]" if inside else match[0].startswith("[")
        position = match.end()
    return None


def leading_flags(pattern: str) -> str:
    """Return the letters of the flags at the very beginning: `i` for `(?i)orders`."""
    found = re.match(rf"\(\?([{_FLAGS}]+)\)", pattern)
    return found[1] if found else ""


def _told(match: re.Match[str], *, inside: bool) -> tuple[str, str] | None:
    groups = match.groupdict()
    if inside and match[0] in ("[", "&&"):
        return "Java's operations on character classes are not supported", "write one class, or a lookahead (?!...)"
    if groups.get("escape"):
        escaped = match[0][1:]
        if escaped.isdigit() and len(escaped) > 1 and escaped[0] != "0":
            return f"\\{escaped} is read differently", "use at most nine groups and no digit after a reference"
        return _ESCAPES.get(escaped)
    if groups.get("brace"):
        return (
            "{ does not begin a repetition (a comma separates list elements, in braces too)",
            r"write x{3}, or xx?x?, or \{",
        )
    if groups.get("named"):
        return "Java's named groups are not supported", "write a plain group (...)"
    if groups.get("flags"):
        return _flags_told(match[0], at_start=match.start() == 0)
    return None


def _flags_told(text: str, *, at_start: bool) -> tuple[str, str] | None:
    letters = text[2:-1]
    if not set(letters.replace("-", "")) <= set(_FLAGS):
        return f"the flags {text} are read differently", f"of Java's flags only {', '.join(_FLAGS)} are supported"
    if text.endswith(")") and not at_start:
        return f"flags inside a pattern, {text}, are not supported", f"put them first, or write (?{letters}:...)"
    if text.endswith(")") and "-" in letters:
        return f"flags that are switched off, {text}, are not supported", "remove them"
    return None
