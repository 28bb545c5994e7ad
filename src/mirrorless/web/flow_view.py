"""Adds up what was read of one flow to rows, by partition and by topic. No I/O; times are monotonic seconds."""

from __future__ import annotations

import shlex
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from mirrorless.copy.progress.records import Halt
from mirrorless.errors import GapKind
from mirrorless.web.lag_time import LagTime
from mirrorless.web.snapshot import Fix, HaltedRow, PartitionRow, TopicRow, TopicState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.progress.records import Known, Stop
    from mirrorless.local.progress_view import TopicView

_RATE_WINDOW_S: Final = 10.0
_STATES: Final = tuple(TopicState)
_HALTED, _UNREACHABLE, _UNKNOWN, _NOT_STARTED, _COPYING, _CAUGHT_UP = map(
    _STATES.index,
    (
        TopicState.HALTED,
        TopicState.UNREACHABLE,
        TopicState.UNKNOWN,
        TopicState.NOT_STARTED,
        TopicState.COPYING,
        TopicState.CAUGHT_UP,
    ),
)
_PROGRESSING: Final = (TopicState.COPYING, TopicState.CAUGHT_UP)
_BY_TEXT: Final = {state.value: state for state in TopicState}


class _PartitionView:
    """What is known about one partition; `place` is its topic and number."""

    __slots__ = ("end", "halt", "is_read", "lag", "lag_time", "next_offset", "place", "unknown")

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.end: int | None = None
        self.next_offset: int | None = None
        self.is_read = False
        self.halt: Halt | Stop | None = None
        self.unknown: str | None = None
        self.lag_time = LagTime()
        self.lag: tuple[float, bool] | None = None

    @property
    def is_of_another(self) -> bool:
        """Whether the topic was recreated: the position is one of the topic before, and nothing of this was copied."""
        return isinstance(self.halt, Halt) and self.halt.kind is GapKind.CREATED_AGAIN

    @property
    def lag_records(self) -> int | None:
        """None unless both the end and the progress were read."""
        if self.end is None or self.unknown is not None or not self.is_read:
            return None
        return max(0, self.end - (0 if self.is_of_another else self.next_offset or 0))

    @property
    def rank(self) -> int:
        """The state as its place in `TopicState`, the worst first: compared for every partition at each refresh."""
        if self.halt is not None:
            return _HALTED
        if self.unknown is not None:
            return _UNREACHABLE
        if self.end is None or not self.is_read:
            return _UNKNOWN
        if self.end is not None and (self.next_offset or 0) >= self.end:
            return _CAUGHT_UP
        return _NOT_STARTED if self.next_offset is None else _COPYING


