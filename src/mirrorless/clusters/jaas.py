r"""Parses the one-line form of a Java login configuration, `sasl.jaas.config`.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="wonder\"land";

Rules: Kafka's `JaasConfig` and the `java.io.StreamTokenizer` that it uses. Values are in double or single quotes with
C's escapes, or are plain words; comments are skipped; the line ends in a semicolon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOKEN: Final = re.compile(
    r"""
    (?P<skip>   \s+ | //[^\r\n]* | /\*.*?\*/ )
    | (?P<quoted> "(?:[^"\\\r\n]|\\.)*" | '(?:[^'\\\r\n]|\\.)*' )
    | (?P<word>   [A-Za-z_$\u00a0-\U0010ffff][-\w.$\u00a0-\U0010ffff]* )
    | (?P<sign>   [=;] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONTROL_FLAGS: Final = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """A login module's class and its options; the options contain secrets and stay out of repr."""

    module: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def short_name(self) -> str:
        """The class without its package."""
        return self.module.rpartition(".")[2]


def parse(text: str) -> JaasLogin:
    """Parse a configuration of one login module; raises ValueError with a reason that quotes nothing of the text."""
    tokens = _tokens(text)
    kind, module = next(tokens, ("end", ""))
    if kind != "word":
        raise ValueError("the name of a login module class must come first")
    kind, flag = next(tokens, ("end", ""))
    if kind != "word" or flag.lower() not in _CONTROL_FLAGS:
        raise ValueError(f"the login module must be followed by one of {', '.join(_CONTROL_FLAGS)}")
    options: dict[str, str] = {}
    for kind, key in tokens:
        if (kind, key) == ("sign", ";"):
            if next(tokens, None) is not None:
                raise ValueError("there must be exactly one login module, and nothing after its semicolon")
            return JaasLogin(module, options)
        if kind == "sign" or next(tokens, None) != ("sign", "="):
            raise ValueError('options must be given as key="value"')
        value_kind, value = next(tokens, ("end", ""))
        if value_kind not in ("word", "quoted"):
            raise ValueError(f"option {len(options) + 1} has no value; put it in double quotes")
        options[key] = value
    raise ValueError("a semicolon is missing at the end")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError(
                f"character {position + 1} is unexpected; put values in double quotes, with \\ before a quote"
            )
        position = match.end()
        kind = match.lastgroup or ""
        if kind == "quoted":
            yield kind, _ESCAPE.sub(_unescape, match[0][1:-1])
        elif kind != "skip":
            yield kind, match[0]


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    if escaped[0] in "01234567":
        return chr(int(escaped, 8))
    return _ESCAPED.get(escaped, escaped)
