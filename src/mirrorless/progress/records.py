"""Records of the progress topic: how far a source partition was copied, in Connect's own format.

Key and value are JSON without blanks, so that MirrorMaker 2 finds its position in records of this program and vice
versa. Connect ignores the additional fields beside `offset`. Announcements of epochs have separate keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mirrorless.errors import GapKind
from mirrorless.progress.epoch_kind import EpochKind, kind_named

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECTOR = "MirrorSourceConnector"
"""The name that MirrorMaker 2 gives its connector in dedicated mode."""
_OWN = "mirrorless"
_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


class Progress(NamedTuple):
    """A partition's copy, as of its last acknowledged record.

    `last_offset` is the upstream offset of that record, `last_downstream` its offset on the target (-1 before the
    first). `sequence` is that of the next record in epoch `epoch`; both are None in MirrorMaker 2's records.
    `leader_epoch` is the source leader's at that record, which shows whether a log was truncated (KIP-320). `run` is
    how many records without a gap on the source end there.
    """

    last_offset: int
    sequence: int | None = None
    epoch: int | None = None
    last_downstream: int | None = None
    leader_epoch: int | None = None
    run: int | None = None

    @property
    def order(self) -> tuple[int, int]:
        """A sort key: of two progress records of a partition, the later one has the greater key."""
        return -1 if self.epoch is None else self.epoch, self.last_offset

    def is_older_than(self, other: Progress) -> bool:
        """Whether it was overtaken by `other`, whatever was written last: a process that was suspended writes late.

        What MirrorMaker 2 writes follows what was written before.
        """
        return self.epoch is not None and other.epoch is not None and self.order < other.order

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

    Its first record is that at upstream offset `start`, with sequence 0, and is appended at the target's offset
    `downstream`. `topic_id` is the source topic's (KIP-516), None if brokers do not support it: the epoch is of
    that topic, and not of a recreated one. `after` is the epoch and the next sequence of the target
    when this was decided; if the target has moved on from there, the announcement is void. None is always valid.
    `behind` is the position of MirrorMaker 2 in whose place it begins elsewhere, since it cannot resume there.
    `stood_at` is the epoch of the copy's last record on the target, if a reset that is always valid could learn it.
    `source_end` is the source's end when the copy began, by itself or by a reset: what another flow copies from
    the target to the source after it is a loop. `remote_id` is the remote topic's id when the epoch was announced, None
    if unknown: a recreated one has none of its records.
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
    remote_id: str | None = None

    @property
    def last_begun(self) -> int | None:
        """The last epoch with records on the target when this was announced; None if unknown."""
        return self.stood_at if self.after is None else self.after[0]

    def goes_on_from(self, position: int) -> bool:
        """Whether this epoch is the one that follows MirrorMaker 2, which would have read `position` next."""
        return position in (self.start, self.behind)

    def to_bytes(self) -> bytes:
        """Value of the announcement record."""
        fields: dict[str, Any] = {"start": self.start, "downstream": self.downstream, "reason": self.reason}
        fields["kind"] = self.kind.name
        more = {
            "topicId": self.topic_id,
            "after": self.after,
            "behind": self.behind,
            "stoodAt": self.stood_at,
            "sourceEnd": self.source_end,
            "remoteId": self.remote_id,
        }
        return _json(fields | {key: value for key, value in more.items() if value is not None})

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
            remote_id=None if content.get("remoteId") is None else str(content["remoteId"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Why epoch `epoch` halted at upstream `offset`; a later epoch is not affected.

    With a `kind` it is a gap to decide on, of so many `records`. It is stored because not every gap can be detected
    again: a truncated log grows beyond the offset. `position` is the next offset to copy, 0 if unknown, None in records
    of earlier releases.

    Without one it is a *stop*, which is shown in the status: each lease retries, and once the partition continues, the
    record is deleted. It has a key of its own, or it could replace a gap that another process has just stored.
    """

    epoch: int
    offset: int
    reason: str
    kind: GapKind | None = None
    records: int | None = None
    position: int | None = None

    def stands(self, *, newest_epoch: int, progress: Progress | None) -> bool:
        """Whether the partition is still there: no later epoch began, and what copies it has not moved it."""
        if self.epoch < newest_epoch or progress is None:
            return self.epoch >= newest_epoch
        if self.kind is None:
            return (progress.epoch is not None and progress.epoch < self.epoch) or progress.last_offset < self.offset
        # MirrorMaker 2 moved it forwards or, if its position was beyond the log, to its beginning.
        return progress.epoch is not None or self.position in (None, progress.last_offset + 1)

    def to_bytes(self) -> bytes:
        """Value of the record that stores it."""
        fields: dict[str, Any] = {"epoch": self.epoch, "offset": self.offset}
        if self.kind is not None:
            fields["kind"] = self.kind.name
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
            reason=str(content["reason"]),
            kind=GapKind[str(content["kind"])] if "kind" in content else None,
            records=None if records is None else int(records),
            position=None if position is None else int(position),
        )


