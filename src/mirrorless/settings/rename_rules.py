"""Parses the rules of `mirrorless.topics.rename`: a pattern for a whole topic name, and the name it gets.

A rule can be inverted, or it is refused: its pattern consists of literal text and groups, and the new name has each
group once. So the new name contains everything that the pattern leaves open. Outside groups a dot is a dot, with or
without a backslash, which a properties file drops.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from mirrorless.settings.patterns import compile_patterns, split_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ARROW: Final = "->"
LONGEST_NAME: Final = 249
_MOST_GROUPS: Final = 3
_LEGAL: Final = re.compile(r"[A-Za-z0-9._-]+")
_LITERAL: Final = re.compile(r"\\([.\-_])|\[([.\-_])\]|([A-Za-z0-9._-])")
_NEW_PART: Final = re.compile(r"\$([1-9])|([A-Za-z0-9._-]+)")
# What a group may contain: nothing that depends on the text around the group. A class is one sign.
_IN_GROUP: Final = re.compile(
    r"\\[^1-9bBAG]|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<ahead>\(\?[=!])|(?P<opens>\((?:\?:|(?!\?)))|(?P<closes>\))|[^\\()\[^$]"
)


@dataclass(frozen=True, slots=True)
class RenameRule:
    """One rule; `text` is as it is written, `new` is the new name: literal text, and numbers of groups."""

    text: str
    pattern: re.Pattern[str]
    groups: tuple[re.Pattern[str], ...]
    old: tuple[str | int, ...]
    new: tuple[str | int, ...]

    def apply(self, topic: str) -> str | None:
        """Return the new name of a topic; None if the pattern does not match the whole name."""
        found = self.pattern.fullmatch(topic)
        return None if found is None else _filled(self.new, dict(enumerate(found.groups(), 1)))

    def inverted(self, name: str) -> list[str]:
        """Return every topic that this rule gives a name, in alphabetical order."""
        found = {_filled(self.old, texts) for texts in self._divided(name, self.new)}
        return sorted(topic for topic in found if self.apply(topic) == name)

    @property
    def only_name(self) -> str | None:
        """The one name that the rule gives, None if there are several."""
        return None if self.groups else _filled(self.new, {})

    @property
    def only_topic(self) -> str | None:
        """The one topic that the rule is for, None if there are several."""
        return None if self.groups else _filled(self.old, {})

    @property
    def example(self) -> str:
        """A name that the rule gives; it is reserved only if all are."""
        return _filled(self.new, {number: "x" for number, _ in enumerate(self.groups, 1)})

    def _divided(self, name: str, parts: tuple[str | int, ...]) -> Iterator[dict[int, str]]:
        """Yield each way to read a name as these parts: the text of each group."""
        if not parts:
            if not name:
                yield {}
            return
        first, rest = parts[0], parts[1:]
        if isinstance(first, str):
            if name.startswith(first):
                yield from self._divided(name[len(first) :], rest)
            return
        for end in range(len(name) + 1) if rest else (len(name),):
            if self.groups[first - 1].fullmatch(name[:end]) is not None:
                for others in self._divided(name[end:], rest):
                    yield {first: name[:end]} | others


def why_illegal(name: str) -> str | None:
    """Return why brokers do not accept a topic name, None if they do."""
    if name in ("", ".", "..") or _LEGAL.fullmatch(name) is None:
        return "is not a topic name; letters, digits, '.', '_' and '-' are allowed"
    return f"is longer than {LONGEST_NAME} characters" if len(name) > LONGEST_NAME else None


def parse_rules(text: str) -> tuple[RenameRule, ...]:
    """Parse a list of rules; raises ValueError with the rule and the reason."""
    rules = tuple(_parsed(one) for one in split_list(text))
    for number, rule in enumerate(rules):
        for earlier in rules[:number]:
            if rule.only_name is not None and rule.only_name == earlier.only_name:
                raise ValueError(
                    f"rules {earlier.text!r} and {rule.text!r} give two topics the name {rule.only_name}, which would "
                    "mix their records; give one of them another name"
                )
    return rules


@cache
def rules_of(rules: tuple[str, ...]) -> tuple[RenameRule, ...]:
    """Return rules that were checked before."""
    return tuple(_parsed(one) for one in rules)


def _parsed(text: str) -> RenameRule:
    pattern, arrow, name = (part.strip() for part in text.partition(ARROW))
    if not arrow or not pattern or not name or ARROW in name:
        raise _refusal(
            text, r"is not written as 'pattern -> name', as in 'legacy\.(.*) -> $1'; a comma separates rules"
        )
    try:
        (compiled,) = compile_patterns([pattern])
    except ValueError as error:
        raise _refusal(text, str(error)) from None
    old, groups = _pattern_parts(text, pattern)
    new = _new_parts(text, name, len(groups))
    if compiled.groups != len(groups):
        raise _refusal(text, f"has a group in a group in {pattern}; write (?:...) for the inner one")
    whole = "".join(re.escape(part) if isinstance(part, str) else f"({groups[part - 1].pattern})" for part in old)
    rule = RenameRule(text, re.compile(whole, re.ASCII), groups, old, new)
    if (name := rule.only_name or "") and (reason := why_illegal(name)) is not None:
        raise _refusal(text, f"gives the name {name}, which {reason}")
    return rule


def _pattern_parts(text: str, pattern: str) -> tuple[tuple[str | int, ...], tuple[re.Pattern[str], ...]]:
    parts: list[str | int] = []
    groups: list[re.Pattern[str]] = []
    position, literal = 0, ""
    while position < len(pattern):
        if pattern[position] == "(":
            end = _end_of_group(text, pattern, position)
            groups.append(re.compile(pattern[position + 1 : end - 1], re.ASCII))
            parts += [literal, len(groups)] if literal else [len(groups)]
            literal, position = "", end
            continue
        found = _LITERAL.match(pattern, position)
        if found is None:
            raise _refusal(text, _open_part(pattern[position:]))
        literal += found[1] or found[2] or found[3]
        position = found.end()
    if len(groups) > _MOST_GROUPS:
        raise _refusal(text, f"has {len(groups)} groups; at most {_MOST_GROUPS} are supported")
    return (*parts, literal) if literal else tuple(parts), tuple(groups)


def _open_part(rest: str) -> str:
    if rest[0] in "*+?{":
        return f"cannot be inverted: {rest[0]!r} repeats what is before it; put both into one group"
    return (
        f"cannot be inverted: {rest!r} outside a group does not stand for itself; put it into a group, and use the "
        "group in the new name"
    )


def _end_of_group(text: str, pattern: str, start: int) -> int:
    """Return where a group ends that captures; raises ValueError for another one."""
    if pattern[start + 1 : start + 2] == "?":
        raise _refusal(text, f"cannot be inverted: {pattern[start:]!r} is a group that captures nothing; write (...)")
    depth, position, looks_ahead = 1, start + 1, False
    while depth:
        found = _IN_GROUP.match(pattern, position)
        if found is None:
            raise _refusal(text, f"cannot be inverted: {pattern[position:]!r} in a group depends on the text around it")
        looks_ahead = looks_ahead or bool(found["ahead"])
        depth += bool(found["opens"] or found["ahead"]) - bool(found["closes"])
        position = found.end()
    if looks_ahead and position < len(pattern):
        raise _refusal(text, "cannot be inverted: a group that looks ahead has to be the last part of the pattern")
    return position


def _new_parts(text: str, name: str, groups: int) -> tuple[str | int, ...]:
    parts: list[str | int] = []
    position = 0
    while position < len(name):
        found = _NEW_PART.match(name, position)
        if found is None:
            raise _refusal(
                text, f"gives a name with {name[position]!r}; letters, digits, '.', '_', '-' and $1 are allowed"
            )
        parts.append(int(found[1]) if found[1] else found[2])
        position = found.end()
    used = [part for part in parts if isinstance(part, int)]
    for number in used:
        if number > groups:
            raise _refusal(text, f"uses ${number}, and its pattern has {groups or 'no'} groups")
        if used.count(number) > 1:
            raise _refusal(text, f"uses ${number} twice; use each group once")
    for number in range(1, groups + 1):
        if number not in used:
            raise _refusal(
                text,
                f"cannot be inverted: the new name does not contain ${number}, so several topics would get one name; "
                f"use ${number} in it",
            )
    return tuple(parts)


def _filled(parts: tuple[str | int, ...], texts: Mapping[int, str]) -> str:
    return "".join(part if isinstance(part, str) else texts[part] or "" for part in parts)


def _refusal(rule: str, reason: str) -> ValueError:
    return ValueError(f"rule {rule!r} {reason}")
