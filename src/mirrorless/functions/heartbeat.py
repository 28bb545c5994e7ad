"""heartbeat: signs of life, on the clock, from this minute's tick of the schedule until the next one's."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.functions.events import Schedule
from mirrorless.heartbeats import Heartbeats

if TYPE_CHECKING:
    from mirrorless.functions.budget import TimeBudget
    from mirrorless.functions.invocation import Invocation
    from mirrorless.settings import Flow, Settings

_MINUTE_S: Final = 60
_LOOK_EVERY_S: Final = 0.25

_open: dict[Flow, Heartbeats] = {}


def beat(invocation: Invocation) -> dict[str, Any]:
    """Beat whenever the clock reaches a multiple of `emit.heartbeats.interval.seconds`, for a minute.

    Two invocations one after the other leave no beat out, whatever the interval; what is late is not made up for.
    """
    pairs = pairs_of(invocation.settings, invocation.flow)
    if not pairs:
        return {"note": "heartbeats are switched off in the configuration"}
    event = invocation.event
    begin = event.at.timestamp() if isinstance(event, Schedule) else time.time()
    beats = 0
    left = due(pairs, begin=begin, now=time.time())
    while left and _wait(left[0][0], invocation.budget):
        _, pair = left.pop(0)
        _heartbeats(pair).beat(timestamp_ms=int(time.time() * 1000))
        beats += 1
    invocation.measure("heartbeat-count", beats)
    return {"beats": beats, **invocation.leave([f"heartbeat {pair.name} at {at}" for at, pair in left])}


def pairs_of(settings: Settings, flow: Flow) -> list[Flow]:
    """Which pairs of clusters this flow's function beats for: its own, and the way back where that has no function.

    What arrives at the target as `<source>.heartbeats` was written to the source by the way back (reference, 2.5).
    """
    enabled = {one.name for one in settings.flows}
    back = f"{flow.target.alias}->{flow.source.alias}"
    return [pair for pair in settings.heartbeats if pair.name == flow.name or (pair.name == back not in enabled)]


def due(pairs: list[Flow], *, begin: float, now: float) -> list[tuple[int, Flow]]:
    """Return what is to be sent in the minute from `begin` on and not before `now`, in order: epoch seconds, pair."""
    return sorted(
        (
            (second, pair)
            for pair in pairs
            for second in range(int(begin) + 1, int(begin) + 1 + _MINUTE_S)
            if second % pair.emit_heartbeats_interval_seconds == 0 and second >= now
        ),
        key=lambda one: one[0],
    )


def _wait(at: float, budget: TimeBudget) -> bool:
    """Wait until then, unless the time is used up before; it may be cut short while this waits."""
    while (seconds := at - time.time()) > 0:
        if budget.left_s <= seconds:
            return False
        time.sleep(min(seconds, _LOOK_EVERY_S))
    return not budget.is_used_up()


def _heartbeats(pair: Flow) -> Heartbeats:
    if pair not in _open:
        _open[pair] = Heartbeats(pair)
    return _open[pair]
