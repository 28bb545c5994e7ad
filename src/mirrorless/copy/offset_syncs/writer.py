"""Writes offset syncs beside the copy, without ever delaying it."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.producer import TopicProducer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import OffsetSync

_IN_FLIGHT: Final = 100
_GIVE_UP_S: Final = 10.0
_PAUSE_S: Final = 0.5


class SyncWriter:
    """A producer for one flow's offset syncs. Call `write` with what a schedule returns, `poll` every now and then.

    Syncs of one partition arrive in order: one is in flight, the others wait; of those with the same key only the
    newest is kept, so few wait however long the topic is unavailable. A failed write is retried.
    `failures` counts those; `error` is the latest one's reason, None if there is none.
    """

    def __init__(self, topic: InternalTopic, *, in_flight: int = _IN_FLIGHT) -> None:
        self._topic = topic.name
        self._most_in_flight = in_flight
        self._waiting: dict[TopicPartition, deque[OffsetSync]] = {}
        self._ready: dict[TopicPartition, None] = {}  # waiting partitions without a sync in flight
        self._under_way: set[TopicPartition] = set()
        self._not_before = 0.0
        self.written = 0
        self.failures = 0
        self.error: str | None = None
        self._producer = TopicProducer(topic.cluster, gives_up_after_s=_GIVE_UP_S, linger_ms=5)

    @property
    def unwritten(self) -> int:
        """Syncs that the topic has not acknowledged."""
        return len(self._under_way) + sum(map(len, self._waiting.values()))

    def write(self, syncs: Iterable[OffsetSync]) -> None:
        """Add syncs, those of one partition in order."""
        for sync in syncs:
            place = sync.topic, sync.partition
            waiting = self._waiting.setdefault(place, deque())
            for older in [one for one in waiting if one.block == sync.block]:
                waiting.remove(older)
            waiting.append(sync)
            self._line_up(place)
        self.poll()

    def poll(self) -> None:
        """Process acknowledgements and send what may be sent; returns at once."""
        self._producer.poll()
        if time.monotonic() < self._not_before:
            return
        for place in list(islice(self._ready, self._most_in_flight - len(self._under_way))):
            del self._ready[place]
            self._send(place)

    def flush(self, seconds: float) -> bool:
        """Wait until everything was acknowledged, at most so long; returns whether it was."""
        until = time.monotonic() + seconds
        while self.unwritten and time.monotonic() < until:
            self._producer.poll(0.01)
            self.poll()
        return not self.unwritten

    def _line_up(self, place: TopicPartition) -> None:
        if place in self._waiting and place not in self._under_way:
            self._ready[place] = None

    def _send(self, place: TopicPartition) -> None:
        waiting = self._waiting[place]
        sync = waiting.popleft()
        if not waiting:
            del self._waiting[place]
        refused = self._producer.send(
            self._topic,
            key=sync.key(),
            value=sync.value(),
            partition=0,
            delivered=partial(self._delivered, place, sync),
        )
        if refused is None:
            self._under_way.add(place)
        else:
            self._again(place, sync, refused)

    def _delivered(self, place: TopicPartition, sync: OffsetSync, reason: str | None, _message: Message) -> None:
        self._under_way.discard(place)
        self._line_up(place)
        if reason is None:
            self.written += 1
            self.error = None
        else:
            self._again(place, sync, reason)

    def _again(self, place: TopicPartition, sync: OffsetSync, reason: str) -> None:
        """Put a sync back in front, unless a newer one with its key waits."""
        self.failures += 1
        self.error = f"cluster {self._producer.alias}: writing an offset sync to {self._topic} failed: {reason}"
        self._not_before = time.monotonic() + _PAUSE_S
        waiting = self._waiting.setdefault(place, deque())
        if all(newer.block != sync.block for newer in waiting):
            waiting.appendleft(sync)
        self._line_up(place)