class NotStopped(NamedTuple):
    """A deleted stop: the partition continues."""


class Claim(NamedTuple):
    """Who writes markers for a copy with identical offsets: claim `number` is by `owner`, or gives it up (`released`).

    Each claim is a compare-and-append after the one before it, whose number is one less.
    """

    number: int
    owner: str
    released: bool = False

    def to_bytes(self) -> bytes:
        """Value of the record that stores it."""
        return _json({"claim": self.number, "owner": self.owner, "released": self.released})

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Claim:
        """Read the value of a claim; raises KeyError, TypeError or ValueError."""
        return cls(int(content["claim"]), str(content["owner"]), bool(content["released"]))


Said = Progress | Announcement | Halt | NotStopped | Claim


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A partition of the source in the keys of the progress topic: by the source's alias, and by the connector's name.

    Only progress itself is stored by connector, since only it is Connect's.
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
        """Key of the record of where it halted."""
        fields = {"cluster": self.cluster, "halt": True, "partition": self.partition, "topic": self.topic}
        return _json([_OWN, fields])

    def stop_key(self) -> bytes:
        """Key of the record of why it halted; earlier releases skip it."""
        fields = {"cluster": self.cluster, "partition": self.partition, "stop": True, "topic": self.topic}
        return _json([_OWN, fields])

    def claim_key(self) -> bytes:
        """Key of the record of who writes its markers; earlier releases skip it."""
        fields = {"claim": True, "cluster": self.cluster, "partition": self.partition, "topic": self.topic}
        return _json([_OWN, fields])


