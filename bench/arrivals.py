"""When records arrive in each remote partition of a load, and how old they are then."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.faults.load import PARTITIONS, PLAIN

if TYPE_CHECKING:
    from tests.support.world import World

HEARTBEATS: Final = "heartbeats"


class Arrivals(threading.Thread):
    """Reads all remote partitions; notes when records arrive, and how old the youngest is where timestamps are true."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
        self._client = Consumer(
            {
                "bootstrap.servers": world.target.bootstrap_servers,
                "group.id": "arrivals",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 20,
                "log_level": 0,
            }
        )
        self.places = [(world.remote(topic), number) for topic, count in PARTITIONS.items() for number in range(count)]
        self._plain = world.remote(PLAIN)
        wanted = [*self.places, (HEARTBEATS, 0)]
        self._client.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in wanted])

    def run(self) -> None:
        """Read until `end`."""
        while not self._over.is_set():
            youngest: dict[tuple[str, int], float] = {}
            for message in self._client.consume(2_000, timeout=0.05):
                if message.error() is None:
                    place = str(message.topic()), message.partition() or 0
                    age = time.time() - message.timestamp()[1] / 1000
                    youngest[place] = min(age, youngest.get(place, age))
            now = time.monotonic()
            with self._lock:
                for place, age in youngest.items():
                    self._seen[place].append((now, age))
        self._client.close()

    def end(self) -> None:
        """Stop reading."""
        self._over.set()
        self.join()

    def since(self, at: float, place: tuple[str, int]) -> list[tuple[float, float]]:
        """When (monotonic seconds) something arrived since then, and the age in seconds of the youngest."""
        with self._lock:
            return [one for one in self._seen[place] if one[0] > at]

    def first(self, at: float, place: tuple[str, int]) -> float | None:
        """Seconds until the first record since then; None if there is none yet."""
        seen = self.since(at, place)
        return seen[0][0] - at if seen else None

    def normal(self, at: float, age_s: float) -> float | None:
        """Seconds until every partition got a record that is not older than that; None if one did not yet."""
        firsts = []
        for place in self.dated:
            found = next((when for when, age in self.since(at, place) if age <= age_s), None)
            if found is None:
                return None
            firsts.append(found - at)
        return max(firsts)

    def longest_pause(self, at: float, place: tuple[str, int]) -> float:
        """The longest time without a record since then, in seconds."""
        times = [at, *(when for when, _ in self.since(at, place)), time.monotonic()]
        return max(after - before for before, after in itertools.pairwise(times))

    @property
    def dated(self) -> list[tuple[str, int]]:
        """The partitions whose records have the time at which they were written: those with an even number."""
        return [(topic, number) for topic, number in self.places if topic != self._plain or number % 2 == 0]
