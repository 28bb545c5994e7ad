"""An archive as it was at a time: a prefix of each partition, and groups, topics and configs of one document.

A partition is readable up to the last stable offset of that document, so of a transaction either everything is there or
nothing. Where its objects end before that, or one of them cannot follow its predecessor, it ends there, and `lacking`
says so: nothing behind it is read in silence.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.archive.chain import LogId, broken, chain_of, logs_of
from mirrorless.archive.object_store import ArchiveError
from mirrorless.archive.segment import read_footer
from mirrorless.archive.state import LogEnds, identity_of, last_document
from mirrorless.batches.header import scan

if TYPE_CHECKING:
    from mirrorless.archive.chain import Link
    from mirrorless.archive.object_store import ObjectStore
    from mirrorless.archive.segment import Footer
    from mirrorless.clusters.topic_partition import TopicPartition

_CACHED_BYTES: Final = 64 << 20
_BLOCK_BYTES: Final = 4 << 20


class ReadPiece(NamedTuple):
    """An object's part of a partition: offsets from `first` up to `end`."""

    link: Link
    footer: Footer
    first: int
    end: int


class ReadLog:
    """One partition, from `start` up to `end`; `lacking` says why it ends before the time's last stable offset."""

    def __init__(self, store: ObjectStore, log: LogId, ends: LogEnds, links: tuple[Link, ...]) -> None:
        self.id = log
        self.high_watermark = ends.high_watermark
        self.lacking: str | None = None
        self.pieces: list[ReadPiece] = []
        before: tuple[Link, Footer] | None = None
        for link in links:
            if link.first >= ends.last_stable_offset:
                break
            try:
                footer = read_footer(store, link.name)
                reason = broken(link, footer, before)
            except ArchiveError as error:
                reason = str(error)
            if reason is not None:
                self.lacking = f"{link.name}: {reason}"
                break
            end = footer.end if link.until is None else min(footer.end, link.until)
            self.pieces.append(ReadPiece(link, footer, link.first, min(end, ends.last_stable_offset)))
            before = link, footer
        self.start = self.pieces[0].first if self.pieces else ends.last_stable_offset
        self.end = self.pieces[-1].end if self.pieces else ends.last_stable_offset
        if self.lacking is None and self.pieces and self._ends_early(ends):
            self.lacking = f"its objects end at offset {self.end}, before {ends.last_stable_offset}"
        if self.lacking is None:
            self.end = ends.last_stable_offset  # compaction may have left nothing up to there

    def _ends_early(self, ends: LogEnds) -> bool:
        return self.end < ends.last_stable_offset

    def piece(self, offset: int) -> int | None:
        """Return the index of the piece that has `offset`, or of the next one; None behind the last."""
        return next((number for number, one in enumerate(self.pieces) if offset < one.end), None)


class ArchiveView:
    """What an archive had at `until_ms`, or has now; reads footers at once and batches when they are asked for."""

    def __init__(self, store: ObjectStore, until_ms: int | None = None) -> None:
        self.store = store
        self.identity = identity_of(store)
        self.document = last_document(store, until_ms)
        objects = logs_of(store)
        self.logs: dict[TopicPartition, ReadLog] = {}
        for (topic, partition), ends in sorted(self.document.logs.items()):
            log = LogId(topic, self.document.topics[topic].topic_id, partition)
            chain = chain_of(log, objects.get(log, ()))
            self.logs[topic, partition] = ReadLog(store, log, ends, chain.links)
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._cached = 0
        self._lock = threading.Lock()

    @property
    def lacking(self) -> dict[TopicPartition, str]:
        """Partitions that end early, with the reason in one line."""
        return {place: log.lacking for place, log in self.logs.items() if log.lacking is not None}

    def records(self, place: TopicPartition, offset: int, size: int) -> tuple[bytes, list[tuple[int, int]]]:
        """Return whole batches from the one with `offset` on, about `size` bytes, and the aborted transactions in them.

        At least one batch, if there is one. Batches behind the log's end are left out.
        """
        log = self.logs[place]
        number = log.piece(offset)
        if number is None:
            return b"", []
        piece = log.pieces[number]
        at = piece.footer.position(offset)
        found = b""
        wanted = max(size, _BLOCK_BYTES)
        while not found:
            data = self._read(piece, at, wanted)
            found = _whole(data, offset, size, piece.end)
            if at + wanted >= piece.footer.size_bytes:
                break
            wanted *= 2
        if not found and number + 1 < len(log.pieces):
            return self.records(place, log.pieces[number + 1].first, size)
        aborted = [(producer, first) for producer, first, end in piece.footer.aborted if end < 0 or end >= offset]
        return found, aborted

    def _read(self, piece: ReadPiece, at: int, size: int) -> bytes:
        """Return bytes of an object's batches, from a cache of whole blocks."""
        first, last = at // _BLOCK_BYTES, min(at + size, piece.footer.size_bytes) // _BLOCK_BYTES
        blocks = b"".join(self._block(piece, number) for number in range(first, last + 1))
        skipped = at - first * _BLOCK_BYTES
        return blocks[skipped : skipped + size]

    def _block(self, piece: ReadPiece, number: int) -> bytes:
        key = piece.link.name, number
        with self._lock:
            if (known := self._blocks.get(key)) is not None:
                self._blocks.move_to_end(key)
                return known
        first = number * _BLOCK_BYTES
        size = max(0, min(_BLOCK_BYTES, piece.footer.size_bytes - first))
        data = self.store.read(piece.link.name, first, size) if size else b""
        with self._lock:
            self._cached += len(data) - len(self._blocks.get(key, b""))
            self._blocks[key] = data
            while self._cached > _CACHED_BYTES and len(self._blocks) > 1:
                self._cached -= len(self._blocks.popitem(last=False)[1])
        return data


def _whole(data: bytes, offset: int, size: int, end: int) -> bytes:
    """Return the batches that end after `offset`, begin before `end`, and are about `size` bytes together."""
    first = last = None
    for header, at in scan(data):
        if header.next_offset <= offset:
            continue
        if header.base_offset >= end or (first is not None and at + header.size_bytes - first > size):
            break
        first = at if first is None else first
        last = at + header.size_bytes
    return b"" if first is None else data[first:last]
