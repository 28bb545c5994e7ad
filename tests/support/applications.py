"""Applications of a pair of clusters: a writer and consumer groups, which follow a switch file."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from confluent_kafka import Message

_WINDOW_S = 0.05
_GIVES_UP_MS = 3_000


@dataclass(frozen=True)
class Clients:
    """How applications connect: their addresses instead of those in the switch file, and librdkafka's settings.

    `names` are the topics that have another name on one of the clusters, by the cluster as the switch file names it.
    """

    addresses: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def named(self, switch: Path, topic: str) -> str:
        """The name of a topic on the cluster that the switch file names."""
        return self.names.get(switch.read_text().strip(), {}).get(topic, topic)

    def of(self, switch: Path) -> dict[str, str]:
        """Settings for the cluster that the switch file names."""
        named = switch.read_text().strip()
        return {"bootstrap.servers": self.addresses.get(named, named), "log_level": "0", **self.settings}


class Writer(threading.Thread):
    """Writes `0, 1, 2 …` to each partition of a topic of the cluster that the switch file names.

    What was not acknowledged is kept and sent again, in its order, as applications have to when a fence refuses a
    record. `blocked_s` are the durations in which nothing was accepted.
    """

    def __init__(self, switch: Path, topic: str, partitions: int, rate: int, clients: Clients | None = None) -> None:
        super().__init__(daemon=True, name="writer")
        self._switch, self._topic, self._clients = switch, topic, clients or Clients()
        self._each = max(1, round(rate * _WINDOW_S / partitions))
        self.written = [0] * partitions
        self.blocked_s: list[float] = []
        self.errors: set[str] = set()
        self._over = threading.Event()
        self._paused = threading.Event()

    def pause(self) -> None:
        """Write nothing until `resume`, as where writers are stopped by their owners."""
        self._paused.set()
        time.sleep(_WINDOW_S + 0.2)

    def resume(self) -> None:
        """Write again."""
        self._paused.clear()

    def run(self) -> None:
        """Write until `stop`."""
        servers: dict[str, str] = {}
        producer: Producer | None = None
        topic = self._topic
        blocked_at: float | None = None
        while not self._over.is_set():
            began = time.monotonic()
            if self._paused.is_set():
                self._over.wait(_WINDOW_S)
                continue
            now = self._clients.of(self._switch)
            if producer is None or now != servers:
                servers, producer = now, self._producer(now)
                topic = self._clients.named(self._switch, self._topic)
            if self._window(producer, topic):
                if blocked_at is not None:
                    self.blocked_s.append(time.monotonic() - blocked_at)
                    blocked_at = None
            else:
                blocked_at = blocked_at or began
                producer = None  # an idempotent producer that lost a batch begins again
            self._over.wait(max(0.0, _WINDOW_S - (time.monotonic() - began)))

    def stop(self) -> list[int]:
        """End, and return how many records each partition got."""
        self._over.set()
        self.join(60)
        assert not self.is_alive()
        return self.written

    def _producer(self, servers: Mapping[str, str]) -> Producer:
        return Producer(
            {
                "enable.idempotence": True,
                "linger.ms": 1000,
                "message.timeout.ms": _GIVES_UP_MS,
                **servers,
            }
        )

    def _window(self, producer: Producer, topic: str) -> bool:
        """Write a batch to each partition, and count what was acknowledged in its order."""
        acknowledged: dict[int, int] = defaultdict(int)
        failed: set[int] = set()

        def delivered(error: KafkaError | None, message: Message) -> None:
            partition = message.partition() or 0
            if error is not None:
                failed.add(partition)
                self.errors.add(error.name())
            elif partition not in failed:
                acknowledged[partition] += 1

        try:
            for partition, first in enumerate(self.written):
                for number in range(first, first + self._each):
                    producer.produce(
                        *(topic, b"%d" % number, b"%d" % partition), partition=partition, on_delivery=delivered
                    )
            producer.flush(_GIVES_UP_MS / 1000 + 1)
        except KafkaException as error:  # without WRITE on any topic, no producer gets an id (KIP-679)
            self.errors.add(error.args[0].name())
            return False
        for partition, number in acknowledged.items():
            self.written[partition] += number
        return not failed and sum(acknowledged.values()) == self._each * len(self.written)


class GroupReader(threading.Thread):
    """A consumer of a group that reads a topic under its names on both clusters, and commits what it has read."""

    def __init__(self, switch: Path, group: str, topics: Sequence[str], clients: Clients | None = None) -> None:
        super().__init__(daemon=True, name=group)
        self._switch, self._group, self._topics, self._clients = switch, group, list(topics), clients or Clients()
        self.read: dict[int, list[int]] = defaultdict(list)
        self.errors: set[str] = set()
        self._over = threading.Event()

    def run(self) -> None:
        """Read until `stop`, from the cluster that the switch file names."""
        while not self._over.is_set():
            servers = self._clients.of(self._switch)
            consumer = Consumer(
                {
                    "group.id": self._group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "topic.metadata.refresh.interval.ms": 1000,
                    "session.timeout.ms": 6000,
                    **servers,
                }
            )
            consumer.subscribe([self._clients.named(self._switch, topic) for topic in self._topics])
            while not self._over.is_set() and self._clients.of(self._switch) == servers:
                self._take(consumer)
            consumer.close()

    def _take(self, consumer: Consumer) -> None:
        places: dict[tuple[str, int], int] = {}
        for message in consumer.consume(500, timeout=0.1):
            if message.error() is None:
                self.read[int(message.key() or b"0")].append(int(message.value() or b"0"))
                places[message.topic() or "", message.partition() or 0] = (message.offset() or 0) + 1
        if places:
            try:
                consumer.commit(
                    offsets=[TopicPartition(*place, offset) for place, offset in places.items()], asynchronous=False
                )
            except KafkaException as error:  # what was not committed is read again
                self.errors.add(error.args[0].name())

    def wait_for(self, written: Sequence[int], seconds: float = 60) -> None:
        """Wait until so many records of each partition were read."""
        until = time.monotonic() + seconds
        while any(len(self.read[partition]) < number for partition, number in enumerate(written)):
            if time.monotonic() > until:
                found = [len(self.read[partition]) for partition in range(len(written))]
                raise AssertionError(f"{self._group} has read {found} of {list(written)}")
            time.sleep(0.05)

    def wait_for_all(self, written: Sequence[int], seconds: float = 60) -> None:
        """Wait until every record was read, whatever was read again or in another order."""
        until = time.monotonic() + seconds
        while lost := Outcome(self.read, written).lost:
            if time.monotonic() > until:
                raise AssertionError(f"{self._group} has not read {lost} records")
            time.sleep(0.2)

    def stop(self) -> None:
        """Leave the group."""
        self._over.set()
        self.join(60)
        assert not self.is_alive()


class Outcome:
    """What a group has read, against what was written."""

    def __init__(self, read: Mapping[int, Sequence[int]], written: Sequence[int]) -> None:
        self.lost = sum(len(set(range(number)) - set(read.get(one, ()))) for one, number in enumerate(written))
        self.repeated = sum(len(some) - len(set(some)) for some in read.values())
        self.out_of_order = sum(later < earlier for some in read.values() for earlier, later in pairwise(some))

    def __repr__(self) -> str:
        return f"lost {self.lost}, repeated {self.repeated}, out of order {self.out_of_order}"


@contextmanager
def running(writer: Writer, readers: Sequence[GroupReader]) -> Iterator[None]:
    """Start them, and stop what still runs at the end."""
    with ExitStack() as stack:
        threads: list[Writer | GroupReader] = [*readers, writer]
        for thread in threads:
            thread.start()
            stack.callback(thread.stop)
        yield
