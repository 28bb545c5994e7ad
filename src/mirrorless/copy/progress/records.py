"""How far a source partition was copied, in Connect's own record (reference, section 1.5; design, section 5).

Key and value are JSON without blanks, so that MirrorMaker 2 finds its position in what we wrote and the other way
round. Our fields beside `offset` are ignored by Connect. Announcements of an epoch stand under keys of their own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mirrorless.copy.progress.epoch_kind import EpochKind, kind_named
from mirrorless.errors import GapKind

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECTOR = "MirrorSourceConnector"
"""The name that MirrorMaker 2 gives its connector in dedicated mode."""
_OWN = "mirrorless"
_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class Progress(NamedTuple):
    """A partition's copy, as of its last acknowledged record.

    `last_offset` is the upstream offset of that record, `last_downstream` its offset on the target (-1 before the
    first). `sequence` is that of the next record in incarnation `epoch`; both are None in MirrorMaker 2's records.
    `leader_epoch` is the source leader's at that record, by which a log that was cut is known (KIP-320). `run` is how
    many records end there without a hole on the source.
    """

    last_offset: int
    sequence: int | None = None
    epoch: int | None = None
    last_downstream: int | None = None
    leader_epoch: int | None = None
    run: int | None = None

    def to_bytes(self) -> bytes:
        """Value of the progress record."""
        fields = {"offset": self.last_offset}
        if self.epoch is not None and self.sequence is not None:
            fields |= {"sequence": self.sequence, "epoch": self.epoch}
            if self.last_downstream is not None:
                fields["downstream"] = self.last_downstream
            if self.leader_epoch is not None:
                fields["leaderEpoch"] = self.leader_epoch
            if self.run is not None:
                fields["run"] = self.run
        return _json(fields)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Progress:
        """Read the value of a progress record; raises KeyError, TypeError or ValueError."""
        ours = "sequence" in fields and "epoch" in fields

        def own(name: str) -> int | None:
            value = fields.get(name)
            return int(value) if ours and value is not None else None

        return cls(
            last_offset=int(fields["offset"]),
            sequence=int(fields["sequence"]) if ours else None,
            epoch=int(fields["epoch"]) if ours else None,
            last_downstream=own("downstream"),
            leader_epoch=own("leaderEpoch"),
            run=own("run"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """Where epoch `epoch` of a partition's copy begins, and why: `kind` for decisions, `reason` for people.

    Its first record is that at upstream offset `start`, with sequence 0, and it goes to the target's offset
    `downstream`. `topic_id` is the source topic's (KIP-516), None where brokers do not know such: the incarnation is of
    that topic, and not of another one that was given its name. `after` is the epoch and the next sequence at which the
    target stood when this was decided; the target that has moved on from there makes it void. None holds always.
    `behind` is the position of MirrorMaker 2 in whose place it begins elsewhere, since it cannot go on there.
    `stood_at` is the epoch of the target's last record of ours, where a reset that holds always could learn it.
    `source_end` is where the source ended when the copy began, by itself or by a reset: what another flow brings from
    the target behind it is a loop.
    """

    epoch: int
    start: int
    downstream: int
    reason: str
    kind: EpochKind = EpochKind.OTHER
    topic_id: str | None = None
    after: tuple[int, int] | None = None
    behind: int | None = None
    stood_at: int | None = None
    source_end: int | None = None

    @property
    def last_begun(self) -> int | None:
        """The last epoch of which the target had anything when this was announced; None if that is not known."""
        return self.stood_at if self.after is None else self.after[0]

    def goes_on_from(self, position: int) -> bool:
        """Whether this incarnation is the one that follows MirrorMaker 2 where it was going to read `position`."""
        return position in (self.start, self.behind)

    def to_bytes(self) -> bytes:
        """Value of the announcement record."""
        fields: dict[str, Any] = {"start": self.start, "downstream": self.downstream, "reason": self.reason}
        fields["kind"] = self.kind.name
        if self.topic_id is not None:
            fields["topicId"] = self.topic_id
        if self.after is not None:
            fields["after"] = self.after
        if self.behind is not None:
            fields["behind"] = self.behind
        if self.stood_at is not None:
            fields["stoodAt"] = self.stood_at
        if self.source_end is not None:
            fields["sourceEnd"] = self.source_end
        return _json(fields)

    @classmethod
    def read(cls, epoch: int, content: Mapping[str, Any]) -> Announcement:
        """Read the value of the announcement of `epoch`; raises KeyError, TypeError or ValueError."""
        reason = str(content.get("reason", ""))
        return cls(
            epoch=epoch,
            start=int(content["start"]),
            downstream=int(content["downstream"]),
            reason=reason,
            kind=kind_named(content.get("kind"), reason),
            topic_id=None if content.get("topicId") is None else str(content["topicId"]),
            after=None if content.get("after") is None else (int(content["after"][0]), int(content["after"][1])),
            behind=None if content.get("behind") is None else int(content["behind"]),
            stood_at=None if content.get("stoodAt") is None else int(content["stoodAt"]),
            source_end=None if content.get("sourceEnd") is None else int(content["sourceEnd"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """A gap at which incarnation `epoch` stopped, at upstream `offset`; a later incarnation is not concerned.

    It is kept because not every gap can be seen again: a log that was cut grows past the place. `position` is the next
    offset that was to be copied, 0 where nothing said so, None in records of before it was kept.
    """

    epoch: int
    offset: int
    kind: GapKind
    reason: str
    records: int | None = None
    position: int | None = None

    def stands(self, *, newest_epoch: int, progress: Progress | None) -> bool:
        """Whether the partition is still there: no later incarnation began, nor did MirrorMaker 2 copy on meanwhile."""
        theirs = progress if progress is not None and progress.epoch is None else None
        # Forwards or, where its position was beyond the log, to its beginning.
        moved = theirs is not None and self.position is not None and self.position != theirs.last_offset + 1
        return self.epoch >= newest_epoch and not moved

    def to_bytes(self) -> bytes:
        """Value of the record that keeps it."""
        fields: dict[str, Any] = {"epoch": self.epoch, "offset": self.offset, "kind": self.kind.name}
        fields["reason"] = self.reason
        more = {"records": self.records, "position": self.position}
        return _json(fields | {key: value for key, value in more.items() if value is not None})

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Halt:
        """Read the value of a halt; raises KeyError, TypeError or ValueError."""
        records, position = content.get("records"), content.get("position")
        return cls(
            epoch=int(content["epoch"]),
            offset=int(content["offset"]),
            kind=GapKind[str(content["kind"])],
            reason=str(content["reason"]),
            records=None if records is None else int(records),
            position=None if position is None else int(position),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why incarnation `epoch` halted at upstream `offset`, where that is no gap to decide on: it shows in the status.

    Unlike at a `Halt`, each lease tries again; once the partition copies on, the record is deleted.
    """

    epoch: int
    offset: int
    reason: str

    def stands(self, *, newest_epoch: int, progress: Progress | None) -> bool:
        """Whether the partition is still there: no later incarnation began, and nothing from there on was copied."""
        if self.epoch < newest_epoch or progress is None:
            return self.epoch >= newest_epoch
        return (progress.epoch is not None and progress.epoch < self.epoch) or progress.last_offset < self.offset

    def to_bytes(self) -> bytes:
        """Value of the record that keeps it."""
        return _json({"epoch": self.epoch, "offset": self.offset, "reason": self.reason})

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Stop:
        """Read the value of a stop; raises KeyError, TypeError or ValueError."""
        return cls(epoch=int(content["epoch"]), offset=int(content["offset"]), reason=str(content["reason"]))


