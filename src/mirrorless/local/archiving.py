"""Flows into archives, beside the other flows of `mirrorless run`."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mirrorless.archive.object_store import open_store, require_conditions
from mirrorless.archive.writing import write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mirrorless.local.displays import Display
    from mirrorless.settings import Settings


@contextmanager
def archiving(
    settings: Settings, display: Display, *, bounded: bool, stopping: Callable[[], bool]
) -> Iterator[Callable[[], bool]]:
    """Archive the flows into archives until `stopping`, or with `bounded` until what is there is archived.

    Yields a function that waits for the end, and returns whether nothing halted or failed. Raises `ArchiveError` before
    anything is written if a store does not refuse a second object of one name.
    """
    if not settings.archived:
        yield lambda: True
        return
    for flow in settings.archived:
        require_conditions(open_store(dict(settings.archives)[flow.target.alias]))
    outcome: list[bool] = []
    left = threading.Event()

    def ends() -> bool:
        return stopping() or left.is_set()

    def work() -> None:
        outcome.append(write_all(settings, settings.archived, stopping=ends, caught_up=bounded, say=display.note))

    thread = threading.Thread(target=work, name="archives")
    thread.start()

    def ended() -> bool:
        while thread.is_alive():  # a signal is handled in between
            thread.join(0.2)
        return outcome == [True]

    try:
        yield ended
    finally:
        left.set()
        thread.join()
