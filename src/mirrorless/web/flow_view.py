"""Adds up what was read of one flow to rows, by partition and by topic. No I/O; times are monotonic seconds."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Final

from mirrorless.errors import GapKind
from mirrorless.web.lag_time import LagTime, catch_up_s
from mirrorless.web.snapshot import HaltedRow, PartitionRow, TopicRow, TopicState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.local.progress_view import TopicView
    from mirrorless.progress.records import Halt, Known

_RATE_WINDOW_S: Final = 10.0
_TREND_S: Final = 30.0
"""By how much a lag grows is measured over so many seconds, and known after `_FIRST_S`."""
_FIRST_S: Final = 5.0
"""Before, a lag in time of records that were there before would be the time since the first look."""
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

    __slots__ = ("end", "halt", "lag", "lag_time", "next_offset", "place", "unknown")

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.end: int | None = None
        self.next_offset: int | None = None
        self.halt: Halt | None = None
        self.unknown: str | None = None
        self.lag_time = LagTime()
        self.lag: tuple[float, bool] | None = None

    @property
    def is_of_another(self) -> bool:
        """Whether the topic was recreated: the position is one of the topic before, and nothing of this was copied."""
        return self.halt is not None and self.halt.kind is GapKind.CREATED_AGAIN

    @property
    def lag_records(self) -> int:
        if self.end is None:
            return 0
        return max(0, self.end - (0 if self.is_of_another else self.next_offset or 0))

    @property
    def rank(self) -> int:
        """The state as its place in `TopicState`, the worst first: compared for every partition at each refresh."""
        if self.halt is not None:
            return _HALTED
        if self.unknown is not None:
            return _UNREACHABLE
        if self.end is None:
            return _UNKNOWN
        if (self.next_offset or 0) >= self.end:
            return _CAUGHT_UP
        return _NOT_STARTED if self.next_offset is None else _COPYING


class FlowView:
    """All partitions of the flow `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._unread: str | None = None
        self._remote: Mapping[str, str] = {}
        self._partitions: dict[str, list[_PartitionView]] = {}
        self._history: dict[str, deque[tuple[float, int, int | None]]] = defaultdict(deque)
        self._live: Mapping[str, TopicView] = {}
        self._rows: dict[str, TopicRow] = {}
        self._stale: set[str] = set()

    @property
    def places(self) -> list[TopicPartition]:
        """Every replicated partition of the source."""
        return [one.place for some in self._partitions.values() for one in some]

    @property
    def started(self) -> int:
        """How many partitions have progress."""
        return sum(one.next_offset is not None for some in self._partitions.values() for one in some)

    def set_unread(self, reason: str | None) -> None:
        """Take why what is known is not that of now; None if it is."""
        if reason != self._unread:
            self._unread = reason
            self._rows = {}
            self._history.clear()  # rates and trends begin from scratch

    def set_live(self, live: Mapping[str, TopicView]) -> None:
        """Take the progress that this process itself makes, by topic; empty if it copies nothing now."""
        before, self._live = self._live, live
        self._stale.update(topic for topic in before.keys() | live.keys() if before.get(topic) != live.get(topic))

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
            total = lag = unknown = 0
            for one in some:
                said = known.get(one.place)
                progress = None if said is None else said.progress
                next_offset = None if progress is None else progress.last_offset + 1
                halt = None if said is None else said.shown_halt
                if next_offset != one.next_offset or halt != one.halt:
                    one.next_offset, one.halt = next_offset, halt
                    self._stale.add(topic)
                total += next_offset or 0
                if one.end is not None and next_offset is not None and next_offset > one.end and not one.is_of_another:
                    one.end = next_offset  # the end was read earlier
                if one.end is None:
                    unknown += 1
                elif one.end > (next_offset or 0) or one.is_of_another:
                    lag += one.lag_records
            history = self._history[topic]
            history.append((now_s, total, None if unknown else lag))
            while now_s - history[0][0] > _TREND_S:
                history.popleft()
            row = self._rows.get(topic)
            if row is not None and (row.records_per_s or row.lag_per_s != 0):
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
                state=_STATES[_UNKNOWN if self._unread and one.halt is None else one.rank],
                next_offset=one.next_offset,
                source_end=one.end,
                lag_records=None if one.end is None or self._unread else one.lag_records,
                lag_s=None if one.lag is None or self._unread else round(one.lag[0], 1),
                reason=one.halt.reason if one.halt is not None else one.unknown or self._unread,
            )
            for one in self._partitions[topic]
        ]

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
        lag = halted = unknown = 0
        worst, rank = None, _CAUGHT_UP
        oldest: tuple[float, bool] | None = (0.0, False)
        for one in some:
            here = one.rank
            if here < rank:
                worst, rank = one, here
            if here != _CAUGHT_UP:
                halted += here == _HALTED
                if here in (_UNREACHABLE, _UNKNOWN) or one.end is None:
                    unknown, oldest = unknown + 1, None
                    continue
                lag += one.lag_records
                if oldest is not None:
                    oldest = None if one.lag is None else max(oldest, one.lag)
        state = _STATES[rank]
        error = None if worst is None else worst.halt.reason if worst.halt is not None else worst.unknown
        live = self._live.get(topic)
        if live is not None and state is not TopicState.HALTED:
            state, error = _BY_TEXT.get(live.state, state), live.error
            if state in _PROGRESSING:
                lag, unknown = live.lag_records, 0
                oldest = oldest if lag else (0.0, False)
        if self._unread is not None:
            live, unknown, oldest = None, len(some), None
            if state is not TopicState.HALTED:
                state, error = TopicState.UNKNOWN, self._unread
        if oldest is not None and oldest[1] and oldest[0] < _FIRST_S:
            oldest = None
        rate = self._rate(topic) if live is None else live.records_per_s
        known = None if unknown and (self._unread or not lag) else lag
        lag_per_s = 0.0 if lag == unknown == 0 else self._lag_per_s(topic)
        soon = None if unknown else catch_up_s(known, lag_per_s=lag_per_s, copied_per_s=rate)
        return TopicRow(
            flow=self._name,
            topic=topic,
            remote_topic=self._remote[topic],
            partitions=len(some),
            halted=halted,
            state=state,
            records_per_s=None if self._unread else round(rate, 1),
            bytes_per_s=None if live is None else round(live.bytes_per_s),
            unknown_partitions=unknown,
            lag_records=known,
            lag_s=None if oldest is None else round(oldest[0], 1),
            lag_is_minimum=oldest is not None and oldest[1],
            lag_per_s=None if lag_per_s is None else round(lag_per_s, 1),
            catch_up_s=None if soon is None else round(soon, 1),
            latency_ms=live.latency_ms if live is not None and live.records_per_s else None,
            error=error,
        )

    def _rate(self, topic: str) -> float:
        history = self._history[topic]
        if len(history) < 2:
            return 0.0
        now_s, after, _ = history[-1]
        since_s, before, _ = next(one for one in history if now_s - one[0] <= _RATE_WINDOW_S)
        return max(0.0, (after - before) / max(now_s - since_s, 1e-3))

    def _lag_per_s(self, topic: str) -> float | None:
        """By how much the lag has grown per second; None if that is not known yet."""
        known = [(at_s, lag) for at_s, _, lag in self._history[topic] if lag is not None]
        if len(known) < 2 or known[-1][0] - known[0][0] < _FIRST_S:
            return None
        (since_s, before), (now_s, after) = known[0], known[-1]
        return (after - before) / (now_s - since_s)

    def _halted(self, place: TopicPartition, halt: Halt) -> HaltedRow:
        topic, number = place
        return HaltedRow(
            flow=self._name,
            topic=topic,
            partition=number,
            offset=halt.offset,
            gap=halt.kind and halt.kind.name,
            records=halt.records,
            reason=halt.reason,
        )
