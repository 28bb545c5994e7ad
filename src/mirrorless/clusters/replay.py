"""Reads a whole compacted topic: once from the beginning, then only new records."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from mirrorless.clusters.admin import Refusal
from mirrorless.clusters.connection_errors import grant
from mirrorless.clusters.consumers import reader, waiting
from mirrorless.clusters.topics import Described, describe, last_stable_offsets
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mirrorless.clusters.admin import Admin
    from mirrorless.settings import Cluster

_SILENCE_S: Final = 60.0
_LEADERLESS_S: Final = 15.0
_PAUSE_S: Final = 0.5
_SURE_S: Final = 1.0
_WAIT_S: Final = 0.2
_A_TIME: Final = 10_000
_BUFFER_KB: Final = 16_384
_FULL_MS: Final = 10
"""How long fetching pauses when the buffer is full; the library's default of one second is longer than emptying it."""


class ReplayedRecord(NamedTuple):
    """A record, at `offset` of its partition."""

    key: bytes | None
    value: bytes | None
    offset: int = 0


class Replay:
    """All partitions of `topic` on `cluster`, whose client is `admin`.

    A topic that does not exist, or is not visible, counts as empty; with `must_exist` it is an error. `complete` says
    whether the last read came to the end.
    """

    def __init__(self, *, topic: str, cluster: Cluster, admin: Admin, must_exist: bool = False) -> None:
        self.topic = topic
        self._cluster = cluster
        self._admin = admin
        self._must_exist = must_exist
        self.complete = False
        self._consumer: Consumer | None = None
        self._found: Described | Refusal | None = None
        self._read_to: dict[int, int] = {}

    @property
    def missing(self) -> bool:
        """Whether the topic did not exist when it was last read."""
        return isinstance(self._found, Refusal) and self.refused is None

    @property
    def topic_id(self) -> str | None:
        """The topic's id when it was last read (KIP-516); None if it did not exist, or brokers have no ids."""
        return self._found.topic_id if isinstance(self._found, Described) else None

    @property
    def refused(self) -> str | None:
        """Why the topic was not visible when it was last read; None if it exists, or does not."""
        found = self._found
        if found is None or isinstance(found, Described) or not grant(found.code, "READ on it"):
            return None
        return self._absence(found)

    def read(
        self, forget: Callable[[], None] = lambda: None, *, stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[ReplayedRecord]:
        """Yield new records up to the topic's current ends; raises `ClusterUnavailable`.

        Once `stopping` returns true the rest is left to the next read, which continues there.
        `forget` is called, before anything is yielded, when earlier records are void: at first, and when
        the topic was deleted, recreated, truncated or given more partitions. All of its records are yielded then.
        """
        # Not kept: a cycle of owner and reader would leave closing the client to the garbage collector (`Admin`).
        found = self._find()
        if found != self._found:
            self._begin(found, forget)
        self.complete = not isinstance(found, Described)
        if not isinstance(found, Described):
            if self._must_exist:
                raise ClusterUnavailable(self._absence(found), cluster=self._cluster.alias)
            return
        ends = self._ends(found.partitions)
        if any(ends[partition] < offset for partition, offset in self._read_to.items()):
            self._begin(found, forget)  # brokers before 2.8 have no topic ids
        try:
            yield from self._up_to(ends, stopping)
        except BaseException as error:
            self.close()  # fetched records that were not yielded would be missing from the next read
            if not isinstance(error, KafkaException):
                raise
            reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
            raise ClusterUnavailable(f"{self.topic}: {reason}", cluster=self._cluster.alias) from error

    def close(self) -> None:
        """Close the connection; the next read begins from scratch."""
        self._found = None
        self._read_to = {}
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _find(self) -> Described | Refusal:
        found = describe(self._admin, self.topic)
        if self._consumer is not None and not isinstance(found, Described):
            time.sleep(_SURE_S)  # a broker that has just started may not know its topics yet
            found = describe(self._admin, self.topic)
        return found

    def _begin(self, found: Described | Refusal, forget: Callable[[], None]) -> None:
        self.close()
        forget()
        self._found = found

    def _up_to(self, ends: Mapping[int, int], stopping: Callable[[], bool]) -> Iterator[ReplayedRecord]:
        consumer = self._consumer or self._open(ends)
        until = time.monotonic() + _SILENCE_S
        while any(self._read_to[partition] < end for partition, end in ends.items()):
            if stopping():
                return
            for message in waiting(consumer, _A_TIME, seconds=_WAIT_S):
                until = time.monotonic() + _SILENCE_S
                error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
                if error is None:
                    self._read_to[partition] = offset + 1
                    yield ReplayedRecord(message.key(), message.value(), offset)
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._read_to[partition] = max(self._read_to[partition], offset)
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # no offset is committed with this group
                    raise KafkaException(error)
            if time.monotonic() > until:
                reason = f"{self.topic} could not be read to its end: no records for {_SILENCE_S:.0f} s"
                raise ClusterUnavailable(reason, cluster=self._cluster.alias)
        self.complete = True

    def _open(self, partitions: Mapping[int, int]) -> Consumer:
        self._read_to = dict.fromkeys(partitions, 0)
        self._consumer = reader(self._cluster, queued_max_messages_kbytes=_BUFFER_KB, fetch_queue_backoff_ms=_FULL_MS)
        # Otherwise assigned partitions wait for the library's next metadata refresh.
        self._consumer.list_topics(self.topic, timeout=_SILENCE_S)
        self._consumer.assign(
            [ConfluentTopicPartition(self.topic, partition, OFFSET_BEGINNING) for partition in partitions]
        )
        return self._consumer

    def _ends(self, partitions: Sequence[int]) -> dict[int, int]:
        # Not with the consumer: its request would wait for its own long-polling fetch, partition by partition.
        places = [(self.topic, partition) for partition in partitions]
        until = time.monotonic() + _LEADERLESS_S  # the topic may just have been created
        while True:
            ends, missing = last_stable_offsets(self._admin, places)
            if not missing:
                return {partition: end for (_, partition), end in ends.items()}
            if time.monotonic() > until:
                (_, partition), reason = next(iter(missing.items()))
                alias = self._cluster.alias
                bare = reason.removeprefix(f"cluster {alias}: ")
                raise ClusterUnavailable(f"{self.topic}-{partition}: {bare}", cluster=alias)
            time.sleep(_PAUSE_S)

    def _absence(self, refusal: Refusal) -> str:
        if right := grant(refusal.code, "READ on it"):
            return f"{self.topic}: {refusal.text}{right}"
        return f"topic {self.topic} does not exist yet"
