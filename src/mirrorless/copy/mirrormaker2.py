"""Notices a MirrorMaker 2 that copies the same flow: what both copy is there twice, so this copy rests meanwhile.

MirrorMaker 2 writes its progress every minute (`offset.flush.interval.ms`) and when it stops, to this copy's own topic
and keys. In dedicated mode its nodes are members of a group as long as they run, whether or not they copy this flow.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.mirrormaker2 import group_of, nodes_run
from mirrorless.errors import MirrorMaker2Runs

if TYPE_CHECKING:
    from collections.abc import Collection

    from mirrorless.clusters.topics import Place
    from mirrorless.copy.progress import Known
    from mirrorless.copy.progress_topic import ProgressTopic
    from mirrorless.settings import Flow

QUIET_S: Final = 150.0
"""A MirrorMaker 2 that has written no progress for twice its minute and some is taken for stopped."""
_FIX: Final = (
    "stop it, both at once copy everything twice; this copy rests until its nodes are gone, or have written no "
    f"progress for {QUIET_S:.0f} s"
)


class Rival:
    """Looks for a MirrorMaker 2 beside one run of a flow's copy.

    What it wrote before the run began tells nothing, except where a node of its runs: then it may be about to go on.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._began: float | None = None
        self._alone = False
        self._met = False

    def read(self, progress: ProgressTopic, places: Collection[Place]) -> dict[Place, Known]:
        """Return what the progress topic says, for a lease of `places`, source partitions.

        Raises `MirrorMaker2Runs` if it lately copied one of them. Others' partitions are no business of this flow:
        topics may move from one to the other step by step. Raises `ClusterUnavailable` if the target does not answer.
        """
        known = progress.read()
        now = time.monotonic()
        self._began = self._began or now
        lately = [place for place in places if now - progress.others.get(place, -QUIET_S) < QUIET_S]
        begins = not self._alone and now - self._began < QUIET_S
        taken_over = [place for place in places if _is_theirs(known.get(place))] if begins else []
        if lately:
            if self._are_there() or not self._met:
                self._raise(f"MirrorMaker 2 copies this flow too, {_named(lately)} among others")
            # A node writes what it has before it leaves its group, which may have been behind what was read.
            known = progress.read()
            progress.others.clear()
        elif taken_over:
            if self._are_there():
                what = f"MirrorMaker 2 runs (group {group_of(self._flow)} has members), and was the last to copy "
                self._raise(what + _named(taken_over))
            known = progress.read()  # as above
        self._alone = True
        self._met = False
        return known

    def _are_there(self) -> bool:
        """Whether nodes run; those that were met do until the target says otherwise.

        Of a MirrorMaker 2 on Connect, or without a right to the group, none are ever met.
        """
        runs = nodes_run(self._flow)
        self._met = self._met or bool(runs)
        return self._met if runs is None else runs

    def _raise(self, what: str) -> None:
        raise MirrorMaker2Runs(f"{what}: {_FIX}", cluster=self._flow.target.alias)


def _is_theirs(known: Known | None) -> bool:
    """Whether it was the last to copy; where this project began behind it, and no record came since, it was not."""
    if known is None or known.progress is None or known.progress.sequence is not None:
        return False
    return all(one.start != known.progress.last_offset + 1 for one in known.announced.values())


def _named(places: Collection[Place]) -> str:
    topic, partition = min(places)
    return f"{topic}-{partition}"
