"""Translates offsets of flows that take turns: one log on both clusters, written on one side, then on the other.

The log of the source has stretches that the flow copied, and between them those that the opposite flow appended. An
offset among the former translates by the flow's own offset map; one among the latter is downstream in the opposite
flow's map. Where each stretch begins is in the announcements of both flows' epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless.modes import Modes
from mirrorless.offsets.inverse_translation import InverseTranslator
from mirrorless.offsets.shared_translation import SharedTranslator
from mirrorless.offsets.translation import How, Translated, Unknown, inside_log
from mirrorless.offsets.translation_service import Translator
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.topic_ids import copied_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.translation_service import Answers
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow


def translator_of(
    flow: Flow, *, source: Admin, target: Admin, must_read_to_end: bool = False, inside_log: bool = True
) -> Translator:
    """Return a flow's translator; the parameters are those of `Translator`."""
    modes = Modes(flow)
    kind = SharedTranslator if modes.shares_topics else Translator if modes.other_turn is None else TurnTranslator
    return kind(flow, source=source, target=target, must_read_to_end=must_read_to_end, inside_log=inside_log)


def progress_translator(flow: Flow, *, source: Admin, target: Admin, inside_log: bool = True) -> Translator:
    """Return a translator to count with what a flow has not copied; one that takes turns needs its own map only."""
    kind = SharedTranslator if Modes(flow).shares_topics else Translator
    return kind(flow, source=source, target=target, inside_log=inside_log)


class TurnTranslator(Translator):
    """The translator of a flow that takes turns with another."""

    def __init__(
        self, flow: Flow, *, source: Admin, target: Admin, must_read_to_end: bool = False, inside_log: bool = True
    ) -> None:
        super().__init__(flow, source=source, target=target, must_read_to_end=must_read_to_end, inside_log=inside_log)
        modes = Modes(flow)
        assert modes.other_turn is not None
        self._begins_stopped, self._name_there = modes.begins_stopped, modes.name_there
        self._inverse = InverseTranslator(modes.other_turn, source=target, target=source)

    def refresh(self, places: Iterable[TopicPartition], *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read the current state of these source partitions, and of their copies by the opposite flow."""
        places = list(places)
        return super().refresh(places, stopping=stopping) and self._inverse.refresh(
            map(self._there, places), stopping=stopping
        )

    def translate(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Answers:
        """Translate upstream offsets; walks end at the monotonic time `deadline`.

        What was written to the source alone, such as a stranded tail, is followed on the target by what was written
        there: an answer is never beyond the stretch that its offset is in.
        """
        ours: dict[TopicPartition, set[int]] = defaultdict(set)
        theirs: dict[TopicPartition, set[int]] = defaultdict(set)
        turns = {place: self._turns(place) for place in wanted}
        for place, offsets in wanted.items():
            for offset in offsets:
                (ours if turns[place].at(offset).mine else theirs)[place].add(offset)
        answers = super().translate(ours, deadline=deadline)
        if theirs:
            there = {self._there(place): place for place in theirs}
            inverse = self._inverse.translate({name: theirs[place] for name, place in there.items()}, deadline=deadline)
            self.walked.records += self._inverse.walked_records
            self.walked.troubles += self._inverse.troubles
            for name, by_offset in inverse.items():
                place = there[name]
                answers.setdefault(place, {}).update(
                    {offset: self._on_target(place, turns[place].at(offset), one) for offset, one in by_offset.items()}
                )
        return {
            place: {offset: turns[place].at(offset).capped(answer) for offset, answer in by_offset.items()}
            for place, by_offset in answers.items()
        }

    def turn_starts(self, place: TopicPartition) -> list[int]:
        """Return where the flow's turns began on the source; before each the target may have a tail."""
        return [start for start, _ in turn_begins(self.progress.get(place))]

    def _there(self, place: TopicPartition) -> TopicPartition:
        """Return a partition as it is named on the target, of which the opposite flow is a source."""
        return self._name_there(place[0]), place[1]

    def _on_target(self, place: TopicPartition, stretch: Stretch, answer: Translated | Unknown) -> Translated | Unknown:
        """Complete an answer of the opposite flow's map: within the target's log, or where the stretch begins."""
        end = self.target_ends.get(place)
        if end is None:
            return Unknown(f"{self.remote(place[0])} does not exist on the target")
        if isinstance(answer, Unknown) and stretch.target is not None:
            answer = Translated(stretch.target, How.NEAREST)
        if isinstance(answer, Translated) and answer.downstream > end:
            answer = Translated(end, How.BEYOND)
        return inside_log(answer, self._target_starts.get(place, 0))

    def _turns(self, place: TopicPartition) -> Turns:
        opposite_known = self._inverse.translator.progress.get(self._there(place))
        is_void = self._inverse.translator.why_not(self._there(place)) is not None
        return Turns.of(
            turn_begins(self.progress.get(place)),
            [] if is_void else [(there, here) for here, there in turn_begins(opposite_known)],
            begins_stopped=self._begins_stopped,
        )

    def close(self) -> None:
        """Close all connections."""
        super().close()
        self._inverse.close()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the source's log; `mine` says that the flow copied it, else that the opposite flow appended it.

    `target` is the target's offset where the stretch begins, None if it begins before every turn; `target_end` that
    where the next one begins, None for the last.
    """

    mine: bool
    target: int | None = None
    target_end: int | None = None

    def capped(self, answer: Translated | Unknown) -> Translated | Unknown:
        """Keep an answer within the stretch."""
        if not isinstance(answer, Translated) or self.target_end is None or answer.downstream <= self.target_end:
            return answer
        return replace(answer, downstream=self.target_end)


@dataclass(frozen=True, slots=True)
class Turns:
    """Where the turns of both flows began in one partition, in their order: (mine, on the source, on the target)."""

    begins: tuple[tuple[bool, int, int], ...]
    first_is_mine: bool

    @classmethod
    def of(cls, mine: Sequence[tuple[int, int]], theirs: Sequence[tuple[int, int]], *, begins_stopped: bool) -> Turns:
        """Merge the begins of both flows, each in its order; turns at the same offsets alternate.

        With `begins_stopped` the opposite flow had the first turn, which is in neither list.
        """
        left, right = list(mine), list(theirs)
        merged: list[tuple[bool, int, int]] = []
        was_mine = not begins_stopped
        while left or right:
            is_mine = bool(left)
            if left and right:
                is_mine = not was_mine if left[0] == right[0] else left[0] < right[0]
            merged.append((is_mine, *(left if is_mine else right).pop(0)))
            was_mine = is_mine
        return cls(tuple(merged), not begins_stopped)

    def at(self, offset: int) -> Stretch:
        """The stretch that a source offset is in."""
        place = bisect_right(self.begins, offset, key=lambda one: one[1])
        following = self.begins[place][2] if place < len(self.begins) else None
        if not place:
            return Stretch(self.first_is_mine, None, following)
        mine, _, there = self.begins[place - 1]
        return Stretch(mine, there, following)


def turn_begins(known: Known | None) -> list[tuple[int, int]]:
    """Return where the turns of a flow began, on its source and on its target.

    Those of an earlier source topic are void, and those that a later one contradicts.
    """
    if known is None:
        return []
    current = copied_id(known)
    begins: list[tuple[int, int]] = []
    for _, one in sorted(known.announced.items()):
        if one.kind not in (EpochKind.RESET, EpochKind.TURN) or one.topic_id not in (None, current):
            continue
        while begins and (one.start < begins[-1][0] or one.downstream < begins[-1][1]):
            begins.pop()
        begins.append((one.start, one.downstream))
    return begins
