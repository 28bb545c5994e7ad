"""What an archive has, whether it can be restored, and what is too old to be kept."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirrorless.archive.chain import LogId, broken, chain_of, footers, logs_of
from mirrorless.archive.object_store import ArchiveError
from mirrorless.archive.segment import damage, read_footer
from mirrorless.archive.state import documents_of, identity_of, last_document, state_objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mirrorless.archive.chain import Link
    from mirrorless.archive.object_store import ObjectStore
    from mirrorless.archive.segment import Footer


@dataclass(frozen=True, slots=True)
class Contents:
    """One topic of an archive, of one id: how much there is of it, and since when its offsets are restorable."""

    topic: str
    topic_id: str
    partitions: int
    objects: int
    size_bytes: int
    is_current: bool


def contents(store: ObjectStore) -> list[Contents]:
    """Return the topics of an archive, those that were deleted since too; raises `ArchiveError`."""
    current = {(name, one.topic_id) for name, one in last_document(store).topics.items()}
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for log, objects in logs_of(store).items():
        chain = chain_of(log, objects)
        sizes = len(chain.links), sum(one.size_bytes for one in chain.links)
        found.setdefault((log.topic, log.topic_id), []).append(sizes)
    return [
        Contents(*key, len(some), sum(one[0] for one in some), sum(one[1] for one in some), key in current)
        for key, some in sorted(found.items())
    ]


def times(store: ObjectStore) -> tuple[int, int]:
    """Return the first and the last time that can be restored, in ms; raises `ArchiveError` if there is none."""
    objects = state_objects(store)
    if not objects:
        raise ArchiveError(f"{store.location}: the archive has no state yet")
    return objects[0].first_ms, max(one.last_ms for one in objects)


@dataclass(slots=True)
class Proof:
    """What was read to prove that an archive can be restored."""

    objects: int = 0
    size_bytes: int = 0
    documents: int = 0


def faults(store: ObjectStore, proof: Proof) -> Iterator[str]:
    """Read a whole archive; yields a line for each object that is damaged, missing, foreign or not of its chain.

    `proof` counts what was read.
    """
    try:
        identity_of(store)
    except ArchiveError as error:
        yield str(error)
    for one in state_objects(store):
        try:
            proof.documents += sum(1 for _ in documents_of(store, one.name))
        except ArchiveError as error:
            yield str(error)
    for log, objects in sorted(logs_of(store).items()):
        chain = chain_of(log, objects)
        before: tuple[Link, Footer] | None = None
        for link in chain.links:
            proof.objects += 1
            try:
                footer = read_footer(store, link.name)
                reason = _misplaced(log, footer) or broken(link, footer, before) or damage(store, link.name, footer)
            except ArchiveError as error:
                yield str(error)
                before = None  # what follows it is judged by itself
                continue
            proof.size_bytes += footer.size_bytes
            if reason is not None:
                yield f"{link.name}: {reason}"
            before = link, footer
        yield from _end_of(store, log, before)


def _misplaced(log: LogId, footer: Footer) -> str | None:
    own = LogId(footer.topic, footer.topic_id, footer.partition)
    return None if own == log else f"it is of {own.topic}-{own.partition} with id {own.topic_id}"


def _end_of(store: ObjectStore, log: LogId, last: tuple[Link, Footer] | None) -> Iterator[str]:
    """Yield the fault of a chain that ends before the last state says, if its topic is still that one."""
    document = last_document(store)
    topic = document.topics.get(log.topic)
    ends = document.logs.get((log.topic, log.partition))
    if topic is None or topic.topic_id != log.topic_id or ends is None:
        return
    end = 0 if last is None else last[1].end
    if end < ends.last_stable_offset:
        yield f"{log.prefix}: ends at offset {end}, before {ends.last_stable_offset}: an object is missing"


def prune(store: ObjectStore, *, before_ms: int) -> tuple[int, int]:
    """Delete what only times before `before_ms` need; returns how many objects, and their bytes.

    First a floor is written, below which nothing counts any more: a writer that was suspended meanwhile cannot bring an
    object back. The last object of each partition stays, since a writer continues at its end.
    """
    kept = [one for one in state_objects(store) if one.last_ms >= before_ms]
    if not kept:
        raise ArchiveError(f"{store.location}: there is no state after that time, so nothing would be left")
    gone = [one.name for one in state_objects(store) if one.last_ms < before_ms]
    size = 0
    for log, objects in logs_of(store).items():
        chain = chain_of(log, objects)
        old = []
        for link, footer in footers(store, chain):
            if link.until is None or footer.written_ms >= before_ms:
                break
            old.append(link)
        stale = [*chain.stale, *(name for name in chain.replaced if old and name < log.object(old[-1].first + 1, 0))]
        if old:
            until = old[-1].until
            assert until is not None
            store.create(log.floor(until), io.BytesIO())
            size += sum(one.size_bytes for one in old)
        gone += [*(one.name for one in old), *stale]
    store.delete(gone)
    return len(gone), size
