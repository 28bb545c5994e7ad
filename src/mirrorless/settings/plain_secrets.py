"""Replaces secrets in settings by references to environment variables, for files that are written."""

from __future__ import annotations

import re
from typing import Final

from mirrorless.settings.masking import MASK, is_secret, shown
from mirrorless.settings.references import refers, without_references

_OPTION: Final = re.compile(r"\s+(\w+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s;\"']*)")
_LOGIN: Final = re.compile(rf"\s*[\w.]+LoginModule\s+required((?:{_OPTION.pattern})*)\s*;?\s*")
_USERS: Final = ("username", "clientid")
_NOT_SECRET: Final = frozenset(
    ["username", "clientid", "scope", "awsprofilename", "awsrolearn", "awsstsregion", "awsrolesessionname"]
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
    if not key.lower().endswith("jaas.config"):
        return bool(without_references(value).strip())
    login = _LOGIN.fullmatch(value)
    if login is None:
        return bool(without_references(value).strip())
    options = [(name.lower(), text.strip("\"'")) for name, text in _OPTION.findall(login[1])]
    referred = any(name not in _NOT_SECRET and refers(text) for name, text in options)
    if any(name in _USERS for name, _ in options) and not referred:
        return True  # the secret of this user is missing, or is where the name should be
    return any(name not in _NOT_SECRET and without_references(text).strip() for name, text in options)