class FlowView:
    """All partitions of the flow `name`, whose configuration is at `location`."""

    def __init__(self, name: str, location: str) -> None:
        self._name = name
        self._location = location
        self._remote: Mapping[str, str] = {}
        self._partitions: dict[str, list[_PartitionView]] = {}
        self._history: dict[str, deque[tuple[float, int]]] = defaultdict(deque)
        self._live: Mapping[str, TopicView] = {}
        self._rows: dict[str, TopicRow] = {}
        self._stale: set[str] = set()
        self._readable = True

    @property
    def places(self) -> list[TopicPartition]:
        """Every replicated partition of the source."""
        return [one.place for some in self._partitions.values() for one in some]

    @property
    def started(self) -> int:
        """How many partitions have progress."""
        return sum(one.next_offset is not None for some in self._partitions.values() for one in some)

    def set_live(self, live: Mapping[str, TopicView]) -> None:
        """Take the progress that this process itself makes, by topic; empty if it copies nothing now."""
        before, self._live = self._live, live
        self._stale.update(topic for topic in before.keys() | live.keys() if before.get(topic) != live.get(topic))

    def set_readable(self, readable: bool) -> None:
        """Take whether both clusters can be read now: without them lag and rates are those of earlier."""
        if readable is not self._readable:
            self._readable = readable
            self._stale.update(self._partitions)

    def set_topics(self, remote: Mapping[str, str], counts: Mapping[str, int]) -> None:
        """Take the source's topics with their remote topics, and their partition counts."""
        before, self._partitions = self._partitions, {}
        self._remote = remote
        for topic in remote:
            known = before.get(topic, [])[: counts[topic]]
            added = (_PartitionView((topic, number)) for number in range(len(known), counts[topic]))
            self._partitions[topic] = [*known, *added]
        for topic in before.keys() - remote.keys():
            self._history.pop(topic, None)
        self._rows = {}

    def set_ends(self, ends: Mapping[TopicPartition, int], unknown: Mapping[TopicPartition, str], now_s: float) -> None:
        """Take the ends of some partitions of the source, and why others are unknown."""
        for (topic, number), end in ends.items():
            if (one := self._find(topic, number)) is not None:
                before = one.end, one.unknown, one.lag
                one.end, one.unknown = end, None
                one.lag = one.lag_time.see(now_s, end=end, next_offset=one.next_offset or 0)
                if before != (one.end, None, one.lag):
                    self._stale.add(topic)
        for (topic, number), reason in unknown.items():
            if (one := self._find(topic, number)) is not None:
                one.unknown = reason
                self._stale.add(topic)

    def set_progress(self, known: Mapping[TopicPartition, Known], now_s: float) -> None:
        """Take the content of the progress topic."""
        for topic, some in self._partitions.items():
            total = 0
            for one in some:
                said = known.get(one.place)
                progress = None if said is None else said.progress
                next_offset = None if progress is None else progress.last_offset + 1
                halt = None if said is None else said.standing_halt or said.standing_stop
                if next_offset != one.next_offset or halt != one.halt or not one.is_read:
                    one.next_offset, one.halt, one.is_read = next_offset, halt, True
                    self._stale.add(topic)
                total += next_offset or 0
                if one.end is not None and next_offset is not None and next_offset > one.end and not one.is_of_another:
                    one.end = next_offset  # the end was read earlier
            history = self._history[topic]
            history.append((now_s, total))
            while now_s - history[0][0] > _RATE_WINDOW_S:
                history.popleft()
            if topic in self._rows and self._rows[topic].records_per_s:
                self._stale.add(topic)  # the rate changes although nothing is copied

    def rows(self) -> list[TopicRow]:
        """Return a row for each topic, by name; rows of topics without a change are the same objects as before."""
        for topic, some in self._partitions.items():
            if topic in self._stale or topic not in self._rows:
                self._rows[topic] = self._row(topic, some)
        self._stale.clear()
        return list(self._rows.values())

    def partitions(self, topic: str) -> list[PartitionRow] | None:
        """Return a row for each partition of a topic; None if the flow does not have the topic."""
        if topic not in self._partitions:
            return None
        return [
            PartitionRow(
                partition=one.place[1],
                state=_STATES[one.rank],
                next_offset=one.next_offset,
                source_end=one.end,
                lag_records=one.lag_records if self._readable else None,
                lag_s=self._lag_s(one),
                reason=one.halt.reason if one.halt is not None else one.unknown,
            )
            for one in self._partitions[topic]
        ]

    def _lag_s(self, one: _PartitionView) -> float | None:
        is_known = one.lag is not None and one.lag_records is not None and self._readable
        return round(one.lag[0], 1) if is_known and one.lag is not None else None

    def lag_of(self, place: TopicPartition, offset: int) -> int | None:
        """Return how many offsets of a source partition are from `offset` on; None if its end is unknown."""
        one = self._find(*place)
        return None if one is None or one.end is None else max(0, one.end - offset)

    def halted(self) -> list[HaltedRow]:
        """Return every halted partition."""
        return [
            self._halted(one.place, one.halt)
            for some in self._partitions.values()
            for one in some
            if one.halt is not None
        ]

    def _find(self, topic: str, number: int) -> _PartitionView | None:
        some = self._partitions.get(topic, ())
        return some[number] if number < len(some) else None

    def _row(self, topic: str, some: Sequence[_PartitionView]) -> TopicRow:
        halted = 0
        lag: int | None = 0
        worst, rank = None, _CAUGHT_UP
        oldest: tuple[float, bool] | None = (0.0, False)
        for one in some:
            here = one.rank
            if here < rank:
                worst, rank = one, here
            if here != _CAUGHT_UP:
                here_lag = one.lag_records
                lag = None if lag is None or here_lag is None else lag + here_lag
                halted += here == _HALTED
                if oldest is not None:
                    oldest = None if one.lag is None or here_lag is None else max(oldest, one.lag)
        state = _STATES[rank]
        error = None if worst is None else worst.halt.reason if worst.halt is not None else worst.unknown
        live = self._live.get(topic)
        if not self._readable:
            lag = oldest = None
        if live is not None and state is not TopicState.HALTED:
            state, error = _BY_TEXT.get(live.state, state), live.error
            if state in _PROGRESSING:
                lag = live.lag_records
                oldest = oldest if lag else (0.0, False)
        rate = self._rate(topic) if live is None else live.records_per_s
        return TopicRow(
            flow=self._name,
            topic=topic,
            remote_topic=self._remote[topic],
            partitions=len(some),
            halted=halted,
            state=state,
            records_per_s=None if rate is None else round(rate, 1),
            bytes_per_s=None if live is None else round(live.bytes_per_s),
            lag_records=lag,
            lag_s=None if oldest is None else round(oldest[0], 1),
            lag_is_minimum=oldest is not None and oldest[1],
            latency_ms=None if live is None else live.latency_ms,
            error=error,
        )

    def _rate(self, topic: str) -> float | None:
        """Records per second by the progress; None if that cannot be read."""
        history = self._history[topic]
        if not self._readable or not history:
            return None
        if len(history) < 2:
            return 0.0
        (since_s, before), (now_s, after) = history[0], history[-1]
        return max(0.0, (after - before) / max(now_s - since_s, 1e-3))

    def _halted(self, place: TopicPartition, halt: Halt | Stop) -> HaltedRow:
        topic, number = place
        reset = (
            f"mirrorless offsets reset {shlex.quote(self._location)} --flow {shlex.quote(self._name)} "
            f"--topic {shlex.quote(topic)} --partition {number}"
        )
        fixes: tuple[Fix, ...] = (Fix(text="Every lease retries: fix the cause that the reason names.", command=None),)
        if isinstance(halt, Halt):
            fixes = (
                Fix(text="Skip the gap: set this in the configuration.", command="mirrorless.on.gap=continue"),
                Fix(text="Or copy the partition again from its beginning.", command=reset),
            )
        return HaltedRow(
            flow=self._name,
            topic=topic,
            partition=number,
            offset=halt.offset,
            gap=halt.kind.name if isinstance(halt, Halt) else None,
            records=halt.records if isinstance(halt, Halt) else None,
            reason=halt.reason,
            fixes=fixes,
        )
