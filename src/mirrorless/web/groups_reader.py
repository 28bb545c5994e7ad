"""Forecasts where each group of a flow would continue on the target, from offset syncs and without reading records."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.groups import GroupOffsets, list_groups
from mirrorless.filters import group_filter_for, topic_filter_for
from mirrorless.offsets.translation import Translated
from mirrorless.offsets.turn_translation import translator_of
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import GroupRow, PositionRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mirrorless.clusters.groups import Committed
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.offsets.translation_service import Answers, Translator
    from mirrorless.settings import Flow
    from mirrorless.web.cluster_reader import ClusterReader
    from mirrorless.web.flow_reader import FlowReader

_WALKING_S: Final = 0.2
"""Records between two known pairs of offsets are counted for so long at most; the answers are kept."""


class GroupsReader(RepeatingReader):
    """The groups of `flow`; `reader` knows the ends of its source partitions."""

    def __init__(
        self,
        flow: Flow,
        *,
        source: ClusterReader,
        target: ClusterReader,
        reader: FlowReader,
        every_s: float,
    ) -> None:
        super().__init__(f"web: groups of {flow.name}", every_s=every_s, after=(reader,))
        self.flow = flow
        self._source, self._target = source, target
        self._lag_of = reader.lag_of
        self._offsets = GroupOffsets(flow.source)
        self._translator: Translator | None = None
        self._rows: tuple[GroupRow, ...] = ()
        self._positions: dict[str, list[PositionRow]] = {}

    @property
    def rows(self) -> tuple[GroupRow, ...]:
        """A row for each group, by name."""
        return self._rows

    def positions(self, group: str) -> list[PositionRow] | None:
        """Return a row for each partition of a group; None if there is no such group."""
        return self._positions.get(group)

    def read(self) -> None:
        """Read the committed offsets and translate them; raises `ClusterError`."""
        source, target = self._source.admin, self._target.admin
        selects = group_filter_for(self.flow).selects
        listed, _ = list_groups(source)
        states = {group: activity.value for group, activity in sorted(listed.items()) if selects(group)}
        committed, errors = self._committed(states)
        if self._translator is None:
            self._translator = translator_of(self.flow, source=source, target=target)
        wanted: dict[TopicPartition, set[int]] = defaultdict(set)
        for offsets in committed.values():
            for place, one in offsets.items():
                wanted[place].add(one.offset)
        if not self._translator.refresh(wanted, stopping=lambda: self.is_ending):
            return
        answers = self._translator.translate(wanted, deadline=time.monotonic() + _WALKING_S)
        self._positions = {group: self._forecast(offsets, answers) for group, offsets in committed.items()}
        self._rows = tuple(
            _row(self.flow.name, group, state, self._positions.get(group, []), errors.get(group))
            for group, state in states.items()
        )

    def close(self) -> None:
        """Close the connections."""
        self._offsets.close()
        if self._translator is not None:
            self._translator.close()

    def _committed(
        self, groups: Mapping[str, str]
    ) -> tuple[dict[str, dict[TopicPartition, Committed]], dict[str, str]]:
        selects = topic_filter_for(self.flow).selects
        found: dict[str, dict[TopicPartition, Committed]] = {}
        errors: dict[str, str] = {}
        for group, offsets in self._offsets.committed(groups):
            if isinstance(offsets, str):
                errors[group] = offsets
            else:
                found[group] = {place: one for place, one in offsets.items() if selects(place[0])}
        return found, errors

    def _forecast(self, offsets: Mapping[TopicPartition, Committed], answers: Answers) -> list[PositionRow]:
        assert self._translator is not None
        rows: list[PositionRow] = []
        for place, one in sorted(offsets.items()):
            answer = answers[place][one.offset]
            known = answer if isinstance(answer, Translated) else None
            rows.append(
                PositionRow(
                    topic=place[0],
                    remote_topic=self._translator.remote(place[0]),
                    partition=place[1],
                    source_offset=one.offset,
                    source_lag=self._lag_of(place, one.offset),
                    target_offset=None if known is None else known.downstream,
                    read_again=None if known is None else self._translator.read_again(place, one.offset, known),
                    how=str(answer.how) if isinstance(answer, Translated) else answer.reason,
                )
            )
        return rows


def _row(flow: str, group: str, state: str, positions: list[PositionRow], error: str | None) -> GroupRow:
    lags = [one.source_lag for one in positions]
    return GroupRow(
        flow=flow,
        group=group,
        state=state,
        partitions=len(positions),
        lag_records=None if None in lags else sum(one for one in lags if one is not None),
        read_again=sum(one.read_again or 0 for one in positions),
        untranslated=sum(one.target_offset is None for one in positions),
        error=error,
    )
