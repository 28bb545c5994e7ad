"""Finds settings in Kubernetes ConfigMaps: an mm2.properties, or connectors and their worker, under keys of `data`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings import standalone
from mirrorless.settings.connect_json import is_json
from mirrorless.settings.key_normalizer import CLUSTERS
from mirrorless.settings.masking import MASK, shown_name
from mirrorless.settings.properties import parse
from mirrorless.settings.yaml_text import YamlText

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mirrorless.settings.yaml_text import YamlValue

KIND: Final = "ConfigMap"
_KEY: Final = re.compile(r"[\w.-]{1,63}")


@dataclass(frozen=True, slots=True)
class MappedText:
    """A text of a ConfigMap and its name for messages; `above` is the line of the file before it, if known."""

    name: str
    text: str
    above: int | None


def mapped_texts(document: YamlValue, *, file: str, lines: Sequence[str]) -> Iterator[MappedText]:
    """Yield the texts of a ConfigMap that have settings; only the mm2.properties, if there is one.

    `lines` are those of the file. Raises ConfigurationError for several mm2.properties.
    """
    if not isinstance(document, dict) or document.get("kind") != KIND:
        return
    data = document.get("data")
    texts = {key: one for key, one in (data.items() if isinstance(data, dict) else ()) if isinstance(one, YamlText)}
    keys = {key: _keys(text) for key, text in texts.items()}
    whole = [key for key, found in keys.items() if CLUSTERS in found]
    if len(whole) > 1:
        listed = ", ".join(map(_shown, whole))
        raise ConfigurationError(f"ConfigMap has {len(whole)} mm2.properties: {listed}; give one as a file", file=file)
    for key in whole or [key for key, found in keys.items() if found]:
        yield MappedText(f"{file}#{_shown(key)}", texts[key], _above(texts[key], lines))


def _shown(key: str) -> str:
    return key if _KEY.fullmatch(key) is not None and shown_name(key) == key else MASK


def _keys(text: str) -> frozenset[str]:
    """Return the keys of a text with settings; none for other texts."""
    if is_json(text):
        return frozenset(['"connector.class"'] if '"connector.class"' in text else ())
    try:
        entries = parse(text)
    except ConfigurationError:
        return frozenset()
    usable = CLUSTERS in entries or standalone.is_connector(entries) or standalone.is_worker(entries)
    return frozenset(entries) if usable else frozenset()


def _above(text: YamlText, lines: Sequence[str]) -> int | None:
    """Return the line above a text that the file has line by line, None where it has it in quotes."""
    written = [one.strip() for one in text.splitlines()]
    there = [one.strip() for one in lines[text.line : text.line + len(written)]]
    return text.line if written == there else None
