"""Reads YAML into texts, lists and mappings whose texts know their lines; values are not converted.

A setting is what the file has as text: `1_000`, `yes` and `0123` are not made numbers or booleans. Errors never contain
a part of the file, which may be a secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from mirrorless.errors import ConfigurationError
from mirrorless.settings.masking import shown_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NULLS: Final = ("", "~", "null", "Null", "NULL")
_MERGE: Final = "<<"
_MOST_NODES: Final = 100_000
_DEEPEST: Final = 50


class YamlText(str):
    """A scalar's text, and the line where it begins, counted from 1."""

    __slots__ = ("line",)

    line: int

    def __new__(cls, text: str, line: int) -> YamlText:
        """Make a text of a line."""
        made = super().__new__(cls, text)
        made.line = line
        return made


YamlValue: TypeAlias = "YamlText | list[YamlValue] | dict[str, YamlValue] | None"


def documents(text: str, *, file: str) -> list[YamlValue]:
    """Return the documents of a file; raises ConfigurationError for what is not YAML, or too deep or large."""
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
        return [_NodeReader(file).value(node, 0) for node in nodes if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        advice = "; render it first, since it looks like a template" if "{{" in text else ""
        if mark is not None and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1]):
            advice = "; YAML takes no tab there: indent with blanks"
        raise ConfigurationError(f"is not YAML{where}{advice}", file=file) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"is not YAML that can be read: {type(error).__name__}", file=file) from None


class _NodeReader:
    """Converts the nodes of one document, of which aliases may make more than the file has."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen = 0

    def value(self, node: yaml.Node, depth: int) -> YamlValue:
        self._seen += 1
        if self._seen > _MOST_NODES or depth > _DEEPEST:
            raise ConfigurationError("is not YAML that can be read: too deep or too large", file=self._file)
        line = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            return None if node.style is None and node.value in _NULLS else YamlText(self._text(node), line)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one, depth + 1) for one in node.value]
        if not isinstance(node, yaml.MappingNode):
            raise ConfigurationError(f"line {line}: is not a value", file=self._file)
        merged: dict[str, YamlValue] = {}
        own: dict[str, YamlValue] = {}
        lines: dict[str, int] = {}
        for key, inner in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ConfigurationError(f"line {key.start_mark.line + 1}: a key must be text", file=self._file)
            found = self.value(inner, depth + 1)
            if key.value == _MERGE and key.style is None:
                merged |= {name: one for part in _mappings(found) for name, one in part.items() if name not in merged}
            elif (name := self._text(key)) in own and own[name] != found:
                raise ConfigurationError(
                    f"lines {lines[name]} and {key.start_mark.line + 1} set this key to different values; remove one",
                    file=self._file,
                    key=shown_field(name),
                )
            else:
                lines[name] = key.start_mark.line + 1
                own[name] = found
        return merged | own

    def _text(self, node: yaml.ScalarNode) -> str:
        """Join characters that are escaped as two halves, as in JSON, which the library leaves apart."""
        try:
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            line = node.start_mark.line + 1
            raise ConfigurationError(f"line {line}: has half of a character", file=self._file) from None


def _mappings(value: YamlValue) -> Iterator[dict[str, YamlValue]]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            yield one


def line_of(value: YamlValue | Mapping[str, YamlValue]) -> int:
    """Return the first line that is known of a value, 0 if there is none."""
    if isinstance(value, YamlText):
        return value.line
    parts = value if isinstance(value, list) else () if value is None else value.values()
    return next((line for part in parts if (line := line_of(part))), 0)
