"""Parses comma-separated lists, and lists of Java regular expressions.

Rules (MirrorMaker 2's `DefaultTopicFilter` and Kafka's type LIST): split at commas, trim, match the whole name. A plain
name is a pattern too, so its dots match any character. A comma always separates, even inside braces.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

from mirrorless.settings.java_regex import difference, leading_flags

if TYPE_CHECKING:
    from collections.abc import Iterable

_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_QUOTES: Final = "\"'\u201c\u201d\u2018\u2019"
_DANGLING: Final = re.compile(r"(?:^|[(|])\*")
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
FIXED: Final = re.compile(r"[^\\^$|?*+()\[\]{}.]*")
"""The literal part of a pattern; a dot may match any character."""
_LIKE_A_GLOB: Final = re.compile(r"[\w-]+[\w-]\*")


def split_list(text: str) -> tuple[str, ...]:
    """Split at commas and trim; empty elements and repetitions are dropped (KIP-1161)."""
    return tuple(dict.fromkeys(element for part in text.split(",") if (element := part.strip())))


def plain_name(pattern: str) -> str | None:
    """Return the one topic that a pattern means, None if it means several; a dot in a name counts as a dot."""
    name = re.sub(r"\\([.\-_])", r"\1", pattern)
    return name if FIXED.fullmatch(name.replace(".", "")) else None


def tidy_patterns(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a list of patterns without quotes and with globs made regular expressions, and remarks about it.

    A glob has a `*` with nothing to repeat; `orders*` is a pattern and stays one, with a remark.
    """
    remarks: list[str] = []
    tidied = []
    for element in split_list(text):
        bare = unquoted(element)
        if _DANGLING.search(bare):
            pattern = "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in bare.replace(".*", "*"))
            remarks.append(f"{bare} is not a regular expression, read as {pattern}")
            bare = pattern
        elif _LIKE_A_GLOB.fullmatch(bare):
            stem = bare[:-1]
            remarks.append(
                f"{bare} means {stem[:-1]} and any number of {stem[-1]}; to match any suffix, write {stem}.*"
            )
        tidied.append(bare)
    if '"' in text or "'" in text:
        remarks.insert(0, "quotes are not part of a pattern and are ignored")
    return ", ".join(tidied), tuple(remarks)


def unquoted(text: str) -> str:
    """Return a text without the quotes around it; an unpaired quote is dropped too."""
    return text.strip().strip(_QUOTES).strip()


def compile_patterns(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    """Compile every element of comma-separated lists, for use with `fullmatch`.

    MirrorMaker 2 joins the elements with `|`, so flags at the beginning of an element, such as `(?i)`, hold for the
    following elements too, and groups are counted through. Raises ValueError, in one line with the pattern and the
    reason, for a pattern that Python does not compile or would read differently.
    """
    compiled: list[re.Pattern[str]] = []
    flags = re.ASCII  # Java's \d, \w and (?i) are ASCII by default
    groups = 0
    for element in (element for text in patterns for element in split_list(text)):
        if groups and re.search(r"\\[1-9]", element):
            raise _refusal(element, "Java counts groups through the whole list; do not refer to a group by its number")
        for letter in leading_flags(element):
            flags |= _FLAGS[letter]
        compiled.append(_compile(element, flags))
        groups += compiled[-1].groups
    return tuple(compiled)


class Patterns:
    """Lists of regular expressions, most of which are one joined pattern: a list may have thousands of exact names.

    Raises ValueError as `compile_patterns`.
    """

    __slots__ = ("_apart", "_every", "_joined", "_names")

    def __init__(self, patterns: Iterable[str]) -> None:
        self._every = compile_patterns(patterns)
        self._names: set[str] = set()
        self._apart: list[re.Pattern[str]] = []
        joined: list[str] = []
        for one in self._every:
            if one.flags != re.ASCII or one.groupindex or leading_flags(one.pattern):
                self._apart.append(one)
                continue
            if _NAME.fullmatch(one.pattern):
                self._names.add(one.pattern)
                if "." not in one.pattern:  # it matches nothing but itself
                    continue
            joined.append(f"(?:{one.pattern})")
        self._joined = _compiled("|".join(joined), re.ASCII) if joined else None

    def match(self, name: str) -> bool:
        """Whether any pattern matches the whole name."""
        if name in self._names or (self._joined is not None and self._joined.fullmatch(name)):
            return True
        return any(one.fullmatch(name) for one in self._apart)

    def first(self, name: str) -> str | None:
        """Return the first pattern that matches the whole name; None if none does."""
        return next(one.pattern for one in self._every if one.fullmatch(name)) if self.match(name) else None


def _compile(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    if (reason := difference(pattern)) is not None:
        raise _refusal(pattern, reason)
    try:
        return _compiled(pattern, flags)
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        raise _refusal(pattern, str(error)) from None


def _compiled(pattern: str, flags: re.RegexFlag) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # what remains means the same in Java
        return re.compile(pattern, flags)


def _refusal(pattern: str, reason: str) -> ValueError:
    return ValueError(f"pattern {pattern!r} does not compile: {reason}")
