"""Masks secrets in settings, which must not appear in any repr, error or log line.

Secrets are Java client settings of Kafka's type PASSWORD (`ssl.key.password`, `ssl.keystore.key`,
`sasl.jaas.config` ...); names that look like one are masked too, because a misspelled key also holds its secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from mirrorless.settings.client_keys import SECURITY_KEYS

MASK: Final = "***"

_SECRET: Final = re.compile(
    r"(password|passphrase|passwd|secret|token|credentials?|jaas\.config|basic\.auth\.user\.info)$"
    r"|(^|\.)(pass|pwd)$"
    r"|(^|\.)ssl\.(.*\.)?key$"
    r"|(api|access|private|secret)\.?(access\.?)?key",
    re.IGNORECASE,
)
_SECURITY: Final = re.compile(r"(?:^|\.|->)((?:ssl|sasl)[._-].*)$")
# A login configuration under any name.
_LOGIN: Final = re.compile(r"LoginModule|(?:password|secret)\s*=", re.IGNORECASE)


_OF_A_PEM_TEXT: Final = re.compile(r"-----(?:BEGIN|END)|^(?=.*[0-9+/])[A-Za-z0-9+/]{16,}=*$|[A-Za-z0-9+/]{40,}")


_FIELD: Final = re.compile(r"[A-Za-z_][A-Za-z_.-]{0,80}")


def is_secret(key: str) -> bool:
    """Whether the value of this setting must never be shown, with any prefix.

    An unknown setting for security counts as a secret: its key may be misspelled.
    """
    plain = key.strip().lower()
    if _SECRET.search(re.sub(r"[-_\s]", ".", plain)) is not None:
        return True
    security = _SECURITY.search(plain)
    return security is not None and security[1] not in SECURITY_KEYS


def shown(key: str, value: str) -> str:
    """Return the value as an error may show it: masked for a secret, with line breaks escaped."""
    if is_secret(key) or _LOGIN.search(value) is not None:
        return MASK
    return value if value.isprintable() else repr(value)


def shown_name(name: str) -> str:
    """Return a key as a message may show it: masked if it looks like a part of a PEM text that was not continued.

    In the properties syntax each such line is a key without a value; Kafka's keys all have dots.
    """
    return MASK if _OF_A_PEM_TEXT.search(name) is not None else name


def shown_field(name: str) -> str:
    """Return a field's name as a message may show it: masked if it may be a value that is in the wrong place."""
    return name if _FIELD.fullmatch(name) is not None and shown_name(name) == name else MASK


class MaskedMapping(Mapping[str, str]):
    """An immutable mapping of settings whose repr shows no secret; equal to any mapping of the same items.

    Hashable and picklable, so that its owners can be compared, be a key, and be sent to Spark's workers.
    """

    __slots__ = ("_items",)

    _items: dict[str, str]

    def __init__(self, items: Mapping[str, str]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: str) -> str:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self.masked())

    def __reduce__(self) -> tuple[type[MaskedMapping], tuple[dict[str, str]]]:
        return type(self), (dict(self._items),)

    def masked(self) -> dict[str, str]:
        """Return a copy that may be shown: `***` in place of every secret."""
        return {key: shown(key, value) for key, value in self._items.items()}
