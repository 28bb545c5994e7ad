"""Shows the first failed connection of a command at once, and bounds how long a command that only asks keeps trying.

librdkafka connects again and again until a request's time is over; a refused connection, a name that does not resolve
and a refused login are known after the first attempt. Outside of the contexts nothing is shown or remembered.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S: Final = 3.0
"""How long a command that only asks keeps trying once no address accepts connections: a broker may be restarting."""


class _Contact:
    def __init__(self, tell: Callable[[str, str], None], patience_s: float | None) -> None:
        self.tell = tell
        self.patience_s = patience_s
        self.told: set[tuple[str, str]] = set()
        self.gone: dict[tuple[str, str], str] = {}
        self.lock = threading.Lock()


_contact: _Contact | None = None


@contextmanager
def shown(tell: Callable[[str, str], None], *, patience_s: float | None = None) -> Iterator[None]:
    """Pass the first failed connection to each cluster to `tell`, with the alias and the reason.

    With `patience_s` a cluster all of whose addresses fail is given up so soon, for the whole context.
    """
    global _contact  # noqa: PLW0603 -- clients know nothing of the command that they are a part of
    before, _contact = _contact, _Contact(tell, patience_s)
    try:
        yield
    finally:
        _contact = before


def patience_s() -> float | None:
    """How long to keep trying once no address of a cluster accepts connections; None for the request's own time."""
    return None if _contact is None else _contact.patience_s


def failed(alias: str, reason: str) -> None:
    """Show a failed connection, once for each cluster and reason."""
    contact = _contact
    if contact is None:
        return
    with contact.lock:
        if (alias, reason) in contact.told:
            return
        contact.told.add((alias, reason))
    contact.tell(alias, reason)


def give_up(alias: str, servers: str, reason: str) -> None:
    """Remember that a cluster was given up."""
    if _contact is not None and _contact.patience_s is not None:
        _contact.gone[alias, servers] = reason


def gave_up(alias: str, servers: str) -> str | None:
    """Why a cluster was given up in this context; None if it was not."""
    return None if _contact is None else _contact.gone.get((alias, servers))
