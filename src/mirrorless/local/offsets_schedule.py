"""Checkpoints, group offsets and heartbeats of a configuration, each at its interval, beside the copy."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from mirrorless.errors import MirrorlessError
from mirrorless.heartbeats import Heartbeats
from mirrorless.offsets.checkpoint_pass import Checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.settings import Flow, Settings

_HOUR_S: Final = 3600.0
_PAUSE_S: Final = 5.0
_LANDING_S: Final = 1.0


class Listener(Protocol):
    """Who hears what came of it."""

    def checkpointed(self, flow: str, fields: dict[str, Any]) -> None:
        """A pass of the checkpoints ended."""

    def trouble(self, flow: str, text: str) -> None:
        """Something does not work at the moment."""


class OffsetsSchedule:
    """Threads for `emit.checkpoints.`, `sync.group.offsets.` and `emit.heartbeats.interval.seconds`, until `stop`."""

    def __init__(self, settings: Settings, listener: Listener) -> None:
        self._listener = listener
        self._stopped = threading.Event()
        enabled = {flow.name: flow for flow in settings.flows}
        self._passes = [
            _Passes(flow, enabled.get(f"{flow.target.alias}->{flow.source.alias}"), listener)
            for flow in settings.flows
            if flow.emit_checkpoints_enabled and flow.emit_offset_syncs_enabled
        ]
        self._threads = [
            *(self._thread(one.repeat) for one in self._passes),
            *(self._thread(_Beats(pair, listener).repeat) for pair in settings.heartbeats),
        ]

    def start(self) -> None:
        """Begin; the first checkpoints come after an interval, as MirrorMaker 2's do."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, without waiting long for what is under way: whatever it does may be done again."""
        self._stopped.set()
        until = time.monotonic() + _LANDING_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def last(self) -> None:
        """Make one pass now, behind a copy that has ended."""
        for one in self._passes:
            one.once()

    def _thread(self, work: Callable[[threading.Event], None]) -> threading.Thread:
        return threading.Thread(target=work, args=(self._stopped,), daemon=True)


class _Passes:
    """The checkpoints of one flow; `forward` is the opposite flow, if that is enabled."""

    def __init__(self, flow: Flow, forward: Flow | None, listener: Listener) -> None:
        self._flow = flow
        self._forward = forward
        self._listener = listener
        self._open: Checkpoints | None = None
        self._groups_due = 0.0

    def repeat(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._flow.emit_checkpoints_interval_seconds):
            self.once()

    def once(self) -> None:
        flow = self._flow
        try:
            self._open = self._open or Checkpoints(flow, forward=self._forward)
            report = self._open.emit()
            fields: dict[str, Any] = {
                "groups": report.groups,
                "offsets": report.offsets,
                "emitted": report.emitted,
                "how": dict(report.how),
                "unknown": dict(report.unknown),
                "walked_records": report.walked_records,
                "malformed": report.malformed,
            }
            troubles = [*report.troubles]
            if flow.sync_group_offsets_enabled and time.monotonic() >= self._groups_due:
                self._groups_due = time.monotonic() + flow.sync_group_offsets_interval_seconds
                groups = self._open.sync_groups()
                fields |= {"group_offsets": groups.written, "active_groups": len(groups.active)}
                troubles += groups.troubles
        except MirrorlessError as error:
            self._open = None  # perhaps the brokers moved
            self._listener.trouble(flow.name, f"checkpoints: {error}")
            return
        except Exception as error:  # noqa: BLE001 -- whatever it is, the next pass may do better than none at all
            self._open = None
            self._listener.trouble(flow.name, f"checkpoints: {type(error).__name__}: {error}")
            return
        for trouble in troubles:
            self._listener.trouble(flow.name, f"checkpoints: {trouble}")
        self._listener.checkpointed(
            flow.name, {key: value for key, value in fields.items() if value or key == "groups"}
        )


class _Beats:
    """The heartbeats of one pair of clusters."""

    def __init__(self, pair: Flow, listener: Listener) -> None:
        self._pair = pair
        self._listener = listener

    def repeat(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            try:
                Heartbeats(self._pair).emit(_HOUR_S, stopping=stopped.is_set, wait=stopped.wait)
            except MirrorlessError as error:
                self._listener.trouble(self._pair.name, f"heartbeats: {error}")
                stopped.wait(_PAUSE_S)
