"""Archives that tests make of batches of their own, without a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirrorless.archive.chain import LogId
from mirrorless.archive.segment import Segment
from mirrorless.archive.state import Document, LogEnds, Topic, identify, store_documents
from tests.support.log_bytes import batch, marker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.archive.object_store import ObjectStore
    from mirrorless.clusters.topic_partition import TopicPartition

TOPIC_ID = f"{7:032x}"
LOG = LogId("orders", TOPIC_ID, 0)
TRANSACTIONAL = 0x10


def put(
    store: ObjectStore,
    first: int,
    batches: Sequence[bytes],
    *,
    aborted: Sequence[tuple[int, int]] = (),
    branch: int = 0,
    gap_from: int = -1,
    log: LogId = LOG,
) -> int:
    """Create the object of these batches, as a writer does; returns where it ends, -1 if there is one of its name."""
    segment = Segment(first, gap_from=gap_from)
    segment.add(b"".join(batches), aborted)
    body = segment.finish(topic=log.topic, topic_id=log.topic_id, partition=log.partition, written_ms=1)
    created = store.create(log.object(first, branch), body)
    segment.close()
    return segment.end if created else -1


def remember(
    store: ObjectStore,
    ends: Mapping[TopicPartition, int],
    *,
    at_ms: int = 1_000,
    groups: Mapping[str, Mapping[TopicPartition, tuple[int, str]]] | None = None,
) -> None:
    """ObjectStore the state of one second."""
    identify(store, source_id="a-cluster", source_alias="primary")
    topics = {topic: Topic(TOPIC_ID, 1, {"retention.ms": "1000"}) for topic, _ in ends}
    logs = {place: LogEnds(end, end) for place, end in ends.items()}
    store_documents(store, [Document(at_ms, logs, groups or {})], topics)


def plain(first: int, count: int = 10) -> bytes:
    """A batch of so many records."""
    return batch(list(range(first, first + count)))


def transaction(first: int, producer: int, *, commit: bool) -> list[bytes]:
    """A batch of ten records of a transaction, and its marker."""
    records = batch(list(range(first, first + 10)), attributes=TRANSACTIONAL, producer=producer)
    return [records, marker(first + 10, producer, commit=commit)]
