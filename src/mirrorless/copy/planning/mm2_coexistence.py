"""Detects a MirrorMaker 2 that copies the same flow: both would copy every record, so replication pauses meanwhile.

MirrorMaker 2 writes its progress every minute (`offset.flush.interval.ms`) and when it stops, to this copy's own topic
and keys. In dedicated mode its nodes are members of a group while they run, whether or not they copy this flow.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.mirrormaker2 import group_of, nodes_run
from mirrorless.errors import MirrorMaker2MayRun, MirrorMaker2Runs

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known
    from mirrorless.progress.topic import ProgressTopic
    from mirrorless.settings import Flow

QUIET_S: Final = 150.0
"""A MirrorMaker 2 that has written no progress for more than two intervals counts as stopped."""


class CompetingMirrorMaker2:
    """Detects a MirrorMaker 2 that runs beside a run of a flow's copy.

    Progress from before a partition was first read is ignored, unless a node runs: then MirrorMaker 2 may be
    about to resume it.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._waits_since: dict[TopicPartition, float] = {}
        self._cleared: set[TopicPartition] = set()
        self._met = False

    def read(
        self, progress: ProgressTopic, places: Collection[TopicPartition], known: dict[TopicPartition, Known]
    ) -> tuple[dict[TopicPartition, Known], set[TopicPartition]]:
        """Return the content of the progress topic, for a lease of the source partitions `places`, and waiting ones.

        `known` is that content as `progress` has just read it.

        Waiting partitions were added to an active run, and MirrorMaker 2 may still copy them: see `may_run`.
        Partitions of other flows are ignored: topics may move from one to the other step by step. Raises
        `MirrorMaker2Runs` if it recently copied a partition of this run, `MirrorMaker2MayRun` if one waits where the
        run begins, and `ClusterUnavailable` if the target does not answer.
        """
        now = time.monotonic()
        recent = {place for place in places if now - progress.others.get(place, -QUIET_S) < QUIET_S}
        theirs = [place for place in places if place not in self._cleared and _is_theirs(known.get(place))]
        self._waits_since = {place: self._waits_since.get(place, now) for place in theirs}
        waiting = {place for place, since in self._waits_since.items() if now - since < QUIET_S}
        waiting |= recent - self._cleared
        lately = recent & self._cleared if self._cleared else recent
        if recent or waiting:
            if self._are_there() or (recent and not self._met):
                if lately:
                    raise MirrorMaker2Runs(
                        f"MirrorMaker 2 copies this flow too, {_named(lately)} among others: "
                        + _fix("replication pauses"),
                        cluster=self._flow.target.alias,
                    )
                if not self._cleared:
                    raise self.may_run(waiting)
            else:
                # A node writes its last progress before it leaves its group, which may be later than what was read.
                known, waiting = progress.read(), set()
                progress.others.clear()
        self._cleared = set(places) - waiting
        self._met = self._met and bool(waiting)
        return known, waiting

    def may_run(self, waiting: Collection[TopicPartition]) -> MirrorMaker2MayRun:
        """The error of waiting partitions."""
        runs = f"runs (group {group_of(self._flow)} has members), and" if self._met else "may run, since it"
        return MirrorMaker2MayRun(
            f"MirrorMaker 2 {runs} was the last to copy {_named(waiting)} among others: "
            + _fix("these partitions wait"),
            cluster=self._flow.target.alias,
        )

    def _are_there(self) -> bool:
        """Whether nodes run; known nodes count until the target reports otherwise.

        For a MirrorMaker 2 on Connect, or without a right to the group, there are no known nodes.
        """
        runs = nodes_run(self._flow)
        self._met = self._met or bool(runs)
        return self._met if runs is None else runs


def _fix(what_rests: str) -> str:
    return (
        f"stop MirrorMaker 2, otherwise both copy every record; {what_rests} until its nodes have stopped, or have "
        f"written no progress for {QUIET_S:.0f} s"
    )


def _is_theirs(known: Known | None) -> bool:
    """Whether it was the last to copy; not if this program resumed after it and it wrote no progress since."""
    if known is None or known.progress is None or known.progress.sequence is not None:
        return False
    return not any(one.goes_on_from(known.progress.last_offset + 1) for one in known.announced.values())


def _named(places: Collection[TopicPartition]) -> str:
    topic, partition = min(places)
    return f"{topic}-{partition}"
