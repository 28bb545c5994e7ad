"""What a cluster was like at a time: once a second the ends of its logs and the offsets of its groups.

A document has, for each partition, the high watermark and the last stable offset, and all group offsets. Documents of
some seconds are one object, written after the objects of the batches that they speak of. Its first line has the topics
with their ids and configs. Times are those of the writer's clock, in ms since the epoch; nothing compares them with
another clock.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from mirrorless.archive.object_store import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mirrorless.archive.object_store import ObjectStore
    from mirrorless.clusters.groups import Committed
    from mirrorless.clusters.topic_partition import TopicPartition

STATE: Final = "state/"
IDENTITY: Final = "archive.json"
_OBJECT: Final = re.compile(rf"{STATE}(\d{{13}})-(\d{{13}})-[0-9a-f]+\.jsonl\.gz")
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it was: its id, number of partitions, and the configs that it has itself."""

    topic_id: str
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogEnds:
    """High watermark and last stable offset of a partition."""

    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class Document:
    """The state at one time; groups have offset and metadata of each partition."""

    at_ms: int
    logs: Mapping[TopicPartition, LogEnds]
    groups: Mapping[str, Mapping[TopicPartition, tuple[int, str]]]
    topics: Mapping[str, Topic] = field(default_factory=dict)

    def line(self) -> dict[str, Any]:
        """Return what is stored, without the topics."""
        logs: dict[str, dict[str, list[int]]] = {}
        for (topic, partition), ends in sorted(self.logs.items()):
            logs.setdefault(topic, {})[str(partition)] = [ends.high_watermark, ends.last_stable_offset]
        groups = {
            group: [[*place, *committed] for place, committed in sorted(offsets.items())]
            for group, offsets in sorted(self.groups.items())
        }
        return {"at_ms": self.at_ms, "logs": logs, "groups": groups}

    @classmethod
    def of(cls, line: Mapping[str, Any], topics: Mapping[str, Topic]) -> Self:
        """Read what was stored."""
        logs = {
            (topic, int(partition)): LogEnds(*ends)
            for topic, some in line["logs"].items()
            for partition, ends in some.items()
        }
        groups = {
            group: {(topic, partition): (offset, metadata) for topic, partition, offset, metadata in offsets}
            for group, offsets in line["groups"].items()
        }
        return cls(line["at_ms"], logs, groups, topics)


def plain_groups(
    groups: Mapping[str, Mapping[TopicPartition, Committed]],
) -> dict[str, dict[TopicPartition, tuple[int, str]]]:
    """Return committed offsets as documents have them."""
    return {
        group: {place: (one.offset, one.metadata) for place, one in offsets.items()}
        for group, offsets in groups.items()
    }


def store_documents(store: ObjectStore, documents: Sequence[Document], topics: Mapping[str, Topic]) -> None:
    """Write documents, in the order of their times, as one object."""
    head = {name: [one.topic_id, one.partitions, dict(one.configs)] for name, one in sorted(topics.items())}
    lines = [{"version": _VERSION, "topics": head}, *(one.line() for one in documents)]
    text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
    name = f"{STATE}{documents[0].at_ms:013}-{documents[-1].at_ms:013}-{secrets.token_hex(4)}.jsonl.gz"
    store.create(name, io.BytesIO(gzip.compress(text.encode(), mtime=0)))


@dataclass(frozen=True, slots=True)
class StateObject:
    """An object with documents: its name, and the times of its first and last one."""

    name: str
    first_ms: int
    last_ms: int


def state_objects(store: ObjectStore) -> list[StateObject]:
    """Return them in the order of their times."""
    found = [
        StateObject(one.name, int(match[1]), int(match[2]))
        for one in store.names(STATE)
        if (match := _OBJECT.fullmatch(one.name)) is not None
    ]
    return sorted(found, key=lambda one: (one.first_ms, one.last_ms))


def documents_of(store: ObjectStore, name: str) -> Iterator[Document]:
    """Yield the documents of one object; raises `ArchiveError` if it is damaged."""
    try:
        lines = gzip.decompress(store.read(name)).splitlines()
        head = json.loads(lines[0])
        if head["version"] != _VERSION:
            raise ArchiveError(f"{store.location}: {name} has version {head['version']}; upgrade Mirrorless")
        topics = {topic: Topic(one[0], one[1], one[2]) for topic, one in head["topics"].items()}
        found = [Document.of(json.loads(line), topics) for line in lines[1:]]
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ArchiveError(f"{store.location}: {name} is damaged: {error}") from None
    yield from found


def last_document(store: ObjectStore, until_ms: int | None = None) -> Document:
    """Return the last document, or the last one before a time; raises `ArchiveError` if there is none."""
    objects = state_objects(store)
    if not objects:
        raise ArchiveError(f"{store.location}: the archive has no state yet")
    chosen = [one for one in objects if until_ms is None or one.first_ms <= until_ms]
    if not chosen:
        raise ArchiveError(
            f"{store.location}: the archive begins {objects[0].first_ms - (until_ms or 0)} ms after that time"
        )
    # Two writers at once store documents of the same seconds.
    latest = max(chosen, key=lambda one: one.last_ms if until_ms is None else min(one.last_ms, until_ms))
    documents = [one for one in documents_of(store, latest.name) if until_ms is None or one.at_ms <= until_ms]
    return documents[-1]


@dataclass(frozen=True, slots=True)
class Identity:
    """An archive's own id, which is a cluster's id to those who read it, and the cluster that it is of."""

    cluster_id: str
    source_id: str
    source_alias: str


def identity_of(store: ObjectStore) -> Identity:
    """Return an archive's identity; raises `ArchiveError`, `NoSuchObject` if nothing was archived yet."""
    text = store.read(IDENTITY)
    try:
        fields = json.loads(text)
        return Identity(fields["cluster_id"], fields["source_id"], fields["source_alias"])
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveError(f"{store.location}: {IDENTITY} is damaged: {error}") from None


def identify(store: ObjectStore, *, source_id: str, source_alias: str) -> Identity:
    """Return an archive's identity, made now if it is new; raises `ArchiveError` if it is of another cluster."""
    fields = {
        "version": _VERSION,
        "cluster_id": f"archive-{secrets.token_urlsafe(12)}",
        "source_id": source_id,
        "source_alias": source_alias,
    }
    store.create(IDENTITY, io.BytesIO(json.dumps(fields, indent=1).encode()))
    found = identity_of(store)
    if found.source_id != source_id:
        raise ArchiveError(
            f"{store.location}: the archive is of cluster {found.source_id} ({found.source_alias}), not of {source_id} "
            f"({source_alias}); use another prefix"
        )
    return found
