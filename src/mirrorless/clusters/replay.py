"""Reads a whole compacted topic: once from the beginning, then only what is new."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

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
_LEADERLESS_S: Final = 30.0
_PAUSE_S: Final = 0.5
_SURE_S: Final = 1.0
_WAIT_S: Final = 0.2
_A_TIME: Final = 10_000
_BUFFER_KB: Final = 16_384
_FULL_MS: Final = 10
"""How long fetching rests when the buffer is full; the library's own second would be longer than emptying it takes."""


class ReplayedRecord(NamedTuple):
    """A record, at `offset` of its partition."""

    key: bytes | None
    value: bytes | None
    offset: int = 0


class Replay:
    """All partitions of `topic` on `cluster`, whose client is `admin`.

    A topic that is not there, or may not be seen, is an empty one; with `must_exist` it is an error. `complete` says
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
        """Whether there was no such topic when it was read last."""
        return isinstance(self._found, Refusal) and self.refused is None

    @property
    def topic_id(self) -> str | None:
        """The topic's own id when it was read last (KIP-516); None where it was not there, or brokers have no ids."""
        return self._found.topic_id if isinstance(self._found, Described) else None

    @property
    def refused(self) -> str | None:
        """Why the topic might not be seen when it was read last; None where it is there, or is not."""
        found = self._found
        if found is None or isinstance(found, Described) or not grant(found.code, "READ on it"):
            return None
        return self._absence(found)

    def read(
        self, forget: Callable[[], None] = lambda: None, *, stopping: Callable[[], bool] = lambda: False
    ) -> Iterator[ReplayedRecord]:
        """Yield what is new up to the ends that the topic has now; raises `ClusterUnavailable`.

        Once `stopping` says so the rest is left to the next read, which goes on there.
        `forget` is called, before anything is yielded, when what was read so far no longer counts: at first, and when
        the topic was deleted, made again, cut or given more partitions. All that is there is yielded then.
        """
        # Not kept: an owner and its reader in a circle would leave the client's end to the garbage collector (`Admin`).
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
            self._begin(found, forget)  # brokers before 2.8 give topics no ids
        try:
            yield from self._up_to(ends, stopping)
        except BaseException as error:
            self.close()  # what was fetched and not taken would be missing from the next read
            if not isinstance(error, KafkaException):
                raise
            reason = f"{error.args[0].str()}{grant(error.args[0].code(), 'READ on it')}"
            raise ClusterUnavailable(f"{self.topic}: {reason}", cluster=self._cluster.alias) from error

    def close(self) -> None:
        """Close the connection; the next read begins at the beginning."""
        self._found = None
        self._read_to = {}
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _find(self) -> Described | Refusal:
        found = describe(self._admin, self.topic)
        if self._consumer is not None and not isinstance(found, Described):
            time.sleep(_SURE_S)  # a broker that has just started may not have heard of its topics yet
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
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # nothing is committed for it
                    raise KafkaException(error)
            if time.monotonic() > until:
                reason = f"{self.topic} could not be read to its end: nothing came for {_SILENCE_S:.0f} s"
                raise ClusterUnavailable(reason, cluster=self._cluster.alias)
        self.complete = True

    def _open(self, partitions: Mapping[int, int]) -> Consumer:
        self._read_to = dict.fromkeys(partitions, 0)
        self._consumer = reader(self._cluster, queued_max_messages_kbytes=_BUFFER_KB, fetch_queue_backoff_ms=_FULL_MS)
        # Else what is assigned waits for the library's next look at the topic.
        self._consumer.list_topics(self.topic, timeout=_SILENCE_S)
        self._consumer.assign([TopicPartition(self.topic, partition, OFFSET_BEGINNING) for partition in partitions])
        return self._consumer

    def _ends(self, partitions: Sequence[int]) -> dict[int, int]:
        # Not by the consumer: its question would wait behind its own long-polling fetch, partition by partition.
        places = [(self.topic, partition) for partition in partitions]
        until = time.monotonic() + _LEADERLESS_S  # the topic may have been made a moment ago
        while True:
            ends, missing = last_stable_offsets(self._admin, places)
            if not missing:
                return {partition: end for (_, partition), end in ends.items()}
            if time.monotonic() > until:
                (_, partition), reason = next(iter(missing.items()))
                raise ClusterUnavailable(f"{self.topic}-{partition}: {reason}", cluster=self._cluster.alias)
            time.sleep(_PAUSE_S)

    def _absence(self, refusal: Refusal) -> str:
        if right := grant(refusal.code, "READ on it"):
            return f"{self.topic}: {refusal.text}{right}"
        return f"there is no topic {self.topic} yet"