class NotStopped(NamedTuple):
    """A deleted `Stop`: the partition copies on."""


Said = Progress | Announcement | Halt | Stop | NotStopped


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A partition of the source as the progress topic names it: by the source's alias, and by the connector's name.

    Only progress itself is kept by connector, since only it is Connect's.
    """

    cluster: str
    topic: str
    partition: int
    connector: str = CONNECTOR

    def progress_key(self) -> bytes:
        """Key of its progress record: Connect's bytes, in the order of Java's HashMap."""
        return _json([self.connector, {"cluster": self.cluster, "partition": self.partition, "topic": self.topic}])

    def announcement_key(self, epoch: int) -> bytes:
        """Key of the announcement of one of its epochs."""
        fields = {"cluster": self.cluster, "epoch": epoch, "partition": self.partition, "topic": self.topic}
        return _json([_OWN, fields])

    def halt_key(self) -> bytes:
        """Key of the record that says where it halted."""
        fields = {"cluster": self.cluster, "halt": True, "partition": self.partition, "topic": self.topic}
        return _json([_OWN, fields])

    def stop_key(self) -> bytes:
        """Key of the record that says why it halted; earlier releases skip it."""
        fields = {"cluster": self.cluster, "partition": self.partition, "stop": True, "topic": self.topic}
        return _json([_OWN, fields])


@dataclass(slots=True)
class Known:
    """What the progress topic says of one source partition: its progress, announced epochs, where and why it halted."""

    progress: Progress | None = None
    announced: dict[int, Announcement] = field(default_factory=dict)
    halt: Halt | None = None
    stop: Stop | None = None

    @property
    def standing_halt(self) -> Halt | None:
        """The gap at which the partition is halted, None if there is none or it was left behind."""
        halt = self.halt
        return halt if halt and halt.stands(newest_epoch=self._newest_epoch, progress=self.progress) else None

    @property
    def standing_stop(self) -> Stop | None:
        """Why the partition is halted otherwise, None if it is not."""
        stop = self.stop
        return stop if stop and stop.stands(newest_epoch=self._newest_epoch, progress=self.progress) else None

    @property
    def _newest_epoch(self) -> int:
        known = -1 if self.progress is None or self.progress.epoch is None else self.progress.epoch
        return max([known, *self.announced])

    def take(self, said: Said | None) -> None:
        """Note one more record of the topic; None is a tombstone of the progress."""
        if isinstance(said, Announcement):
            self.announced[said.epoch] = said
        elif isinstance(said, Halt):
            self.halt = said
        elif isinstance(said, Stop | NotStopped):
            self.stop = said if isinstance(said, Stop) else None
        else:
            self.progress = said

    def to_json(self) -> str:
        """All of it as one text, for a lease's row."""
        return json.dumps(
            {
                "progress": self.progress and json.loads(self.progress.to_bytes()),
                "announced": {epoch: json.loads(said.to_bytes()) for epoch, said in self.announced.items()},
                "halt": self.halt and json.loads(self.halt.to_bytes()),
                "stop": self.stop and json.loads(self.stop.to_bytes()),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Known:
        """Read what `to_json` wrote."""
        content = json.loads(text)
        return cls(
            progress=content["progress"] and Progress.read(content["progress"]),
            announced={int(epoch): Announcement.read(int(epoch), said) for epoch, said in content["announced"].items()},
            halt=content["halt"] and Halt.read(content["halt"]),
            stop=content.get("stop") and Stop.read(content["stop"]),
        )


def parse(key: bytes | None, value: bytes | None) -> tuple[SourcePartition, Said | None] | None:
    """Read a record of the progress topic.

    Returns the partition and what is said of it, with None for a tombstone; None for everything that is not ours to
    read: positions of other kinds of connectors, and records that are malformed.
    """
    try:
        connector, fields = json.loads(key or b"")
        where = SourcePartition(str(fields["cluster"]), str(fields["topic"]), int(fields["partition"]))
        if connector != _OWN:
            where = replace(where, connector=str(connector))
            return where, None if value is None else Progress.read(json.loads(value))
        if "stop" in fields:
            return where, NotStopped() if value is None else Stop.read(json.loads(value))
        content = json.loads(value or b"")
        return where, Halt.read(content) if "halt" in fields else Announcement.read(int(fields["epoch"]), content)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _json(content: object) -> bytes:
    return _JSON.encode(content).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOut:
    """Records that cannot go over, from upstream `offset` up to `next_offset`, and why."""

    offset: int
    next_offset: int
    size_bytes: int
    reason: str
