"""Compare-and-append in the progress topic: of writers that append one sequence, the first one's record is stored."""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from mirrorless.batches.header import HEADER_BYTES, scan
from mirrorless.batches.rebuild import merge
from mirrorless.batches.records import Records, varint
from mirrorless.batches.stamp import stamp
from mirrorless.copy.partition.min_insync_replicas import NOT_ENOUGH, too_few_replicas
from mirrorless.kafka_python.structs import DefaultRecordBatch, Future, murmur2
from mirrorless.progress.records import parse
from mirrorless.protocol.broker_errors import refusal
from mirrorless.protocol.leaders import NotNow, leader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence

    from mirrorless.batches.stamp import Stamped
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.kafka_python.event_loop import EventLoop
    from mirrorless.progress.records import Said
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.protocol.requests import AppendResult

Group = TypeVar("Group", bound="Hashable")
Question = TypeVar("Question", bound="Hashable")
Answer = TypeVar("Answer")

_TIMEOUT_MS: Final = 30_000
_READ_BACK_BYTES: Final = 1 << 16
_TAKEN: Final = frozenset({45, 46})
"""OUT_OF_ORDER_SEQUENCE_NUMBER, DUPLICATE_SEQUENCE_NUMBER: later sequences were appended since."""


class RequestBatcher(Generic[Group, Question, Answer]):
    """Gathers the questions of a group (say, a broker) and passes them to `ask`, which answers all of them.

    A request costs either side some tenths of a millisecond: thousands of partitions that begin at once would spend
    seconds with it. An answer that is an exception is raised to its caller; what `ask` raises, to all callers. Without
    an answer the caller gets `NotNow`.
    """

    def __init__(
        self,
        net: EventLoop,
        ask: Callable[[Group, Sequence[Question]], Coroutine[Any, Any, Mapping[Question, Answer | Exception]]],
    ) -> None:
        self._net = net
        self._ask = ask
        self._waiting: dict[Group, dict[Question, Any]] = defaultdict(dict)

    async def one(self, group: Group, question: Question) -> Answer:
        """Ask one question; `ask` gets it together with those of all other coroutines that are ready."""
        waiting = self._waiting[group]
        if not waiting:
            self._net.call_soon(self._flush(group))
        if question not in waiting:
            waiting[question] = Future()
        found: Answer = await waiting[question]
        return found

    async def _flush(self, group: Group) -> None:
        asked = self._waiting.pop(group)
        try:
            answers = await self._ask(group, list(asked))
        except Exception as error:  # noqa: BLE001 -- raised to the callers
            answers = dict.fromkeys(asked, error)
        for question, future in asked.items():
            # Without any answer the partition would wait for ever.
            answer = answers.get(question, NotNow("a broker's answer leaves out some of what it was asked"))
            if isinstance(answer, Exception):
                future.failure(answer)
            else:
                future.success(answer)


class _Request(NamedTuple):
    """A record to append: the progress topic's partition, the producer id, the batch."""

    place: TopicPartition
    producer: int
    batch: Stamped


class CompareAndAppend:
    """Appends records to a flow's progress topic `topic`, each with a producer id and a sequence of its own.

    A broker acknowledges the second writer of a sequence with the offset of the first one's record, which is then read:
    so racing writers agree on one record.
    """

    def __init__(self, *, net: EventLoop, target: ClusterClient, topic: str) -> None:
        self._net = net
        self._target = target
        self._topic = topic
        self._appending: RequestBatcher[int, _Request, Said | None] = RequestBatcher(net, self._append_all)

    def place_of(self, key: bytes) -> TopicPartition:
        """Return the partition of a key, as Connect's producer chooses it; raises `NotNow` without the topic."""
        partitions = self._target.partition_count(self._topic)
        if partitions == 0:
            raise NotNow(f"the topic {self._topic} does not exist yet")
        return self._topic, (murmur2(key) & 0x7FFFFFFF) % partitions

    async def append(self, key: bytes, value: bytes, *, producer: int, sequence: int = 0) -> Said | None:
        """Append a record; returns the stored one with its sequence, None if there are only later ones."""
        place = self.place_of(key)
        # kafka-python's builder takes a tenth of a millisecond for its checksum.
        rest = varint(len(key)) + key + varint(len(value)) + value + varint(0)
        (built,) = merge([(0, Records([0], [int(time.time() * 1000)], [rest]))], max_bytes=HEADER_BYTES)
        batch = stamp(built.header, built.body, producer_id=producer, producer_epoch=0, base_sequence=sequence)
        return await self._appending.one(leader_of(self._target, place), _Request(place, producer, batch))

    async def _append_all(self, node: int, wanted: Sequence[_Request]) -> dict[_Request, Said | Exception | None]:
        """Append with as few produce requests as possible: each holds one batch of a partition."""
        by_partition: dict[TopicPartition, list[_Request]] = defaultdict(list)
        for request in wanted:
            by_partition[request.place].append(request)
        rounds = [{one.place: one for one in column if one} for column in zip_longest(*by_partition.values())]
        under_way = [self._net.call_soon_with_future(self._append_round(node, some)) for some in rounds]
        found: dict[_Request, Said | Exception | None] = {}
        for answers in under_way:
            found |= await answers
        return found

    async def _append_round(
        self, node: int, wanted: Mapping[TopicPartition, _Request]
    ) -> dict[_Request, Said | Exception | None]:
        batches = [(place, request.batch) for place, request in wanted.items()]
        written = await self._target.append(node, batches, timeout_ms=_TIMEOUT_MS)
        found: dict[_Request, Said | Exception | None] = {}
        found |= {wanted[one.place]: self._refused(one) for one in written if one.error_code}
        taken = {one.place: one.base_offset for one in written if not one.error_code}
        read = await self._target.read_each_at(node, taken, partition_max_bytes=_READ_BACK_BYTES)
        for place, offset in taken.items():
            records = read[place]
            producer = wanted[place].producer
            found[wanted[place]] = records if isinstance(records, Exception) else _stored(records, producer, offset)
        return found

    def _refused(self, one: AppendResult) -> Exception | None:
        if one.error_code in _TAKEN:
            return None
        if one.error_code in NOT_ENOUGH:
            return too_few_replicas(self._target, one.place, one.error_code)
        return refusal(one.error_code, right="WRITE", topic=self._topic)


def _stored(records: bytes | memoryview, producer: int, offset: int) -> Said | None:
    """Return what a producer's record at an offset says, None if it is not there."""
    for header, at in scan(records):
        if header.producer_id == producer and header.base_offset == offset:
            for record in DefaultRecordBatch(bytes(records[at : at + header.size_bytes])):
                if (parsed := parse(record.key, record.value)) is not None:
                    return parsed[1]
    return None
