"""How far a source partition was copied, in Connect's own record (reference, section 1.5; design, section 5).

Key and value are JSON without blanks, so that MirrorMaker 2 finds its position in what we wrote and the other way
round. Our fields beside `offset` are ignored by Connect. Announcements of an epoch stand under keys of their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECTOR = "MirrorSourceConnector"
_ANNOUNCER = "mirrorless"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A partition's copy, as of its last acknowledged record.

    `last_offset` is the upstream offset of that record, `last_downstream` its offset on the target (-1 before the
    first). `sequence` is that of the next record in incarnation `epoch`; both are None in MirrorMaker 2's records.
    """

    last_offset: int
    sequence: int | None = None
    epoch: int | None = None
    last_downstream: int | None = None

    def to_bytes(self) -> bytes:
        """Value of the progress record."""
        fields = {"offset": self.last_offset}
        if self.epoch is not None and self.sequence is not None:
            fields |= {"sequence": self.sequence, "epoch": self.epoch}
            if self.last_downstream is not None:
                fields["downstream"] = self.last_downstream
        return _json(fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """Where incarnation `epoch` of a partition's copy begins, and why.

    Its first record is that at upstream offset `start`, with sequence 0, and it goes to the target's offset
    `downstream`.
    """

    epoch: int
    start: int
    downstream: int
    reason: str

    def to_bytes(self) -> bytes:
        """Value of the announcement record."""
        return _json({"start": self.start, "downstream": self.downstream, "reason": self.reason})

    @classmethod
    def read(cls, epoch: int, content: Mapping[str, Any]) -> Announcement:
        """Read the value of the announcement of `epoch`; raises KeyError, TypeError or ValueError."""
        return cls(
            epoch=epoch,
            start=int(content["start"]),
            downstream=int(content["downstream"]),
            reason=str(content.get("reason", "")),
        )


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A partition of the source as the progress topic names it: by the source's alias."""

    cluster: str
    topic: str
    partition: int

    def progress_key(self) -> bytes:
        """Key of its progress record: Connect's bytes, in the order of Java's HashMap."""
        return _json([CONNECTOR, {"cluster": self.cluster, "partition": self.partition, "topic": self.topic}])

    def announcement_key(self, epoch: int) -> bytes:
        """Key of the announcement of one of its epochs."""
        fields = {"cluster": self.cluster, "epoch": epoch, "partition": self.partition, "topic": self.topic}
        return _json([_ANNOUNCER, fields])


def parse(key: bytes | None, value: bytes | None) -> tuple[SourcePartition, Progress | Announcement | None] | None:
    """Read a record of the progress topic.

    Returns the partition and what is said of it, with None for a tombstone; None for everything that is not ours to
    read: other connectors' positions, and records that are malformed.
    """
    try:
        connector, fields = json.loads(key or b"")
        where = SourcePartition(str(fields["cluster"]), str(fields["topic"]), int(fields["partition"]))
        if connector == CONNECTOR:
            return where, None if value is None else _progress(json.loads(value))
        if connector == _ANNOUNCER and value is not None:
            return where, Announcement.read(int(fields["epoch"]), json.loads(value))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return None


def _progress(fields: dict[str, Any]) -> Progress:
    ours = "sequence" in fields and "epoch" in fields
    downstream = fields.get("downstream")
    return Progress(
        last_offset=int(fields["offset"]),
        sequence=int(fields["sequence"]) if ours else None,
        epoch=int(fields["epoch"]) if ours else None,
        last_downstream=int(downstream) if ours and downstream is not None else None,
    )


def _json(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
