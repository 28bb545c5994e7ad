"""Reads Kubernetes Secrets from YAML: their names and keys, and one value at a time."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from mirrorless.errors import ConfigurationError
from mirrorless.settings.yaml_text import YamlText, documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mirrorless.settings.yaml_text import YamlValue


def secret_keys(document: YamlValue) -> tuple[str, frozenset[str]] | None:
    """Return name and keys of a document that is a Secret, None for others."""
    if not isinstance(document, dict) or document.get("kind") != "Secret":
        return None
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    keys = {key for part in ("data", "stringData") for key in _mapping(document.get(part))}
    return str(name or ""), frozenset(keys)


def secret_value(text: str, name: str, key: str, *, file: str) -> str:
    """Return a value of a Secret; raises ValueError, without any value."""
    try:
        found = documents(text, file=file)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    for document in each(found):
        named = secret_keys(document)
        if named is None or named[0] != name or not isinstance(document, dict):
            continue
        plain, encoded = _mapping(document.get("stringData")).get(key), _mapping(document.get("data")).get(key)
        if isinstance(plain, YamlText):
            return str(plain)
        if isinstance(encoded, YamlText):
            try:
                return base64.b64decode("".join(encoded.split()), validate=True).decode()
            except (binascii.Error, ValueError):
                raise ValueError(f"{file}: Secret {name}: {key} is not text in base64") from None
    raise ValueError(f"{file} has no Secret {name} with the key {key}")


def each(found: list[YamlValue]) -> Iterator[YamlValue]:
    """Yield documents, and those in a Kubernetes `List`."""
    for document in found:
        items = document.get("items") if isinstance(document, dict) else None
        if isinstance(document, dict) and isinstance(items, list) and str(document.get("kind")).endswith("List"):
            yield from each(items)
        else:
            yield document


def _mapping(value: YamlValue) -> Mapping[str, YamlValue]:
    return value if isinstance(value, dict) else {}
