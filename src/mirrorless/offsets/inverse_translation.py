"""Translates offsets on a flow's target to offsets on its source: the flow's own pairs, in the other direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import ConfigResource, ResourceType

from mirrorless.batches.record_counter import OffsetSearch
from mirrorless.errors import ClusterError
from mirrorless.log_walk import Walk, Walker
from mirrorless.offsets.translation import How, Translated, Unknown
from mirrorless.offsets.translation_service import Translator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.offset_map import OffsetMap
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.settings import Flow


class InverseTranslator:
    """Translates offsets in the remote partitions of the flow `forward`; `source` and `target` are its ends' clients.

    Remote partitions are named by their source partitions. `troubles` and `walked_records` are those of the last
    translation.
    """

    def __init__(self, forward: Flow, *, source: Admin, target: Admin) -> None:
        self._source = source
        self.translator = Translator(forward, source=source, target=target)
        self._walker = Walker(forward.source)
        self._compacted: dict[str, bool] = {}
        self.troubles: list[str] = []
        self.walked_records = 0

    def refresh(self, places: Iterable[TopicPartition], *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read the current state of these source partitions; returns whether all was read. Raises `ClusterError`."""
        return self.translator.refresh(places, stopping=stopping)

    def translate(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Answers:
        """Translate downstream offsets, by source partition; `refresh` was called with these partitions before.

        Walks end at the monotonic time `deadline`. Raises `ClusterError`.
        """
        self._ask_which_are_compacted({topic for topic, _ in wanted})
        self.troubles, self.walked_records = [], 0
        answers: Answers = {place: {} for place in wanted}
        walks: list[tuple[tuple[int, int], Walk]] = []
        for place, offsets in wanted.items():
            if (reason := self.translator.why_not(place)) is not None:
                answers[place] = dict.fromkeys(offsets, Unknown(reason))
                continue
            line = self.translator.line(place)
            starts: dict[tuple[int, int], list[int]] = {}
            for offset in offsets:
                found = look_up(offset, line, compacted=self._compacted[place[0]])
                if isinstance(found, tuple):
                    starts.setdefault(found, []).append(offset)
                else:
                    answers[place][offset] = found
            for (upstream, downstream), some in starts.items():
                records = sorted(offset - downstream for offset in some)
                walks.append(((upstream, downstream), Walk(place, OffsetSearch(upstream, records))))
        self._walker.walk([walk for _, walk in walks], deadline=deadline)
        for (upstream, downstream), walk in walks:
            for number in walk.counter.until:
                at = walk.counter.counts.get(number)
                answers[walk.place][downstream + number] = (
                    Translated(upstream, How.NEAREST) if at is None else Translated(at, How.WALK)
                )
            self.walked_records += walk.counter.records
            if walk.trouble is not None:
                self.troubles.append(f"{walk.place[0]}-{walk.place[1]}: {walk.trouble}")
        return answers

    def close(self) -> None:
        """Close all connections."""
        self.translator.close()
        self._walker.close()

    def _ask_which_are_compacted(self, topics: Iterable[str]) -> None:
        """Query the policies each time, because they may change; a topic without an answer counts as compacted."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        for resource, future in (self._source.client.describe_configs(resources) if resources else {}).items():
            try:
                policy = self._source.result(future)["cleanup.policy"].value
            except ClusterError:
                policy = "compact"
            self._compacted[resource.name] = "compact" in (policy or "")


def look_up(offset: int, line: OffsetMap, *, compacted: bool) -> Translated | Unknown | tuple[int, int]:
    """Translate a downstream offset: the answer, or the pair of offsets (up, down) from which records are counted.

    `compacted` says that the source may have removed copied records; counting would then lead too far.
    """
    run, following = line.at_downstream(offset)
    if run is None:
        known = "the offset is before the oldest offset sync" if following else "there is no offset sync yet"
        return Unknown(known)
    if offset <= run.end_downstream:
        # Where runs meet on the target, records between them on the source were never copied, so no consumer read them.
        first = line.first_at_downstream(offset)
        if offset == first.first_downstream == 0 < first.first_upstream:
            return Unknown("the offset is before everything that was copied")
        return Translated(first.first_upstream + offset - first.first_downstream, How.RUN)
    if not line.countable(run, following) or compacted:
        return Translated(run.end_upstream, How.NEAREST)
    if following is not None and following.shift == run.shift:
        return Translated(offset + run.shift, How.RUN)
    return run.end_upstream, run.end_downstream
