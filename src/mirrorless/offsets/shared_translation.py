"""Translates offsets of flows that skip copied records: both sides have the same records, each in an order of its own.

A consumer has read a part of the records of each origin: those written to the source, those written to the target, and
those of other clusters of the file. It continues at the largest offset of the target before which it has read all;
what it has read after that, it reads again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mirrorless.clusters.admin import Admin
from mirrorless.errors import ClusterError
from mirrorless.loops import Loops
from mirrorless.modes import Modes
from mirrorless.offsets.shared_map import Bound, SharedMap
from mirrorless.offsets.translation import How, Translated, Unknown, inside_log
from mirrorless.offsets.translation_service import Answers, Translator, Walked, counter_from

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mirrorless.batches.producers import ProducerFilter
    from mirrorless.batches.record_counter import RecordCounter
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.shared_map import Bounds
    from mirrorless.settings import Flow


class _Route(NamedTuple):
    """How records of another origin than the source reach both ends: `here` appends them to the source.

    `there` appends them to the target; None if they were written there.
    """

    here: SharedMap
    there: SharedMap | None


class SharedTranslator(Translator):
    """The translator of a flow with `mirrorless.both.directions=skip`; `flow_map` has the flow's own records alone."""

    shares_target = True

    def __init__(
        self, flow: Flow, *, source: Admin, target: Admin, must_read_to_end: bool = False, inside_log: bool = True
    ) -> None:
        super().__init__(flow, source=source, target=target, must_read_to_end=must_read_to_end, inside_log=inside_log)
        self.flow_map = SharedMap(flow, self, source=source, target=target)
        self._routes = [
            _Route(_map(here, source), None if there is None else _map(there, target))
            for here, there in Modes(flow).routes()
        ]
        self._unavailable: str | None = None
        self._bounds: dict[TopicPartition, dict[int, list[Bound]]] = {}
        self._again: dict[tuple[TopicPartition, int], int] | None = None
        self._loops = Loops(flow)
        self._skipped: dict[str, frozenset[str]] = {}

    def refresh(self, places: Iterable[TopicPartition], *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read the current state of these source partitions, and of what other flows of the file did with them."""
        places = list(places)
        if not super().refresh(places, stopping=stopping):
            return False
        self._unavailable = None
        try:
            self.flow_map.refresh(places)
            for one in (part for route in self._routes for part in route if part is not None):
                if not one.translator.refresh(places, stopping=stopping):
                    return False
                one.refresh(places)
        except ClusterError as error:
            if error.cluster in (self._flow.source.alias, self._flow.target.alias):
                raise
            self._unavailable = str(error)
        return True

    def counter(self, place: TopicPartition, start: int, until: Sequence[int]) -> RecordCounter:
        """Count the records that the flow copies."""
        return counter_from(self.progress.get(place), start, until, producers=self.flow_map.local(place))

    def translate(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Answers:
        """Translate upstream offsets; walks end at the monotonic time `deadline`."""
        self.walked = Walked()
        if self._unavailable is not None:
            return {place: dict.fromkeys(offsets, Unknown(self._unavailable)) for place, offsets in wanted.items()}
        bounds: list[Bounds] = [self.flow_map.forward(wanted, deadline=deadline)]
        for route in self._routes:
            some = {place: offsets for place, offsets in wanted.items() if self._is_from(route, place[0])}
            found = route.here.inverse(some, deadline=deadline)
            bounds.append(found if route.there is None else _onwards(found, route.there, deadline))
        self._bounds, self._again = {}, None
        answers: Answers = {}
        for place, offsets in wanted.items():
            answers[place] = {
                offset: self._least(place, offset, [one[place][offset] for one in bounds if place in one])
                for offset in offsets
            }
            if self._inside_log and (start := self._target_starts.get(place)) is not None:
                answers[place] = {offset: inside_log(one, start) for offset, one in answers[place].items()}
        maps = [self.flow_map, *(part for route in self._routes for part in route if part is not None)]
        self.walked.records, self.walked.walks = sum(one.walked_records for one in maps), len(maps)
        for one in maps:
            one.walked_records = 0
        return answers

    def read_again(self, place: TopicPartition, offset: int, answer: Translated) -> int:
        """Count the records after the answer that a consumer at source `offset` has read."""
        del answer  # what it was made of is kept
        if self._again is None:
            self._again = self._count_again()
        return self._again.get((place, offset), 0)

    def _count_again(self) -> dict[tuple[TopicPartition, int], int]:
        """Count for all offsets of the last translation at once."""
        wanted: list[tuple[tuple[TopicPartition, int], ProducerFilter, int, int]] = []
        for place, by_offset in self._bounds.items():
            producers = [
                self.flow_map.copied(place),
                *(
                    one.here.local(place) if one.there is None else one.there.copied(place)
                    for one in self._routes
                    if self._is_from(one, place[0])
                ),
            ]
            for offset, bounds in by_offset.items():
                first = min(one.offset for one in bounds)
                wanted += [
                    ((place, offset), some, first, bound.offset)
                    for some, bound in zip(producers, bounds, strict=True)
                    if bound.offset > first
                ]
        counts = self.flow_map.count_on_target([(key[0], some, first, end) for key, some, first, end in wanted])
        found: dict[tuple[TopicPartition, int], int] = {}
        for (key, *_), records in zip(wanted, counts, strict=True):
            found[key] = found.get(key, 0) + records
        return found

    def _is_from(self, route: _Route, topic: str) -> bool:
        """Whether records of a route's origin are in a topic of both ends."""
        skipped = self._skipped.get(topic)
        if skipped is None:
            skipped = self._skipped[topic] = frozenset(one.alias for one in self._loops.skipped(topic))
        return route.here.flow.source.alias in skipped

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self.flow_map.close()
        for one in (part for route in self._routes for part in route if part is not None):
            one.translator.close()
            one.close()

    def _least(self, place: TopicPartition, offset: int, bounds: list[Bound | Unknown]) -> Translated | Unknown:
        unknown = next((one for one in bounds if isinstance(one, Unknown)), None)
        if unknown is not None:
            return unknown
        known = [one for one in bounds if isinstance(one, Bound)]
        self._bounds.setdefault(place, {})[offset] = known
        least = min(one.offset for one in known)
        if not all(one.exact for one in known):
            return Translated(least, How.NEAREST)
        return Translated(least, How.BEYOND if least >= self.target_ends[place] else How.MERGED)


def _map(flow: Flow, target: Admin) -> SharedMap:
    source = Admin(flow.source)
    return SharedMap(
        flow, Translator(flow, source=source, target=target, inside_log=False), source=source, target=target
    )


def _onwards(found: Bounds, there: SharedMap, deadline: float) -> Bounds:
    """Translate bounds in the log of an origin to those on the target."""
    wanted = {place: {one.offset for one in by.values() if isinstance(one, Bound)} for place, by in found.items()}
    further = there.forward(wanted, deadline=deadline)
    return {
        place: {
            offset: one if isinstance(one, Unknown) else _weaker(further[place][one.offset], exact=one.exact)
            for offset, one in by.items()
        }
        for place, by in found.items()
    }


def _weaker(one: Bound | Unknown, *, exact: bool) -> Bound | Unknown:
    return one if isinstance(one, Unknown) else one._replace(exact=one.exact and exact)
