"""Schedules in which groups are followed: no offset that the program commits is ahead of what was copied and read."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from mirrorless.errors import MirrorlessError
from mirrorless.group_sync.follower import GroupFollower
from mirrorless.offsets.other_sources import OtherSources
from tests.simulation.operated import operated
from tests.simulation.operating import TOPIC, Operating, setup_of
from tests.simulation.world import Violation, clock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition

_FLOW = "A->B"
_PAUSE_S = 5.0


class Following(Operating):
    """One flow whose groups are followed by `GroupFollower`, beside copiers, discovery and faults; no operations."""

    def __init__(self, seed: int, *, without: Collection[int] = ()) -> None:
        setup, faults = setup_of(seed)
        setup = replace(setup, turns=False, identical=False, copies=True, checkpoints=True, reads=True, steps=())
        super().__init__(seed, setup=setup, without=without)
        self.faults = faults
        self.committed = 0
        self._most: dict[TopicPartition, int] = {}
        source, target = self.clusters["A"], self.clusters["B"]
        commit_there, commit_here = target.commit, source.commit

        def commit(name: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, member: str = "") -> int:
            """As of the target's cluster; the program commits without being a member."""
            code = commit_there(name, offsets, member=member)
            if not code and not member:
                self._check(offsets)
            return code

        def commit_on_source(name: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, member: str = "") -> int:
            """As of the source's cluster; remembers how far the group has ever read."""
            code = commit_here(name, offsets, member=member)
            if not code:
                for place, (offset, _) in offsets.items():
                    self._most[place] = max(offset, self._most.get(place, 0))
            return code

        target.commit, source.commit = commit, commit_on_source  # type: ignore[method-assign]

    def _properties(self) -> str:
        return super()._properties() + "sync.group.offsets.enabled=true\n"

    def _prepare(self) -> None:
        super()._prepare()
        self._background("groups", self._follows)

    def _follows(self) -> None:
        flow = self.settings.flow(_FLOW)
        while True:
            follower = None
            try:
                follower = GroupFollower(flow)
                follower.begin()
                while True:
                    self.committed += follower.step().written
            except MirrorlessError as error:
                self.world.note(f"groups: {error}")
            finally:
                if follower is not None:
                    follower.close()
            clock.sleep(_PAUSE_S)

    def _check(self, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Raise `Violation` for an offset after the copied records, or after one that the group has not read."""
        source, target = self.clusters["A"], self.clusters["B"]
        for place, (offset, _) in offsets.items():
            end = target.log(*place).end
            if offset > end:
                raise Violation(f"{place} is committed at {offset} on the target, which ends at {end}")
            home = (place[0].removeprefix("A."), place[1])
            if home[0] != TOPIC:
                continue
            read = {one.value for one in source.records(home, since=0, below=self._most.get(home, 0))}
            before = [one.value for one in target.records(place, since=0, below=offset)]
            unread = [one for one in before if one not in read]
            if unread:
                raise Violation(f"{place} is committed at {offset} on the target: {len(unread)} records are not read")


def main() -> None:
    """Run schedules in a process of their own: other threads must not see the simulated clock. Prints the offsets.

    With `--one-too-far` every offset is one too far, so that the first schedule has to fail.
    """
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--schedules", type=int, default=3)
    parser.add_argument("--one-too-far", action="store_true")
    given = parser.parse_args()
    if given.one_too_far:
        OtherSources.earliest = _one_too_far  # type: ignore[assignment, method-assign]
    followed = 0
    with operated():
        for seed in range(given.schedules):
            schedule = Following(seed)
            clock.world = schedule.world
            schedule.run()
            followed += schedule.committed
    print(followed)  # noqa: T201 -- its result


def _one_too_far(_self: OtherSources, _group: str, _place: TopicPartition, downstream: int) -> int:
    return downstream + 1


if __name__ == "__main__":
    main()
