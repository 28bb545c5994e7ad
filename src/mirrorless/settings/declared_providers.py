"""`config.providers`: custom names of the config providers of references, and what they may read.

A declaration is optional; where there is one, its restrictions apply.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ConfigurationError
from mirrorless.settings.masking import MASK, shown
from mirrorless.settings.patterns import split_list
from mirrorless.settings.references import BUILT_IN, CLASSES, providers, rename, undeclared

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.settings.properties import PropertyEntry

_KEY: Final = "config.providers"


class DeclaredProviders:
    """Reads the declarations among the entries; raises ConfigurationError for what is not supported."""

    def __init__(self, entries: Mapping[str, PropertyEntry], *, file: str) -> None:
        self._file = file
        self._entries = entries
        self._listed = split_list(entries[_KEY].value) if _KEY in entries else ()
        self._kinds = {name: self._kind(name) for name in self._listed if f"{_KEY}.{name}.class" in entries}

    def renamed(self) -> dict[str, PropertyEntry]:
        """Return the entries with references that name their provider by its built-in name."""
        return {name: self._read(name, entry) for name, entry in self._entries.items()}

    def _read(self, name: str, entry: PropertyEntry) -> PropertyEntry:
        found = providers(entry.value)
        if not found or name.startswith(_KEY):
            return entry
        unknown = undeclared(entry.value, secret=shown(name, entry.value) == MASK, known=self._is_known)
        if unknown is not None:
            raise ConfigurationError(
                f"config provider {unknown} is not declared; built in: {', '.join(BUILT_IN)}",
                file=entry.file or self._file,
                key=entry.written or name,
            )
        for provider, rest in found:
            self._check(provider, rest, name=entry.written or name)
        return replace(entry, value=rename(entry.value, self._kinds))

    def _is_known(self, provider: str) -> bool:
        return self._kinds.get(provider, provider).partition("@")[0] in BUILT_IN

    def _kind(self, name: str) -> str:
        key = f"{_KEY}.{name}.class"
        class_name = self._entries[key].value
        found = CLASSES.get(class_name.rpartition(".")[2])
        if found is None:
            raise ConfigurationError(
                f"Java classes are not loaded; use one of {', '.join(CLASSES)}",
                file=self._file,
                key=key,
                value=class_name,
            )
        for parameter in (one for one in self._entries if one.startswith(f"{_KEY}.{name}.param.")):
            if parameter.rpartition(".param.")[2] not in ("allowed.paths", "allowlist.pattern", "region"):
                raise ConfigurationError("this restriction is not supported; remove it", file=self._file, key=parameter)
        region = self._entries.get(f"{_KEY}.{name}.param.region")
        return f"{found}@{region.value}" if region is not None and found in ("secretsmanager", "ssm") else found

    def _check(self, provider: str, rest: str, *, name: str) -> None:
        paths = self._entries.get(f"{_KEY}.{provider}.param.allowed.paths")
        if paths is not None:
            path = os.path.realpath(rest.rpartition(":")[0])
            allowed = [os.path.realpath(one) for one in split_list(paths.value)]
            if not any(path == one or path.startswith(one.rstrip("/") + "/") for one in allowed):
                raise ConfigurationError(
                    f"{_KEY}.{provider}.param.allowed.paths does not allow {path}", file=self._file, key=name
                )
        pattern = self._entries.get(f"{_KEY}.{provider}.param.allowlist.pattern")
        if pattern is not None and not _matches(pattern.value, rest.rpartition(":")[2]):
            raise ConfigurationError(
                f"{_KEY}.{provider}.param.allowlist.pattern does not allow it", file=self._file, key=name
            )


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False
