"""Polls topics like Lambda's poller of an MSK trigger: batches of records, as events for a function."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters import outages
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.consumers import reader
from mirrorless.errors import MirrorlessError
from mirrorless.local.events import kafka_event

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from confluent_kafka import Consumer, Message

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.local.wiring import MskTrigger

_WAIT_S: Final = 0.25
_LOOK_EVERY_S: Final = 2.0
_LOOK_AGAIN_S: Final = 60.0
_TIMEOUT_S: Final = 10.0
_LARGEST_BYTES: Final = 4 << 20
"""Size of keys and values: an event may be 6 MB, and base64 makes four bytes of three."""


class MskPoller:
    """Polls the topics of one trigger, begins at their end, and hands over events one after the other.

    It is in no consumer group: it begins at the end (LATEST) like the trigger and so has no offsets to commit, and a
    flow's user needs no right on groups of the cluster for it. A topic that is created later is read whole.
    A record is handed over once; the function reports the result.
    """

    def __init__(
        self,
        trigger: MskTrigger,
        hand: Callable[[Mapping[str, Any]], threading.Event],
        *,
        tell: Callable[[str], None],
        ended: Callable[[], bool],
    ) -> None:
        self.topics = trigger.topics
        self._trigger = trigger
        self._cluster = trigger.cluster
        self._hand = hand
        self._tell = tell
        self._told: set[str] = set()
        self._ended = ended
        self._next: dict[TopicPartition, int] = {}
        self._looked = self._is_assigned = False
        self._look_at = 0.0
        self._thread = threading.Thread(target=self._run, name=f"trigger of {trigger.function}", daemon=True)

    @property
    def is_placed(self) -> bool:
        """Whether records that are written from now on are handed over."""
        return bool(self._next)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self, *, until: float) -> None:
        """Wait for the end until the monotonic time `until`."""
        if self._thread.is_alive():
            self._thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._ended():
            if outages.is_away(self._cluster.alias):
                time.sleep(_LOOK_EVERY_S)
                continue
            with suppress(MirrorlessError):  # reported by the functions, which connect to the cluster too
                self._poll()

    def _poll(self) -> None:
        """Poll until the cluster is away, or the end; continues where it was."""
        consumer = reader(self._cluster, enable_partition_eof=False)
        self._is_assigned = False
        self._look_at = 0.0
        try:
            while not self._ended() and not outages.is_away(self._cluster.alias):
                self._look(consumer)
                if batch := self._batch(consumer):
                    self._deliver(batch)
        finally:
            consumer.close()

    def _batch(self, consumer: Consumer) -> list[Message]:
        """Collect records from the first one on, for the batching window or until an event is full."""
        batch: list[Message] = []
        size, until = 0, 0.0
        while not self._ended():
            found = consumer.consume(self._trigger.batch_size - len(batch), timeout=_WAIT_S) if self._next else []
            good = []
            for message in found:
                if (error := message.error()) is None:
                    good.append(message)
                else:
                    self._refused(error, str(message.topic()))
            if not good and len(found) < self._trigger.batch_size:
                time.sleep(_WAIT_S if found or not self._next else 0)
            if good and not batch:
                until = time.monotonic() + self._trigger.window_s
            batch += good
            self._next |= {(str(one.topic()), one.partition() or 0): (one.offset() or 0) + 1 for one in good}
            size += sum(len(message.key() or b"") + len(message.value() or b"") for message in good)
            full = len(batch) >= self._trigger.batch_size or size >= _LARGEST_BYTES
            if not batch or full or time.monotonic() >= until:
                return batch
        return []

    def _deliver(self, batch: list[Message]) -> None:
        handled = self._hand(kafka_event(self._trigger.bootstrap_servers, batch))
        while not handled.wait(_WAIT_S) and not self._ended():
            pass

    def _look(self, consumer: Consumer) -> None:
        """Find new partitions at intervals; an unavailable cluster is reported by the copy."""
        if time.monotonic() < self._look_at:
            return
        try:
            places = set()
            for topic in self._trigger.topics:
                about = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
                places |= {(topic, partition) for partition in about.partitions}
                if about.error is not None:
                    self._refused(about.error, topic)
            begin = {}
            for place in places - self._next.keys():
                low, high = consumer.get_watermark_offsets(ConfluentTopicPartition(*place), timeout=_TIMEOUT_S)
                begin[place] = low if self._looked else high
            if begin or (self._next and not self._is_assigned):
                self._next |= begin
                self._is_assigned = True
                consumer.assign(
                    [ConfluentTopicPartition(*place, offset) for place, offset in sorted(self._next.items())]
                )
            self._looked = True
        except KafkaException as error:
            self._refused(error.args[0], ", ".join(self._trigger.topics))
        self._look_at = time.monotonic() + (_LOOK_AGAIN_S if self._next else _LOOK_EVERY_S)

    def _refused(self, error: KafkaError, topic: str) -> None:
        """Report once which right is missing; other errors are temporary, or reported elsewhere."""
        outages.noticed(self._cluster.alias, error)
        said = grant(error.code(), "READ on it")
        if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED and said and topic not in self._told:
            self._told.add(topic)
            self._tell(f"trigger on {topic}: {error.str()}{said}")
