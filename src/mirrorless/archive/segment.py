"""One object of an archive: record batches as a log segment has them, and a footer that describes them.

The layout is the batches, the footer as JSON, and at the end the footer's length in four bytes and eight bytes that
identify the format. So the batches are a segment of Kafka's (its `.log`), and one read of the end tells what there is.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from bisect import bisect_right
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Final, Self, cast

from mirrorless.archive.object_store import ArchiveError
from mirrorless.batches.header import scan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mirrorless.archive.object_store import ObjectStore
    from mirrorless.batches.header import BatchHeader

_END: Final = struct.Struct(">I8s")
_MAGIC: Final = b"MLARCH01"
_INDEXED_BYTES: Final = 256 << 10
_IN_MEMORY_BYTES: Final = 1 << 20
_USUAL_FOOTER_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Footer:
    """What an object has: offsets from `first` up to `end`, of a topic with one id.

    `leader_epoch` is that of the last batch. `index` has the position in bytes of about every 256 KB, each with the
    offset from which on it has records. `aborted` are transactions that were aborted: producer id, first offset, and
    the offset of the marker, -1 if that is in a later object. `gap_from` is where its predecessor ends if the source
    had deleted what lies between, -1 if nothing does. `sha256` is of the batches.
    """

    topic: str
    topic_id: str
    partition: int
    first: int
    end: int
    leader_epoch: int
    batches: int
    max_timestamp_ms: int
    size_bytes: int
    sha256: str
    written_ms: int
    gap_from: int = -1
    index: list[tuple[int, int]] = field(default_factory=list)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)

    def position(self, offset: int) -> int:
        """Return the byte from which on a batch with `offset` or a later one is found."""
        at = bisect_right(self.index, (offset, 1 << 62)) - 1
        return self.index[at][1] if at >= 0 else 0

    @classmethod
    def of(cls, text: bytes) -> Self:
        """Read a footer's JSON; raises ValueError, KeyError or TypeError if it is none."""
        fields = json.loads(text)
        for name in ("index", "aborted"):
            fields[name] = [tuple(one) for one in fields[name]]
        return cls(**fields)


def read_footer(store: ObjectStore, name: str) -> Footer:
    """Return the footer of an object; raises `ArchiveError` if it is damaged, `NoSuchObject` if there is none."""
    end = store.read(name, -_USUAL_FOOTER_BYTES)
    try:
        size, magic = _END.unpack_from(end, len(end) - _END.size)
        if magic != _MAGIC:
            raise ValueError("its last bytes are not those of this format")
        if size + _END.size > len(end):
            end = store.read(name, -(size + _END.size))
        return Footer.of(end[-(size + _END.size) : -_END.size])
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise ArchiveError(f"{store.location}: {name} is damaged: {error}") from None


def damage(store: ObjectStore, name: str, footer: Footer) -> str | None:
    """Read all batches of an object; returns in one line what is wrong with them, None if nothing is."""
    data = store.read(name, 0, footer.size_bytes)
    if hashlib.sha256(data).hexdigest() != footer.sha256:
        return "its batches are not those that were written (SHA-256)"
    counted, end = 0, footer.first
    for header, _ in scan(data):
        if header.next_offset <= end and counted:
            return f"offset {header.base_offset} comes after {end - 1}"
        counted, end = counted + 1, header.next_offset
    return None if (counted, end) == (footer.batches, footer.end) else "its batches are not those of its footer"


class Segment:
    """Batches that wait to become an object: in memory, then in a file without a name.

    `first` is the offset from which on the object is complete: the next one that was not archived before.
    """

    def __init__(self, first: int, *, gap_from: int = -1) -> None:
        self.first = self.end = first
        self.leader_epoch = -1
        self.size_bytes = 0
        self._gap_from = gap_from
        self._batches = 0
        self._max_timestamp_ms = -1
        self._index: list[tuple[int, int]] = []
        self._aborted: dict[tuple[int, int], int] = {}
        self._sha256 = hashlib.sha256()
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES))  # noqa: SIM115 -- `close`

    def add(self, records: bytes | memoryview, aborted: Iterable[tuple[int, int]]) -> int:
        """Append the whole batches of an answer to a fetch from `end`, with its aborted transactions.

        Returns their bytes. Raises `FormatError` for formats before v2, with what came before it appended.
        """
        before = self.size_bytes
        for transaction in aborted:
            self._aborted.setdefault(transaction, -1)
        for header, at in self._new(records):
            if not self._index or self.size_bytes - self._index[-1][1] >= _INDEXED_BYTES:
                self._index.append((header.base_offset, self.size_bytes))
            if header.is_control:
                self._ended(header)
            batch = records[at : at + header.size_bytes]
            self._file.write(batch)
            self._sha256.update(batch)
            self.size_bytes += header.size_bytes
            self._batches += 1
            self._max_timestamp_ms = max(self._max_timestamp_ms, header.max_timestamp_ms)
            self.end, self.leader_epoch = header.next_offset, header.partition_leader_epoch
        return self.size_bytes - before

    def _new(self, records: bytes | memoryview) -> Iterator[tuple[BatchHeader, int]]:
        """Yield the batches that are not there yet; a leader may begin an answer with one that is."""
        return ((header, at) for header, at in scan(records) if header.next_offset > self.end)

    def _ended(self, marker: BatchHeader) -> None:
        for (producer, first), end in self._aborted.items():
            if producer == marker.producer_id and end < 0 and first < marker.base_offset:
                self._aborted[producer, first] = marker.base_offset

    def finish(self, *, topic: str, topic_id: str, partition: int, written_ms: int) -> IO[bytes]:
        """Append the footer; returns the file, at its beginning. Nothing can be added any more."""
        footer = Footer(
            topic=topic,
            topic_id=topic_id,
            partition=partition,
            first=self.first,
            end=self.end,
            leader_epoch=self.leader_epoch,
            batches=self._batches,
            max_timestamp_ms=self._max_timestamp_ms,
            size_bytes=self.size_bytes,
            sha256=self._sha256.hexdigest(),
            written_ms=written_ms,
            gap_from=self._gap_from,
            index=self._index,
            aborted=[(*transaction, end) for transaction, end in sorted(self._aborted.items())],
        )
        text = json.dumps(asdict(footer), separators=(",", ":")).encode()
        self._file.write(text + _END.pack(len(text), _MAGIC))
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Forget the batches."""
        self._file.close()
