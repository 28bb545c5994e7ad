"""heartbeat: emits heartbeats at fixed times, from this minute's scheduled event until the next one's."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.internal_topics import heartbeats_topic
from mirrorless.functions.client_cache import ClientCache
from mirrorless.functions.copying import EMITTED_BY_COPY, copied_by_functions
from mirrorless.functions.events import ScheduleEvent
from mirrorless.functions.runtime_context import runtime_context
from mirrorless.heartbeats import Heartbeats

if TYPE_CHECKING:
    from mirrorless.clusters.internal_topics import InternalTopic
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
"""By the first pair of those that write to one topic."""
_refused: Final[dict[str, str]] = {}
"""Why heartbeats of a pair are not written, as it was logged."""


def beat(invocation: Invocation) -> dict[str, Any]:
    """Emit a heartbeat whenever the clock reaches a multiple of `emit.heartbeats.interval.seconds`, for a minute.

    Two successive invocations leave no heartbeat out, whatever the interval; late heartbeats are not made up for.
    Pairs with one target share a connection. A target that fails skips heartbeats and does not delay others; its first
    error is raised when the minute is over. Pairs whose topic has another use are skipped, which is logged once and
    checked again each minute.
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
    minutes = [_Minute.of(some, begin, now, invocation) for some in _by_topic(pairs)]
    # Daemon threads, so that a run on one machine does not wait at its end for an unavailable cluster.
    threads = [threading.Thread(target=minute.run, name=minute.pairs[0].name, daemon=True) for minute in minutes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    beats = sum(minute.beats for minute in minutes)
    invocation.measure("heartbeat-count", beats)
    refused = [pair.name for minute in minutes if minute.refused for pair in minute.pairs]
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


def _by_topic(pairs: list[Flow]) -> list[list[Flow]]:
    """Divide pairs by what they write to: in a file with many clusters there are hundreds of pairs."""
    found: list[tuple[InternalTopic, list[Flow]]] = []
    for pair in pairs:
        topic = heartbeats_topic(pair)
        beside = next((some for known, some in found if known == topic), None)
        if beside is None:
            found.append((topic, [pair]))
        else:
            beside.append(pair)
    return [some for _, some in found]


@dataclass(slots=True)
class _Minute:
    """The heartbeats of pairs with one topic, in a thread: acknowledged ones, those not begun, and the first error.

    `at` has each heartbeat's time, in epoch seconds, in order. `refused` says that the topic has another use.
    """

    pairs: list[Flow]
    at: list[tuple[int, Flow]]
    budget: TimeBudget
    sink: Sink
    beats: int = 0
    left: list[str] = field(default_factory=list)
    error: Exception | None = None
    refused: bool = False

    @classmethod
    def of(cls, pairs: list[Flow], begin: float, now: float, invocation: Invocation) -> _Minute:
        """The heartbeats in the minute after `begin` and not before `now`."""
        at = [(second, pair) for pair in pairs for second in due(pair, begin=begin, now=now)]
        return cls(pairs, sorted(at, key=itemgetter(0)), invocation.budget, invocation.sink)

    def run(self) -> None:
        failed, first = False, self.pairs[0]
        while self.at and _wait(self.at[0][0], self.budget):
            if failed and self.budget.left_s < _LONGEST_S:
                return  # the timeout would interrupt the next attempt, and hide the error
            now_due = [pair for at, pair in self.at if at == self.at[0][0]]
            try:
                with _warm.kept(first.name, first, lambda: Heartbeats(first)) as heartbeats:
                    if self._is_refused(heartbeats.refused):
                        return
                    heartbeats.beat(now_due, timestamp_ms=int(time.time() * 1000))
            except Exception as error:  # noqa: BLE001 -- would be lost with the thread; `beat` raises it
                failed, self.error = True, self.error or error
                again = time.time() + _PAUSE_S
                self.at = [one for one in self.at if one[0] >= again]
            else:
                failed = False
                self.beats += len(now_due)
                del self.at[: len(now_due)]
        self.left = [f"heartbeat {pair.name} at {at}" for at, pair in self.at]

    def _is_refused(self, reason: str | None) -> bool:
        name = self.pairs[0].name
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
