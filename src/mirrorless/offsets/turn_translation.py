"""Translates offsets of flows that take turns: one log on both clusters, written on one side, then on the other.

The log of the source has stretches that the flow copied, and between them those that the opposite flow appended. An
offset among the former translates by the flow's own offset map; one among the latter is downstream in the opposite
flow's map. Where each stretch begins is in the announcements of both flows' epochs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless.copy.progress.records import Known
from mirrorless.copy.progress.topic_ids import copied_id
from mirrorless.loops import opposite
from mirrorless.offsets.inverse_translation import InverseTranslator
from mirrorless.offsets.translation import How, Translated, Unknown
from mirrorless.offsets.translation_service import Translator

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.offset_map import OffsetMap
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.settings import Flow


def translator_of(
    flow: Flow, *, source: Admin, target: Admin, must_read_to_end: bool = False, inside_log: bool = True
) -> Translator:
    """Return a flow's translator; the parameters are those of `Translator`."""
    back = opposite(flow)
    if back is None:
        return Translator(flow, source=source, target=target, must_read_to_end=must_read_to_end, inside_log=inside_log)
    return TurnTranslator(
        flow, back, source=source, target=target, must_read_to_end=must_read_to_end, inside_log=inside_log
    )


class TurnTranslator(Translator):
    """The translator of a flow that takes turns with the flow `back`."""

    def __init__(
        self, flow: Flow, back: Flow, *, source: Admin, target: Admin, must_read_to_end: bool, inside_log: bool
    ) -> None:
        super().__init__(flow, source=source, target=target, must_read_to_end=must_read_to_end, inside_log=inside_log)
        self._inverse = InverseTranslator(back, source=target, target=source)

    def refresh(self, places: Iterable[TopicPartition], *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read the current state of these source partitions, and of their copies by the opposite flow."""
        places = list(places)
        return super().refresh(places, stopping=stopping) and self._inverse.refresh(places, stopping=stopping)

    def translate(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Answers:
        """Translate upstream offsets; walks end at the monotonic time `deadline`.

        Where the opposite flow's map has no answer, it is before the stretch that the opposite flow appended. What was
        written to the source alone, such as a stranded tail, is followed on the target by what was written there.
        """
        ours: dict[TopicPartition, set[int]] = defaultdict(set)
        theirs: dict[TopicPartition, set[int]] = defaultdict(set)
        turns = {place: self._turns(place) for place in wanted}
        for place, offsets in wanted.items():
            for offset in offsets:
                (theirs if turns[place].is_copy(offset) else ours)[place].add(offset)
        answers = super().translate(ours, deadline=deadline)
        for place, by_offset in answers.items():
            answers[place] = {
                offset: turns[place].capped(offset, answer, self.line(place)) for offset, answer in by_offset.items()
            }
        if not theirs:
            return answers
        inverse = self._inverse.translate(theirs, deadline=deadline)
        self.walked.records += self._inverse.walked_records
        self.walked.troubles += self._inverse.troubles
        for place, by_offset in inverse.items():
            run_before = self.line(place).at
            for offset, answer in by_offset.items():
                run = None if isinstance(answer, Translated) else run_before(offset)[0]
                answers.setdefault(place, {})[offset] = (
                    answer if run is None else Translated(run.end_downstream, How.NEAREST)
                )
        return answers

    def _turns(self, place: TopicPartition) -> Turns:
        known = self.progress.get(place) or Known()
        current = copied_id(known)
        mine = [one for one in known.announced.values() if one.topic_id in (None, current)]
        theirs = (self._inverse.translator.progress.get(place) or Known()).announced.values()
        return Turns(
            position=0 if known.progress is None else known.progress.last_offset + 1,
            mine=tuple(sorted((one.start, one.downstream) for one in mine)),
            theirs=tuple(sorted((one.downstream, one.start) for one in theirs)),
        )

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self._inverse.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Where the epochs of both flows of a pair began in one partition, as (offset on the source, on the target).

    The flow has copied everything before source offset `position`.
    """

    position: int
    mine: tuple[tuple[int, int], ...]
    theirs: tuple[tuple[int, int], ...]

    def is_copy(self, offset: int) -> bool:
        """Whether the opposite flow appended what is at this source offset."""
        begun, copied = _last(self.mine, offset), _last(self.theirs, offset)
        if copied is None or begun is None:
            return copied is not None
        return copied[0] > begun[0] or (copied[0] == begun[0] and self.position < offset)

    def capped(self, offset: int, answer: Translated | Unknown, line: OffsetMap) -> Translated | Unknown:
        """Keep an answer within what was copied in the same turn: later records of the target are others."""
        begun, run = _last(self.mine, offset), line.at(offset)[0]
        if not isinstance(answer, Translated) or begun is None or run is None:
            return answer
        later = [there for _, there in self.theirs if there >= max(begun[1], run.end_downstream)]
        return replace(answer, downstream=min(answer.downstream, *later)) if later else answer


def _last(epochs: Sequence[tuple[int, int]], offset: int) -> tuple[int, int] | None:
    return max((one for one in epochs if one[0] <= offset), default=None)
