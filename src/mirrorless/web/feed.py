"""Refreshes the snapshot at an interval, and keeps what all pages are sent: whole, and as the difference to before."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mirrorless.web.changes import changes
from mirrorless.web.encoding import EncodedRows, encode
from mirrorless.web.snapshot import Event, Level

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mirrorless.web.changes import Change
    from mirrorless.web.snapshot import Snapshot

KEYS: Final = {
    "topics": ("flow", "topic"),
    "halted": ("flow", "topic", "partition"),
    "groups": ("flow", "group"),
    "operations": ("id", "kind"),
    "drills": ("flow", "began_ms"),
}
"""The tables of which only changed rows are sent, and the fields that identify a row."""
_SMALL: Final = ("at_ms", "copies_here", "clusters", "flows", "notes")
_EVENTS: Final = 500
_POINTS: Final = 60
"""Points of a sparkline: two minutes, at two seconds each."""
_ALIVE_S: Final = 60.0


_Point: TypeAlias = "tuple[float | None, int | None]"
"""Rate and lag at one moment, None if unknown."""


class Update:
    """What one refresh sends: `delta` to pages that have version `version - 1`, `whole` to all others."""

    def __init__(self, version: int, delta: str, whole: Callable[[], str]) -> None:
        self.version = version
        self.delta = _event("delta", version, delta)
        self._make_whole = whole
        self._whole: bytes | None = None
        self._lock = threading.Lock()

    @property
    def whole(self) -> bytes:
        """Everything, made once for all pages that need it."""
        with self._lock:
            if self._whole is None:
                self._whole = _event("snapshot", self.version, self._make_whole())
            return self._whole


class Feed:
    """Calls `gather` every `every_s` seconds; `latest` is the newest update, None before the first."""

    def __init__(self, gather: Callable[[], Snapshot], *, every_s: float = 2.0) -> None:
        self._gather = gather
        self._every_s = every_s
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="web: feed", daemon=True)
        self._tables = {name: EncodedRows(attrgetter(*key)) for name, key in KEYS.items()}
        self._history: dict[tuple[str, str], deque[_Point]] = defaultdict(lambda: deque(maxlen=_POINTS))
        self._events: deque[Event] = deque(maxlen=_EVENTS)
        self._sent_event = self._number = 0
        self._listener: Callable[[], None] = lambda: None
        self._beat_s = time.monotonic()
        self.snapshot: Snapshot | None = None
        self.latest: Update | None = None
        self.cpu_s = 0.0
        """CPU time of the last refresh."""

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._thread.join(1)

    def close(self) -> None:
        """End the streams of all pages."""
        self._ended.set()
        self._listener()

    @property
    def is_closed(self) -> bool:
        """Whether no more updates follow."""
        return self._ended.is_set()

    @property
    def is_alive(self) -> bool:
        """Whether it was refreshed within the last minute."""
        return time.monotonic() - self._beat_s < _ALIVE_S

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` in the feed's thread after each update, and at the end."""
        self._listener = listener

    def note(self, level: Level, flow: str, kind: str, text: str) -> None:
        """Add an event; from any thread."""
        with self._lock:
            self._number += 1
            self._events.append(
                Event(number=self._number, at_ms=int(time.time() * 1000), level=level, flow=flow, kind=kind, text=text)
            )

    def events(self) -> list[Event]:
        """Return the latest events, the oldest first."""
        with self._lock:
            return list(self._events)

    def refresh(self) -> Update:
        """Gather once and make the next update."""
        began = time.thread_time()
        snapshot = self._gather()
        found: list[Change] = changes(self.snapshot, snapshot)
        for one in found:
            self.note(one.level, one.flow, one.kind, one.text)
        changed: dict[str, str] = {}
        gone: dict[str, list[object]] = {}
        for name, table in self._tables.items():
            rows, gone[name] = table.update(getattr(snapshot, name))
            changed[name] = f"[{','.join(rows)}]"
        self._remember(snapshot, gone["topics"])
        events = self.events()
        news = [one for one in events if one.number > self._sent_event]
        self._sent_event = events[-1].number if events else 0
        version = 1 if self.latest is None else self.latest.version + 1
        small = f'"version":{version},{_small(snapshot)}'
        delta = f'{{{small},{_members(changed)},"gone":{encode(gone)},"events":{encode(news)}}}'
        # The next refresh replaces these strings, but does not change them.
        tables = _members({name: table.text for name, table in self._tables.items()})

        def whole() -> str:
            return f'{{{small},{tables},"events":{encode(events)},"history":{encode(self._history_now())}}}'

        self.snapshot, self.latest = snapshot, Update(version, delta, whole)
        self._beat_s = time.monotonic()
        self.cpu_s = time.thread_time() - began
        return self.latest

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self.refresh()
            except Exception as error:  # noqa: BLE001 -- the page shows the error, and the next refresh may succeed
                self.note(Level.ERROR, "", "page", f"{type(error).__name__}: {error}")
            self._listener()
            self._ended.wait(self._every_s)

    def _remember(self, snapshot: Snapshot, gone: list[Any]) -> None:
        """Keep the last rates and lags of topics that were ever active, for sparklines."""
        with self._lock:
            for key in gone:
                self._history.pop(key, None)
            for topic in snapshot.topics:
                place = topic.flow, topic.topic
                if topic.records_per_s or topic.lag_records or place in self._history:
                    self._history[place].append((topic.records_per_s, topic.lag_records))
            for flow in snapshot.flows:
                self._history[flow.name, ""].append((flow.records_per_s, flow.lag_records))

    def _history_now(self) -> list[list[object]]:
        """Return `[flow, topic, rates, lags]` of each; the topic is empty for the whole flow."""
        with self._lock:
            return [
                [flow, topic, [None if rate is None else round(rate) for rate, _ in points], [lag for _, lag in points]]
                for (flow, topic), points in self._history.items()
            ]


def _members(values: Mapping[str, str]) -> str:
    return ",".join(f'"{name}":{value}' for name, value in values.items())


def _small(snapshot: Snapshot) -> str:
    """Return what is short enough to be sent each time."""
    return _members({name: encode(getattr(snapshot, name)) for name in _SMALL})


def _event(kind: str, number: int, data: str) -> bytes:
    """Return a server-sent event."""
    return f"event: {kind}\nid: {number}\ndata: {data}\n\n".encode("ascii")
