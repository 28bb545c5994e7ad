"""Types of settings: accepted values, and the one-line reason for a refusal.

The reason is a ValueError, which pydantic passes on. A value that is not a string is left to pydantic, so that the
models can also be built in code. Bounds are Kafka's own if it has any, otherwise the smallest useful ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from mirrorless.settings.impossible_patterns import never_in_a_name
from mirrorless.settings.masking import MaskedMapping
from mirrorless.settings.patterns import compile_patterns, split_list
from mirrorless.settings.rename_rules import parse_rules


def _split(value: object) -> object:
    return split_list(value) if isinstance(value, str) else value


def _compilable(patterns: tuple[str, ...]) -> tuple[str, ...]:
    compile_patterns(patterns)
    return patterns


def _excluding(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        if (sign := never_in_a_name(pattern)) is not None:
            raise ValueError(
                f"pattern {pattern!r} excludes nothing, because topic names cannot have {sign!r}; in a properties file "
                "a backslash is written twice, elements are separated by commas, and comments have their own line"
            )
    return patterns


def _renaming(rules: tuple[str, ...]) -> tuple[str, ...]:
    parse_rules(",".join(rules))
    return rules


def _whole(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", value.strip()) or not -(2**31) <= int(value) < 2**31:
        raise ValueError("must be a whole number in the range of 32 bits")
    return int(value)


def boolean(value: object) -> object:
    """Read true or false as Kafka does: in any case, and nothing else. Raises ValueError."""
    if not isinstance(value, str):
        return value
    if value.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return value.strip().lower() == "true"


def _seconds(value: object) -> object:
    try:
        seconds = float(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be a number of seconds") from None
    if isinstance(seconds, int | float) and not (math.isfinite(seconds) and seconds > 0):
        raise ValueError("must be a number of seconds above 0")
    return seconds


def _at_least(least: int) -> Callable[[int], int]:
    def check(value: int) -> int:
        if value < least:
            raise ValueError(f"must be {least} or more")
        return value

    return check


def _interval(value: int) -> int:
    if value < 0:
        raise ValueError("must be 1 or more; to disable it, set its .enabled to false")
    return _at_least(1)(value)


def _count_or_broker_default(value: int) -> int:
    if value != -1 and value < 1:
        raise ValueError("must be 1 or more, or -1 for the broker's default")
    return value


def _not_empty(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def timestamp_ms(value: object) -> object:
    """Read milliseconds since 1970, or a time with its zone, as milliseconds. Raises ValueError."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError("must be milliseconds since 1970, or a time with its zone such as 2026-01-31T12:00:00Z")
    return int(moment.timestamp() * 1000)


def _one_of(*words: str) -> Callable[[object], object]:
    def check(value: object) -> object:
        if isinstance(value, str) and value.strip().lower() not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return value.strip().lower() if isinstance(value, str) else value

    return check


