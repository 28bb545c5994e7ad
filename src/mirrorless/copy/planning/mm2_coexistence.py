"""Notices a MirrorMaker 2 that copies the same flow: what both copy is there twice, so this copy rests meanwhile.

MirrorMaker 2 writes its progress every minute (`offset.flush.interval.ms`) and when it stops, to this copy's own topic
and keys. In dedicated mode its nodes are members of a group as long as they run, whether or not they copy this flow.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.mirrormaker2 import group_of, nodes_run
from mirrorless.errors import MirrorMaker2MayRun, MirrorMaker2Runs

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.progress.records import Known
    from mirrorless.copy.progress.topic import ProgressTopic
    from mirrorless.settings import Flow

QUIET_S: Final = 150.0
"""A MirrorMaker 2 that has written no progress for twice its minute and some is taken for stopped."""


class CompetingMirrorMaker2:
    """Looks for a MirrorMaker 2 beside one run of a flow's copy.

    What it wrote before a partition was first looked at tells nothing, except where a node of its runs: then it may be
    about to go on with it.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._waits_since: dict[Place, float] = {}
        self._cleared: set[Place] = set()
        self._met = False

    def read(self, progress: ProgressTopic, places: Collection[Place]) -> tuple[dict[Place, Known], set[Place]]:
        """Return what the progress topic says, for a lease of `places`, source partitions, and which of them wait.

        Those came to a run that goes on, and it may still copy them: `may_run` says so. Others' partitions are no
        business of this flow: topics may move from one to the other step by step. Raises `MirrorMaker2Runs` if it
        lately copied one that this run copies, `MirrorMaker2MayRun` if one waits where the run begins, and
        `ClusterUnavailable` if the target does not answer.
        """
        known = progress.read()
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
                        + _fix("this copy rests"),
                        cluster=self._flow.target.alias,
                    )
                if not self._cleared:
                    raise self.may_run(waiting)
            else:
                # A node writes what it has before it leaves its group, which may have been behind what was read.
                known, waiting = progress.read(), set()
                progress.others.clear()
        self._cleared = set(places) - waiting
        self._met = self._met and bool(waiting)
        return known, waiting

    def may_run(self, waiting: Collection[Place]) -> MirrorMaker2MayRun:
        """The error of partitions that wait."""
        runs = f"runs (group {group_of(self._flow)} has members), and" if self._met else "may run, since it"
        return MirrorMaker2MayRun(
            f"MirrorMaker 2 {runs} was the last to copy {_named(waiting)} among others: "
            + _fix("these partitions rest"),
            cluster=self._flow.target.alias,
        )

    def _are_there(self) -> bool:
        """Whether nodes run; those that were met do until the target says otherwise.

        Of a MirrorMaker 2 on Connect, or without a right to the group, none are ever met.
        """
        runs = nodes_run(self._flow)
        self._met = self._met or bool(runs)
        return self._met if runs is None else runs


def _fix(what_rests: str) -> str:
    return (
        f"stop it, both at once copy everything twice; {what_rests} until its nodes are gone, or have written no "
        f"progress for {QUIET_S:.0f} s"
    )


def _is_theirs(known: Known | None) -> bool:
    """Whether it was the last to copy; where this project began behind it, and no record came since, it was not."""
    if known is None or known.progress is None or known.progress.sequence is not None:
        return False
    return not any(one.goes_on_from(known.progress.last_offset + 1) for one in known.announced.values())


def _named(places: Collection[Place]) -> str:
    topic, partition = min(places)
    return f"{topic}-{partition}"
