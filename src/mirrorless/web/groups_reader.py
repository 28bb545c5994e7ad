"""Forecasts where each group of a flow would continue on the target, from offset syncs and without reading records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.groups import list_groups
from mirrorless.filters import group_filter_for
from mirrorless.offsets.group_positions import GroupPositions
from mirrorless.offsets.translation import Translated
from mirrorless.web.reader import RepeatingReader
from mirrorless.web.snapshot import GroupRow, PositionRow

if TYPE_CHECKING:
    from mirrorless.offsets.group_positions import GroupPosition
    from mirrorless.settings import Flow
    from mirrorless.web.cluster_reader import ClusterReader
    from mirrorless.web.flow_reader import FlowReader

_WALKING_S: Final = 0.2
"""Records between two known pairs of offsets are counted for so long at most; the answers are kept."""
_NO_OFFSET: Final = (
    "no offset in a topic that this flow copies; a group that came from the target has its offsets there"
)


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
        self._reading: GroupPositions | None = None
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
        if self._reading is None:
            self._reading = GroupPositions(self.flow, source=source, target=target)
        reading = self._reading
        found = reading.read(states, deadline=time.monotonic() + _WALKING_S, stopping=lambda: self.is_ending)
        if self.is_ending:
            return
        self._positions = {group: [self._forecast(one) for one in some] for group, some in found.items()}
        self._rows = tuple(
            _row(self.flow.name, group, state, self._positions.get(group, []), reading.unread.get(group))
            for group, state in states.items()
        )

    def close(self) -> None:
        """Close the connections."""
        if self._reading is not None:
            self._reading.close()

    def _forecast(self, one: GroupPosition) -> PositionRow:
        answer = one.answer
        return PositionRow(
            topic=one.place[0],
            remote_topic=one.remote[0],
            partition=one.place[1],
            source_offset=one.source.offset,
            source_lag=self._lag_of(one.place, one.source.offset),
            target_offset=answer.downstream if isinstance(answer, Translated) else None,
            continues_at=one.continues.offset,
            read_again=one.continues.read_again,
            skipped=one.continues.skipped,
            how=str(answer.how) if isinstance(answer, Translated) else answer.reason,
        )


def _row(flow: str, group: str, state: str, positions: list[PositionRow], error: str | None) -> GroupRow:
    unread = error is not None and not positions
    lags = [one.source_lag for one in positions]
    again = [one.read_again for one in positions]
    return GroupRow(
        flow=flow,
        group=group,
        state=state,
        partitions=len(positions),
        lag_records=None if unread else _sum(lags),
        read_again=None if unread else _sum(again),
        skipped=None if unread else sum(one.skipped for one in positions),
        untranslated=sum(one.target_offset is None for one in positions),
        why=next((one.how for one in positions if one.target_offset is None), "" if positions else _NO_OFFSET),
        error=error,
    )


def _sum(numbers: list[int | None]) -> int | None:
    return None if None in numbers else sum(one for one in numbers if one is not None)
