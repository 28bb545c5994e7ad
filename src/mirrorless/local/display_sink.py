"""Sends the output of a function on one machine to the run's display, without repetitions."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

_LOG: Final = logging.getLogger(__name__)
_WORK: Final = {
    "topic_discovery": "topic discovery",
    "config_sync": "sync of configs",
    "acl_sync": "sync of ACLs",
    "heartbeat_monitor": "reading heartbeats",
    "job_supervisor": "choosing the engine",
}
"""What functions do, where their names are those of functions on AWS."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.errors import MirrorlessError
    from mirrorless.functions.runtime_context import Level
    from mirrorless.local.displays import Display
    from mirrorless.metadata.actions import Problem
    from mirrorless.metadata.sync_pass import SyncPass
    from mirrorless.publishing.lease_meter import Sample
    from mirrorless.settings import Flow


class DisplaySink:
    """A function's sink to a display.

    An error of two successive invocations is reported once. `found` is the last sync run, `last` the last answer.
    """

    def __init__(
        self,
        flow: str,
        function: str,
        display: Display,
        *,
        ended: Callable[[], bool],
        away: Callable[[], bool] = lambda: False,
    ) -> None:
        self.found: SyncPass | None = None
        self.last: Mapping[str, Any] = {}
        self._flow = flow
        self._function = function
        self._display = display
        self.ended = ended
        self._away = away
        self._noted: set[str] = set()
        self._failed: set[tuple[str, str | None]] = set()
        self._problems: set[Problem] = set()
        self._before: set[str] = set()
        self._now: set[str] = set()

    def fresh(self) -> None:
        """Begin another invocation."""
        self._before, self._now = self._now, set()

    @property
    def went_well(self) -> bool:
        """Whether the last invocation had no error."""
        return not self._now

    def trouble(self, text: str, *, certain: bool = False) -> None:
        """Report an error, unless the last invocation had it too.

        Once the run is to end only a `certain` one: clusters may stop with it, and unfinished work is repeated. The
        same while a cluster is `away`, which is reported once for all functions of all flows.
        """
        told = text in self._before | self._now
        self._now.add(text)
        if self.ended() and not certain:
            _LOG.debug("%s: %s: at the end: %s", self._flow, self._function, text)
        elif self._away() and not certain:
            _LOG.debug("%s: %s: while a cluster is away: %s", self._flow, self._function, text)
        elif not told:
            self._display.trouble(self._flow, f"{_WORK.get(self._function, self._function)}: {text}")

    def failed_again(self, text: str) -> None:
        """Note an error of this invocation that is reported elsewhere: a cluster does not answer."""
        self._now.add(text)

    def begin(self, *, flow: str, request: str) -> None:
        """Do nothing: every line has its flow already."""

    def tell(self, level: Level, text: str, **fields: object) -> None:
        """Report errors and warnings, unless the run ends: then all unfinished work is left; and chosen engines."""
        if level == "info" and "engine" in fields:
            self._display.note(self._flow, text)
        if level in ("error", "warning"):
            said = ", ".join(f"{name} {value}" for name, value in fields.items())
            self.trouble(f"{text}: {said}" if said else text)

    def discovered(self, found: SyncPass) -> None:
        """Show the sync run; notes and warnings once, and failures unless they were the same the last time."""
        self.found = found
        failed = {(one.action.topic, one.error) for one in found.failures}
        fresh = tuple(one for one in found.applied if (one.action.topic, one.error) not in self._failed)
        problems = tuple(one for one in found.problems if one not in self._problems)
        self._failed, self._problems = failed, set(found.problems)
        self._display.discovered(self._flow, replace(found, applied=fresh, problems=problems))
        for warning in found.warnings:
            if warning not in self._noted:
                self._noted.add(warning)
                self._display.warning(self._flow, warning)
        for note in found.notes:
            if note not in self._noted:
                self._noted.add(note)
                self._display.note(self._flow, note)

    def measured(self, flow: Flow, values: Mapping[str, Sequence[float]]) -> None:
        """Pass the values on."""
        for name, measured in values.items():
            self._display.measured(flow.name, name, measured)

    def leased(self, flow: Flow, samples: Sequence[Sample]) -> None:
        """Publish nothing: the display gets the reports themselves."""

    def done(self, function: str, answer: Mapping[str, Any]) -> None:
        """Show the result of a checkpoint run."""
        self.last = answer
        if function == "checkpoint" and "groups" in answer:
            fields = {key: value for key, value in answer.items() if key != "flow" and (value or key == "groups")}
            self._display.checkpointed(self._flow, fields)

    def failed(self, error: MirrorlessError) -> None:
        """Do nothing: the error is raised to the caller, which reports it."""
