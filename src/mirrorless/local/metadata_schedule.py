"""Keeps the metadata of one flow in step while it runs: topics, configs and ACLs, each at its own interval."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from mirrorless.errors import MirrorlessError
from mirrorless.metadata.passes import one_pass
from mirrorless.metadata.planning import Admins, Part, switched_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mirrorless.metadata.passes import Pass
    from mirrorless.settings import Flow


class Listener(Protocol):
    """Who hears what came of it."""

    def discovered(self, flow: str, found: Pass) -> None:
        """A pass ended."""

    def note(self, flow: str, text: str) -> None:
        """Something is not done, and why; said once."""

    def trouble(self, flow: str, text: str) -> None:
        """Something does not work at the moment."""


class MetadataSchedule:
    """Passes of one flow, at `refresh.topics.`, `sync.topic.configs.` and `sync.topic.acls.interval.seconds`."""

    def __init__(self, flow: Flow, listener: Listener) -> None:
        self._flow = flow
        self._listener = listener
        self._admins = Admins.of(flow)
        self._said: set[str] = set()
        wanted = switched_on(flow) | {Part.TOPICS: flow.refresh_topics_enabled}
        intervals_s = {
            Part.TOPICS: flow.refresh_topics_interval_seconds,
            Part.CONFIGS: flow.sync_topic_configs_interval_seconds,
            Part.ACLS: flow.sync_topic_acls_interval_seconds,
        }
        self._intervals_s = {part: interval_s for part, interval_s in intervals_s.items() if wanted[part]}
        self._due: dict[Part, float] = {}
        self._thread: threading.Thread | None = None

    def first(self) -> Pass:
        """Make the first pass, over all that is switched on.

        Raises `MirrorlessError` before anything is written if a cluster does not answer, or if there is only one.
        """
        found = self._pass([part for part, wanted in switched_on(self._flow).items() if wanted])
        self._due = {part: time.monotonic() + interval_s for part, interval_s in self._intervals_s.items()}
        return found

    def tick(self) -> None:
        """Start a pass over what is due, beside this thread, unless one is under way."""
        due = [part for part, at in self._due.items() if time.monotonic() >= at]
        if due and (self._thread is None or not self._thread.is_alive()):
            self._due |= {part: time.monotonic() + self._intervals_s[part] for part in due}
            self._thread = threading.Thread(target=self._later, args=(due,), daemon=True)
            self._thread.start()

    def _later(self, parts: Sequence[Part]) -> None:
        try:
            self._pass(parts)
        except MirrorlessError as error:
            self._listener.trouble(self._flow.name, str(error))

    def _pass(self, parts: Sequence[Part]) -> Pass:
        found = one_pass(self._flow, parts, admins=self._admins)
        self._listener.discovered(self._flow.name, found)
        for note in found.notes:
            if note not in self._said:
                self._said.add(note)
                self._listener.note(self._flow.name, note)
        return found
