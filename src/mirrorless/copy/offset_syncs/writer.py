"""Writes offset syncs beside the copy, which it never holds up."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.connection_errors import unwritten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka import Message

    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.formats import OffsetSync

_IN_FLIGHT: Final = 100
_GIVE_UP_MS: Final = 10_000
_PAUSE_S: Final = 0.5

_Place = tuple[str, int]


class SyncWriter:
    """A producer for one flow's offset syncs. Call `write` with what a schedule returns, `poll` every now and then.

    Syncs of one partition arrive in order: one is under way, the others wait; of those with the same key only the
    newest is kept, so what waits stays small however long the topic is away. A write that failed is tried again.
    `failures` counts those; `error` is the latest one's reason, None while all is well.
    """

    def __init__(self, topic: InternalTopic, *, in_flight: int = _IN_FLIGHT) -> None:
        self._topic = topic.name
        self._alias = topic.cluster.alias
        self._most_in_flight = in_flight
        self._waiting: dict[_Place, deque[OffsetSync]] = {}
        self._ready: dict[_Place, None] = {}  # of those that wait, the ones of which none is under way
        self._under_way: set[_Place] = set()
        self._not_before = 0.0
        self.written = 0
        self.failures = 0
        self.error: str | None = None
        settings = for_confluent(
            topic.cluster,
            role="producer",
            extra={"acks": "all", "linger.ms": 5, "message.timeout.ms": _GIVE_UP_MS, "logger": LIBRDKAFKA},
        )
        self._producer = Producer(settings)

    @property
    def unwritten(self) -> int:
        """Syncs that the topic has not acknowledged."""
        return len(self._under_way) + sum(map(len, self._waiting.values()))

    def write(self, syncs: Iterable[OffsetSync]) -> None:
        """Take syncs, those of one partition in order."""
        for sync in syncs:
            place = sync.topic, sync.partition
            waiting = self._waiting.setdefault(place, deque())
            for older in [one for one in waiting if one.block == sync.block]:
                waiting.remove(older)
            waiting.append(sync)
            self._line_up(place)
        self.poll()

    def poll(self) -> None:
        """Hear of what was written and send what may be sent; returns at once."""
        self._producer.poll(0)
        if time.monotonic() < self._not_before:
            return
        for place in list(islice(self._ready, self._most_in_flight - len(self._under_way))):
            del self._ready[place]
            self._send(place)

    def flush(self, seconds: float) -> bool:
        """Wait until everything was acknowledged, at most so long; says whether it was."""
        until = time.monotonic() + seconds
        while self.unwritten and time.monotonic() < until:
            self._producer.poll(0.01)
            self.poll()
        return not self.unwritten

    def _line_up(self, place: _Place) -> None:
        if place in self._waiting and place not in self._under_way:
            self._ready[place] = None

    def _send(self, place: _Place) -> None:
        waiting = self._waiting[place]
        sync = waiting.popleft()
        if not waiting:
            del self._waiting[place]
        try:
            self._producer.produce(
                self._topic,
                key=sync.key(),
                value=sync.value(),
                partition=0,
                on_delivery=partial(self._delivered, place, sync),
            )
        except BufferError as error:
            self._again(place, sync, str(error))
        except KafkaException as error:
            self._again(place, sync, unwritten(error.args[0]))
        else:
            self._under_way.add(place)

    def _delivered(self, place: _Place, sync: OffsetSync, error: KafkaError | None, _message: Message) -> None:
        self._under_way.discard(place)
        self._line_up(place)
        if error is None:
            self.written += 1
            self.error = None
        else:
            self._again(place, sync, unwritten(error))

    def _again(self, place: _Place, sync: OffsetSync, reason: str) -> None:
        """Put a sync back in front, unless a newer one with its key waits."""
        self.failures += 1
        self.error = f"cluster {self._alias}: an offset sync was not written to {self._topic}: {reason}"
        self._not_before = time.monotonic() + _PAUSE_S
        waiting = self._waiting.setdefault(place, deque())
        if all(newer.block != sync.block for newer in waiting):
            waiting.appendleft(sync)
        self._line_up(place)
