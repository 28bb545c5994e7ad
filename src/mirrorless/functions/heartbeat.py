"""heartbeat: signs of life, on the clock, from this minute's tick of the schedule until the next one's."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.runtime_context import surroundings
from mirrorless.heartbeats import Heartbeats

if TYPE_CHECKING:
    from mirrorless.functions.budget import TimeBudget
    from mirrorless.functions.invocation import Invocation
    from mirrorless.functions.runtime_context import Sink
    from mirrorless.settings import Flow, Settings

_MINUTE_S: Final = 60
_LOOK_EVERY_S: Final = 0.25
_PAUSE_S: Final = 5.0
"""How long a pair whose beat failed is left alone."""
_LONGEST_S: Final = 16.0
"""How long it takes at most to find out that a cluster does not answer."""

_warm: Final[ClientCache[Heartbeats]] = ClientCache()
"""By pair."""
_refused: Final[dict[str, str]] = {}
"""Why nothing is written for a pair, as it was logged."""


def beat(invocation: Invocation) -> dict[str, Any]:
    """Beat whenever the clock reaches a multiple of `emit.heartbeats.interval.seconds`, for a minute.

    Two invocations one after the other leave no beat out, whatever the interval; what is late is not made up for.
    A pair that fails leaves out beats and holds up no other; the first one's error is raised when the minute is over.
    A pair whose topic is not one for heartbeats is left out, which is logged once and looked at again each minute.
    A function of Lambda's has network and rights for its own two clusters, so it leaves all others out.
    """
    pairs = pairs_of(invocation.settings, invocation.flow)
    if surroundings() is None:
        own = {invocation.flow.source.alias, invocation.flow.target.alias}
        pairs = [pair for pair in pairs if {pair.source.alias, pair.target.alias} == own]
    if not pairs:
        return {"note": "heartbeats are switched off in the configuration"}
    event = invocation.event
    begin = event.at.timestamp() if isinstance(event, ScheduleEvent) else time.time()
    now = time.time()
    minutes = [_Minute(pair, due(pair, begin=begin, now=now), invocation.budget, invocation.sink) for pair in pairs]
    # Daemons, for a run on one machine does not wait at its end for a cluster that does not answer.
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


def pairs_of(settings: Settings, flow: Flow) -> list[Flow]:
    """Which pairs of clusters this flow's function beats for; of all enabled flows together each pair once.

    Its own, the way back where that has no function, and if it is the first flow also pairs without any flow. What
    arrives at the target as `<source>.heartbeats` was written to the source by the way back (reference, 2.5).
    """
    enabled = {one.name for one in settings.flows}

    def beats_for(pair: Flow) -> str:
        back = f"{pair.target.alias}->{pair.source.alias}"
        return next((name for name in (pair.name, back) if name in enabled), settings.flows[0].name)

    return [pair for pair in settings.heartbeats if beats_for(pair) == flow.name]


def due(pair: Flow, *, begin: float, now: float) -> list[int]:
    """Return when to beat in the minute from `begin` on and not before `now`, in epoch seconds."""
    seconds = range(int(begin) + 1, int(begin) + 1 + _MINUTE_S)
    return [at for at in seconds if at % pair.emit_heartbeats_interval_seconds == 0 and at >= now]


@dataclass(slots=True)
class _Minute:
    """The beats of one pair, in a thread of its own: acknowledged ones, those not begun, and the first error.

    `refused` says that the topic is not one for heartbeats.
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
                return  # the time limit would cut off the next attempt, and hide the error
            try:
                with _warm.kept(self.pair.name, self.pair, lambda: Heartbeats(self.pair)) as heartbeats:
                    if self._is_refused(heartbeats.refused):
                        return
                    heartbeats.beat(timestamp_ms=int(time.time() * 1000))
            except Exception as error:  # noqa: BLE001 -- it would be lost with the thread; `beat` raises it
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
            _warm.forget(name)  # the topic is looked at again in the next minute
            if _refused.get(name) != reason:
                self.sink.tell("error", f"{name}: {reason}")
            _refused[name] = reason
        return self.refused


def _wait(at: float, budget: TimeBudget) -> bool:
    """Wait until then, unless the time is used up before; it may be cut short while this waits."""
    while (seconds := at - time.time()) > 0:
        if budget.left_s <= seconds:
            return False
        time.sleep(min(seconds, _LOOK_EVERY_S))
    return not budget.is_used_up()