def _bytes_per_second(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not re.fullmatch(r"[0-9]{1,18}", value.strip()) or int(value) < 1:
        raise ValueError("must be a whole number of bytes, 1 or more")
    return int(value)


def _acl_patterns(value: object) -> object:
    if not isinstance(value, str):
        return value
    words = tuple(word.lower() for word in split_list(value))
    if not words or not set(words) <= {"literal", "prefixed"}:
        raise ValueError("must be literal, prefixed, or both separated by a comma")
    return words


def _fence(value: object) -> object:
    if not isinstance(value, str):
        return value
    word, _, path = value.strip().partition(":")
    if word == "command" and path:
        return value.strip()
    if value.strip().lower() not in ("auto", "acl", "config", "none"):
        raise ValueError("must be auto, acl, config, none or command:PATH")
    return value.strip().lower()


def _switches(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = split_list(value)
    for one in found:
        kind, _, rest = one.partition(":")
        zone, _, name = rest.partition("/")
        if kind not in ("ssm", "route53", "file", "http", "https", "command") or not rest:
            raise ValueError(f"{one!r} must be ssm:/PARAMETER, route53:ZONE/NAME, file:PATH, http:URL or command:PATH")
        if kind == "route53" and not (zone and name):
            raise ValueError(f"{one!r} must be route53:ZONE/NAME, with the id of the hosted zone")
        if kind == "http" and not rest.startswith(("//", "http://", "https://")):
            raise ValueError(f"{one!r} must be http:URL, such as http:https://example.org/switch")
    return found


def _folder(value: str) -> str:
    if not value.isprintable() or (value.startswith("s3:") and not re.fullmatch(r"s3://[^/]+(/.*)?", value)):
        raise ValueError("must be a folder, or s3://bucket/prefix")
    return value


@dataclass(frozen=True, slots=True)
class ValueType:
    """The accepted values in words, for `mirrorless config explain`."""

    words: str


class Scope(Enum):
    """Whose setting a field of a flow is: the flow's, unless the field's type says otherwise."""

    FLOW = "flow"
    WORKER = "the Connect worker"
    SOURCE_CLIENT = "a client of the source"


PATTERNS = ValueType("list of patterns")
ACL_PATTERNS = ValueType("literal, prefixed or both")
RENAMES = ValueType("list of rules, pattern -> name")
TEXT = ValueType("text")

Patterns = Annotated[tuple[str, ...], PATTERNS, BeforeValidator(_split), AfterValidator(_compilable)]
ExcludedTopics = Annotated[Patterns, AfterValidator(_excluding)]
Renames = Annotated[tuple[str, ...], RENAMES, BeforeValidator(_split), AfterValidator(_renaming)]
Names = Annotated[tuple[str, ...], ValueType("list of names"), BeforeValidator(_split)]
Boolean = Annotated[bool, ValueType("true or false"), BeforeValidator(boolean)]
PositiveInt = Annotated[
    int, ValueType("whole number, 1 or more"), BeforeValidator(_whole), AfterValidator(_at_least(1))
]
Interval = Annotated[int, ValueType("whole number, 1 or more"), BeforeValidator(_whole), AfterValidator(_interval)]
CountOrDefault = Annotated[
    int, ValueType("whole number, 1 or more, or -1"), BeforeValidator(_whole), AfterValidator(_count_or_broker_default)
]
Seconds = Annotated[float, ValueType("seconds, may have a fraction"), BeforeValidator(_seconds)]
TimestampMs = Annotated[
    int, ValueType("milliseconds since 1970, or a time with its zone"), BeforeValidator(timestamp_ms)
]
OffsetReset = Annotated[
    Literal["earliest", "latest"], ValueType("earliest or latest"), BeforeValidator(_one_of("earliest", "latest"))
]
OffsetsMode = Annotated[
    Literal["dense", "identical"], ValueType("dense or identical"), BeforeValidator(_one_of("dense", "identical"))
]
Tolerance = Annotated[Literal["none", "all"], ValueType("none or all"), BeforeValidator(_one_of("none", "all"))]
Engine = Annotated[
    Literal["auto", "functions", "spark"],
    ValueType("auto, functions or spark"),
    BeforeValidator(_one_of("auto", "functions", "spark")),
]
OnGap = Annotated[
    Literal["halt", "continue"], ValueType("halt or continue"), BeforeValidator(_one_of("halt", "continue"))
]
BothDirections = Annotated[
    Literal["refuse", "turns", "skip"],
    ValueType("refuse, turns or skip"),
    BeforeValidator(_one_of("refuse", "turns", "skip")),
]
NotNegativeInt = Annotated[
    int, ValueType("whole number, 0 or more"), BeforeValidator(_whole), AfterValidator(_at_least(0))
]
Location = Annotated[
    Literal["source", "target"], ValueType("source or target"), BeforeValidator(_one_of("source", "target"))
]
BytesPerSecond = Annotated[int, ValueType("bytes per second"), BeforeValidator(_bytes_per_second)]
DefaultsFrom = Annotated[
    Literal["source", "target"], ValueType("source or target"), BeforeValidator(_one_of("source", "target"))
]
AclPatterns = Annotated[tuple[Literal["literal", "prefixed"], ...], ACL_PATTERNS, BeforeValidator(_acl_patterns)]
Fence = Annotated[str, ValueType("auto, acl, config, none or command:PATH"), BeforeValidator(_fence)]
Switches = Annotated[
    tuple[str, ...], ValueType("list of ssm:, route53:, file:, http: and command:"), BeforeValidator(_switches)
]
Text = Annotated[str, TEXT, AfterValidator(_not_empty)]
Folder = Annotated[str, TEXT, AfterValidator(_folder)]
Separator = Annotated[str, TEXT]
ClientSettings = Annotated[
    Mapping[str, str], AfterValidator(MaskedMapping), PlainSerializer(lambda settings: MaskedMapping(settings).masked())
]
