"""Records that keep coming while something else is looked at."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tests.support.world import World, producer

if TYPE_CHECKING:
    from collections.abc import Iterator


class Feed:
    """Produces numbered records to the first partitions of a source topic for as long as the context lasts."""

    def __init__(self, world: World, topic: str, per_second: int, *, partitions: int = 4) -> None:
        self._world, self._topic, self._per_second, self._partitions = world, topic, per_second, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._feed)
        self.produced = 0

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _feed(self) -> None:
        client = producer(self._world.source, linger_ms=5)
        while not self._stop.wait(0.02):
            for number in self._next():
                client.produce(self._topic, value=b"%d" % number, partition=number % self._partitions)
            client.poll(0)
        client.flush()

    def _next(self) -> Iterator[int]:
        for _ in range(self._per_second // 50):
            yield self.produced
            self.produced += 1
