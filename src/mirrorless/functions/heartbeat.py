"""heartbeat: emits heartbeats at fixed times, from this minute's scheduled event until the next one's."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.copying import EMITTED_BY_COPY, copied_by_functions
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.runtime_context import runtime_context
from mirrorless.heartbeats import Heartbeats

if TYPE_CHECKING:
    from mirrorless.functions.budget import TimeBudget
    from mirrorless.functions.invocation import Invocation
    from mirrorless.functions.runtime_context import Sink
    from mirrorless.settings import Flow, Settings

_MINUTE_S: Final = 60
_LOOK_EVERY_S: Final = 0.25
_PAUSE_S: Final = 5.0
"""How long a pair pauses after a failed heartbeat."""
_LONGEST_S: Final = 16.0
"""The longest time until an unavailable cluster is detected."""

_warm: Final[ClientCache[Heartbeats]] = ClientCache()
"""By pair."""
_refused: Final[dict[str, str]] = {}
"""Why heartbeats of a pair are not written, as it was logged."""


def beat(invocation: Invocation) -> dict[str, Any]:
    """Emit a heartbeat whenever the clock reaches a multiple of `emit.heartbeats.interval.seconds`, for a minute.

    Two successive invocations leave no heartbeat out, whatever the interval; late heartbeats are not made up for.
    A pair that fails skips heartbeats and does not delay others; its first error is raised when the minute is over.
    A pair whose topic has another use is skipped, which is logged once and checked again each minute.
    A function of Lambda has network access and rights for its own two clusters only, so it skips all others.
    """
    pairs = reachable_pairs(invocation)
    if not pairs:
        return {"note": "heartbeats are disabled in the configuration"}
    if not invocation.continues and copied_by_functions(invocation.flow):
        return dict(EMITTED_BY_COPY)
    event = invocation.event
    begin = event.at.timestamp() if isinstance(event, ScheduleEvent) else time.time()
    now = time.time()
    minutes = [_Minute(pair, due(pair, begin=begin, now=now), invocation.budget, invocation.sink) for pair in pairs]
    # Daemon threads, so that a run on one machine does not wait at its end for an unavailable cluster.
    threads = [threading.Thread(target=minute.run, name=minute.pair.name, daemon=True) for minute in minutes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    beats = sum(minute.beats for minute in minutes)
    invocation.measure("heartbeat-count", beats)
    refused = [minute.pair.name for minute in minutes if minute.refused]
    done = {
        "beats": beats,
        **({"refused": refused} if refused else {}),
        **invocation.leave([one for minute in minutes for one in minute.left]),
    }
    errors = [minute.error for minute in minutes if minute.error is not None]
    for error in errors[1:]:
        invocation.sink.tell("error", str(error))
    if errors:
        raise errors[0]
    return done


def reachable_pairs(invocation: Invocation) -> list[Flow]:
    """Return those of `pairs_of` that this function reaches: on Lambda the flow's own pair and the reverse one."""
    pairs = pairs_of(invocation.settings, invocation.flow)
    if runtime_context() is not None:
        return pairs
    own = {invocation.flow.source.alias, invocation.flow.target.alias}
    return [pair for pair in pairs if {pair.source.alias, pair.target.alias} == own]


def pairs_of(settings: Settings, flow: Flow) -> list[Flow]:
    """Return the pairs of clusters for which this flow's function emits; over all enabled flows each pair once.

    Its own pair, the reverse pair if that is not an enabled flow, and for the first flow also pairs without any flow.
    What arrives at the target as `<source>.heartbeats` was written to the source by the reverse pair.
    """
    enabled = {one.name for one in settings.flows}

    def beats_for(pair: Flow) -> str:
        back = f"{pair.target.alias}->{pair.source.alias}"
        return next((name for name in (pair.name, back) if name in enabled), settings.flows[0].name)

    return [pair for pair in settings.heartbeats if beats_for(pair) == flow.name]


def due(pair: Flow, *, begin: float, now: float) -> list[int]:
    """Return the times of the heartbeats in the minute after `begin` and not before `now`, in epoch seconds."""
    seconds = range(int(begin) + 1, int(begin) + 1 + _MINUTE_S)
    return [at for at in seconds if at % pair.emit_heartbeats_interval_seconds == 0 and at >= now]


@dataclass(slots=True)
class _Minute:
    """The heartbeats of one pair, in a thread: acknowledged ones, those not begun, and the first error.

    `refused` says that the topic has another use.
    """

    pair: Flow
    at: list[int]
    budget: TimeBudget
    sink: Sink
    beats: int = 0
    left: list[str] = field(default_factory=list)
    error: Exception | None = None
    refused: bool = False

    def run(self) -> None:
        failed = False
        while self.at and _wait(self.at[0], self.budget):
            if failed and self.budget.left_s < _LONGEST_S:
                return  # the timeout would interrupt the next attempt, and hide the error
            try:
                with _warm.kept(self.pair.name, self.pair, lambda: Heartbeats(self.pair)) as heartbeats:
                    if self._is_refused(heartbeats.refused):
                        return
                    heartbeats.beat(timestamp_ms=int(time.time() * 1000))
            except Exception as error:  # noqa: BLE001 -- would be lost with the thread; `beat` raises it
                failed, self.error = True, self.error or error
                again = time.time() + _PAUSE_S
                self.at = [at for at in self.at if at >= again]
            else:
                failed = False
                self.beats += 1
                del self.at[0]
        self.left = [f"heartbeat {self.pair.name} at {at}" for at in self.at]

    def _is_refused(self, reason: str | None) -> bool:
        name = self.pair.name
        self.refused = reason is not None
        if reason is None:
            _refused.pop(name, None)
        else:
            _warm.forget(name)  # the topic is checked again in the next minute
            if _refused.get(name) != reason:
                self.sink.tell("error", f"{name}: {reason}")
            _refused[name] = reason
        return self.refused


def _wait(at: float, budget: TimeBudget) -> bool:
    """Wait until then, or until the time budget is used up; the wait may be interrupted."""
    while (seconds := at - time.time()) > 0:
        if budget.left_s <= seconds:
            return False
        time.sleep(min(seconds, _LOOK_EVERY_S))
    return not budget.is_used_up()
