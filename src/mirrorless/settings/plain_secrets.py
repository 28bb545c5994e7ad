"""Replaces secrets in settings by references to environment variables, for files that are written."""

from __future__ import annotations

import re
from typing import Final

from mirrorless.settings.masking import MASK, is_secret, shown
from mirrorless.settings.references import without_references

_OPTION: Final = re.compile(r"(\w+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s;]*)")
_NOT_SECRET: Final = frozenset(
    ["username", "clientid", "scope", "awsprofilename", "awsrolearn", "awsstsregion", "awsrolesessionname", "required"]
)


class EnvironmentSecrets:
    """Names an environment variable for each secret that a file has as text; `names` are those, by their settings."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def replaced(self, key: str, value: str) -> str:
        """Return the value as it may be written: itself, or a reference."""
        if not is_plain_secret(key, value):
            return value
        if key not in self.names:
            name = base = re.sub(r"\W+", "_", key).strip("_").upper()
            number = 1
            while name in self.names.values():
                number += 1
                name = f"{base}_{number}"
            self.names[key] = name
        return f"${{env:{self.names[key]}}}"


def is_plain_secret(key: str, value: str) -> bool:
    """Whether a value contains a secret, and not only references to it."""
    if shown(key, value) != MASK and not is_secret(key):
        return False
    rest = without_references(value)
    if not key.lower().endswith("jaas.config") or "=" not in value:
        return bool(rest.strip()) and not _is_login_without_options(key, value)
    return any(
        name.lower() not in _NOT_SECRET and without_references(text).strip("\"' ")
        for name, text in _OPTION.findall(value)
    )


def _is_login_without_options(key: str, value: str) -> bool:
    """Whether this is a login module that needs no options, such as Amazon's for IAM."""
    return key.lower().endswith("jaas.config") and re.fullmatch(r"\s*[\w.]+\s+required\s*;?\s*", value) is not None
