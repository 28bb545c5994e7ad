"""What uses the clusters besides this program: writers that are refused by a fence, and a group that reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.simulation.administration import Group
from tests.simulation.truth import value_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.administration import AdministeredCluster
    from tests.simulation.world import World

_EVERY_S = 0.25
_KEY = b"of an application"
"""With less than some ten bytes a record passes the fence `config`."""


class Writer:
    """Writes numbered records, in its own partition, to the cluster that the switch names.

    It reads the switch again when it is refused, or after `stays_s`. `acknowledged` has the cluster of each number, by
    time. A producer of an application learns what became of each record: of its requests none is lost.
    """

    def __init__(self, world: World, switch: Path, topic: str, partition: int, *, stays_s: float) -> None:
        self.world = world
        self.stopped = False
        self.acknowledged: dict[int, tuple[str, float]] = {}
        self.refused: Counter[str] = Counter()
        self._switch = switch
        self._place = topic, partition
        self._stays_s = stays_s
        self._number = partition * 1_000_000
        self._alias = ""
        self._looked = -1e9
        world.later(0.0, None, self._write)

    def _write(self) -> None:
        if self.stopped:
            return
        world = self.world
        if world.now - self._looked > self._stays_s:
            self._alias, self._looked = live(world, self._switch), world.now
        cluster: AdministeredCluster = world.clusters[self._alias]  # type: ignore[assignment]
        count = world.random.choice((1, 1, 3))
        numbers = range(self._number, self._number + count)
        _, code = cluster.produce(
            self._place,
            [(_KEY, value_of(one)) for one in numbers],
            principal="User:app",
            producer=(1_000 + self._place[1], self._number % 1_000_000),
        )
        if code:
            self.refused[self._alias] += 1
            self._looked = -1e9
        else:
            self._number += count
            for one in numbers:
                self.acknowledged[one] = self._alias, world.now
        world.later(_EVERY_S * (0.5 + world.random.random()), None, self._write)


def live(world: World, switch: Path) -> str:
    """The cluster that a switch names."""
    text = switch.read_text().strip()
    return next(alias for alias, one in world.clusters.items() if one.address == text)  # type: ignore[attr-defined]


class Reader:
    """A group with one member, which reads on the cluster that the switch names; `seen` counts what it has read.

    It joins where the switch leads, after it has left the other cluster. Without a committed offset it begins at the
    log's start. `moves` has an entry for each cluster it came to: the alias, and where each partition began.
    """

    def __init__(self, world: World, switch: Path, group: str, topics: tuple[str, ...]) -> None:
        self.world = world
        self.stopped = False
        self.group = group
        self.seen: Counter[int] = Counter()
        self.repeated: Counter[str] = Counter()
        self._topics = topics
        self._switch = switch
        self._alias = ""
        self._at: dict[tuple[str, int], int] = {}
        world.later(0.1, None, self._read)

    def _read(self) -> None:
        if self.stopped:
            return
        world = self.world
        alias = live(world, self._switch)
        if alias != self._alias:
            self._leave()
            self._join(alias)
        elif self._alias:
            self._take()
        world.later(_EVERY_S * (0.5 + world.random.random()), None, self._read)

    def _cluster(self, alias: str) -> AdministeredCluster:
        return self.world.clusters[alias]  # type: ignore[return-value]

    def _leave(self) -> None:
        if self._alias and self._cluster(self._alias).nodes:
            cluster = self._cluster(self._alias)
            cluster.commit(self.group, self._offsets(), member="m")
            cluster.groups[self.group].members.discard("m")
        elif self._alias:
            # Its session ends while the cluster is down.
            self._cluster(self._alias).groups[self.group].members.discard("m")
        self._alias, self._at = "", {}

    def _join(self, alias: str) -> None:
        cluster = self._cluster(alias)
        if not cluster.nodes:
            return
        group = cluster.groups.setdefault(self.group, Group())
        group.members.add("m")
        self._alias = alias
        self._at = {place: offset for place, (offset, _) in group.offsets.items()}

    def _offsets(self) -> dict[tuple[str, int], tuple[int, str]]:
        return {place: (offset, "") for place, offset in self._at.items()}

    def _take(self) -> None:
        cluster = self._cluster(self._alias)
        if not cluster.nodes:
            return
        for topic in self._topics:
            if topic not in cluster.topics:
                continue
            for number in range(len(cluster.topics[topic].partitions)):
                place = topic, number
                log = cluster.log(*place)
                at = self._at.get(place, log.start)
                if not log.start <= at <= log.end:
                    at = log.start
                for one in cluster.records(place, since=at, below=log.stable):
                    value = int.from_bytes(one.value or b"")
                    self.seen[value] += 1
                    if self.seen[value] > 1:
                        self.repeated[self._alias] += 1
                self._at[place] = max(at, log.stable)
        if self.world.random.random() < 0.6:
            cluster.commit(self.group, self._offsets(), member="m")