@dataclass(slots=True)
class Known:
    """The content of the progress topic about a source partition: progress, announced epochs, halt, stop and claim."""

    progress: Progress | None = None
    announced: dict[int, Announcement] = field(default_factory=dict)
    halt: Halt | None = None
    stop: Halt | None = None
    claim: Claim | None = None

    @property
    def standing_halt(self) -> Halt | None:
        """The gap at which the partition is halted, None if there is none or it was skipped."""
        halt = self.halt
        return halt if halt and halt.stands(newest_epoch=self._newest_epoch, progress=self.progress) else None

    @property
    def shown_halt(self) -> Halt | None:
        """The gap or the stop at which the partition is halted, None if it is not."""
        stop = self.stop
        stands = stop is not None and stop.stands(newest_epoch=self._newest_epoch, progress=self.progress)
        return self.standing_halt or (stop if stands else None)

    @property
    def target_end(self) -> int:
        """The offset before which the target's log does not end if it lost nothing."""
        progress = self.progress
        if progress is None:
            return 0
        if progress.epoch is None:
            return 1  # MirrorMaker 2 stores no offsets of the target
        own = self.announced.get(progress.epoch)
        if own is not None and own.kind is EpochKind.TURN:
            return 0  # where the turn begins on the source: reserved offsets, which the target need not have yet
        copied = 0 if progress.last_downstream is None else progress.last_downstream + 1
        return min([copied, *(one.downstream for epoch, one in self.announced.items() if epoch > progress.epoch)])

    @property
    def _newest_epoch(self) -> int:
        known = -1 if self.progress is None or self.progress.epoch is None else self.progress.epoch
        return max([known, *self.announced])

    @property
    def is_identical(self) -> bool:
        """Whether the copy has identical offsets, by its last epoch and its progress."""
        if not self.announced:
            return False
        newest = self.announced[max(self.announced)]
        begun = self.progress is not None and self.progress.epoch == newest.epoch and bool(self.progress.sequence)
        if not begun and newest.start != newest.downstream:
            return False
        return offsets_differ(newest, self.progress) is None

    def take(self, said: Said | None) -> None:
        """Process one more record of the topic; None is a tombstone of the progress."""
        if isinstance(said, Announcement):
            self.announced[said.epoch] = said
        elif isinstance(said, Halt) and said.kind is not None:
            self.halt = said
        elif isinstance(said, Halt | NotStopped):
            self.stop = said if isinstance(said, Halt) else None
        elif isinstance(said, Claim):
            self.claim = said
        elif said is None or self.progress is None or not said.is_older_than(self.progress):
            self.progress = said

    def to_json(self) -> str:
        """All of it as one string, for a lease's row."""
        return json.dumps(
            {
                "progress": self.progress and json.loads(self.progress.to_bytes()),
                "announced": {epoch: json.loads(said.to_bytes()) for epoch, said in self.announced.items()},
                "halt": self.halt and json.loads(self.halt.to_bytes()),
                "stop": self.stop and json.loads(self.stop.to_bytes()),
                "claim": self.claim and json.loads(self.claim.to_bytes()),
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
            stop=content.get("stop") and Halt.read(content["stop"]),
            claim=content.get("claim") and Claim.read(content["claim"]),
        )


def offsets_differ(newest: Announcement, progress: Progress | None) -> str | None:
    """Why a copy's newest epoch has other offsets than the source, None if neither record shows that it has."""
    in_empty_topic = newest.downstream == 0 and newest.kind in (EpochKind.FIRST_COPY, EpochKind.RESET)
    if newest.start != newest.downstream and not in_empty_topic:
        return f"source offset {newest.start} is at offset {newest.downstream} of the remote partition"
    if progress is None or progress.epoch != newest.epoch or not progress.sequence:
        return None
    if progress.last_downstream == progress.last_offset:
        return None
    return f"source offset {progress.last_offset} is at offset {progress.last_downstream} of the remote partition"


def parse(key: bytes | None, value: bytes | None) -> tuple[SourcePartition, Said | None] | None:
    """Parse a record of the progress topic.

    Returns the partition and the content, with None for a tombstone; None for everything that is not this program's:
    offsets of other types of connectors, and malformed records.
    """
    try:
        connector, fields = json.loads(key or b"")
        where = SourcePartition(str(fields["cluster"]), str(fields["topic"]), int(fields["partition"]))
        if connector != _OWN:
            where = replace(where, connector=str(connector))
            return where, None if value is None else Progress.read(json.loads(value))
        if "stop" in fields:
            return where, NotStopped() if value is None else Halt.read(json.loads(value))
        content = json.loads(value or b"")
        if "claim" in fields:
            return where, Claim.read(content)
        return where, Halt.read(content) if "halt" in fields else Announcement.read(int(fields["epoch"]), content)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _json(content: object) -> bytes:
    return _JSON.encode(content).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOut:
    """Records that cannot be copied, from upstream `offset` up to `next_offset`, and why."""

    offset: int
    next_offset: int
    size_bytes: int
    reason: str

    @property
    def text(self) -> str:
        """Which offsets, how large, and why, for the operator."""
        last = self.next_offset - 1
        which = f"{self.offset}" if last == self.offset else f"{self.offset} to {last}"
        return f"{which}, {self.size_bytes} bytes: {self.reason}"
