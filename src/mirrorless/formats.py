"""The records of MirrorMaker 2's internal topics, byte for byte: heartbeats, checkpoints and offset syncs.

Strings are INT16 byte length and UTF-8; numbers are big-endian. Every reader ignores bytes after the last field, where
this program has fields of its own in offset syncs and checkpoints. A record that cannot be read becomes a
`Malformed` with the reason, so that callers skip and count it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_PAIR: Final = struct.Struct(">qq")
_VERSIONED_PAIR: Final = struct.Struct(">hqq")
_VERSIONED: Final = struct.Struct(">hq")
_OWN: Final = struct.Struct(">q?")
_NEVER: Final = -1
_LONGEST_BYTES: Final = 0x7FFF
_VERSION: Final = 0

INDEX_SLOTS: Final = 1024
"""Number of index syncs of one partition before the oldest is overwritten."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A record that cannot be parsed, and why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A heartbeat of the flow `source`->`target`; `timestamp_ms` is when it was emitted."""

    source: str
    target: str
    timestamp_ms: int

    def key(self) -> bytes:
        """Key bytes; ValueError where an alias is too long."""
        return _string(self.source) + _string(self.target)

    def value(self) -> bytes:
        """Value bytes."""
        return _VERSIONED.pack(_VERSION, self.timestamp_ms)

    @property
    def text(self) -> str:
        """The line of Kafka's `HeartbeatFormatter` (KIP-597)."""
        return (
            f"Heartbeat{{sourceClusterAlias={self.source}, targetClusterAlias={self.target}, "
            f"timestamp={self.timestamp_ms}}}"
        )

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> Heartbeat | Malformed:
        """Read a record of a heartbeats topic."""
        try:
            source, at = _read_string(key or b"", 0)
            target, _ = _read_string(key or b"", at)
            _, timestamp_ms = _VERSIONED.unpack_from(value or b"")
        except (struct.error, ValueError) as error:
            return Malformed(f"not a heartbeat: {error}")
        return cls(source=source, target=target, timestamp_ms=timestamp_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A group's offset on the source, and the corresponding offset in the remote `topic` on the target.

    Two fields are this program's, and follow those of MirrorMaker 2 where one is set: `committed` is the offset that it
    committed last for the group on the target, None if it never did; `returns` says that the group itself consumed in
    the source topic, which is a copy of the target's own.
    """

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""
    committed: int | None = None
    returns: bool = False

    def key(self) -> bytes:
        """Key bytes; ValueError where a name is too long."""
        return _string(self.group) + _string(self.topic) + _INT32.pack(self.partition)

    def value(self) -> bytes:
        """Value bytes; ValueError where the metadata is too long."""
        value = _VERSIONED_PAIR.pack(_VERSION, self.upstream, self.downstream) + _string(self.metadata)
        if self.committed is None and not self.returns:
            return value
        return value + _OWN.pack(_NEVER if self.committed is None else self.committed, self.returns)

    @property
    def text(self) -> str:
        """The line of Kafka's `CheckpointFormatter` (KIP-597)."""
        return (
            f"Checkpoint{{consumerGroupId={self.group}, topicPartition={self.topic}-{self.partition}, "
            f"upstreamOffset={self.upstream}, downstreamOffset={self.downstream}, metadata={self.metadata}}}"
        )

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> Checkpoint | Malformed:
        """Read a record of a checkpoints topic. Any version is read as the first one, as MirrorMaker 2 does."""
        try:
            group, topic, partition = read_checkpoint_key(key)
            _, upstream, downstream = _VERSIONED_PAIR.unpack_from(value or b"")
            metadata, at = _read_string(value or b"", _VERSIONED_PAIR.size)
        except (struct.error, ValueError) as error:
            return Malformed(f"not a checkpoint: {error}")
        committed, returns = _NEVER, False
        if len(value or b"") == at + _OWN.size:  # other bytes were added by another program
            committed, returns = _OWN.unpack_from(value or b"", at)
        return cls(
            group=group,
            topic=topic,
            partition=partition,
            upstream=upstream,
            downstream=downstream,
            metadata=metadata,
            committed=None if committed < 0 else committed,
            returns=returns,
        )


def read_checkpoint_key(key: bytes | None) -> tuple[str, str, int]:
    """Group, remote topic and partition of a checkpoint's key; raises struct.error or ValueError."""
    group, at = _read_string(key or b"", 0)
    topic, at = _read_string(key or b"", at)
    (partition,) = _INT32.unpack_from(key or b"", at)
    return group, topic, partition


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """The source's record at `last_upstream` was written to `last_downstream`; the topic is the source's.

    `run` is how many records end here without a gap in offsets on either side, None if unknown: MirrorMaker 2 does not
    write it. `block` is the slot of an index sync, None for a tail sync.
    """

    topic: str
    partition: int
    last_upstream: int
    last_downstream: int
    run: int | None = None
    block: int | None = None

    def key(self) -> bytes:
        """Key bytes; ValueError where the topic's name is too long."""
        key = _string(self.topic) + _INT32.pack(self.partition)
        return key if self.block is None else key + _INT64.pack(self.block)

    def value(self) -> bytes:
        """Value bytes."""
        pair = _PAIR.pack(self.last_upstream, self.last_downstream)
        return pair if self.run is None else pair + _INT64.pack(self.run)

    @property
    def text(self) -> str:
        """The line of Kafka's `OffsetSyncFormatter` (KIP-597)."""
        return (
            f"OffsetSync{{topicPartition={self.topic}-{self.partition}, "
            f"upstreamOffset={self.last_upstream}, downstreamOffset={self.last_downstream}}}"
        )

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> OffsetSync | Malformed:
        """Read a record of an offset syncs topic. A run that reaches below offset 0 makes it malformed."""
        key, value = key or b"", value or b""
        try:
            topic, at = _read_string(key, 0)
            (partition,) = _INT32.unpack_from(key, at)
            upstream, downstream = _PAIR.unpack_from(value)
            block = _last_int64(key, at + _INT32.size)
            run = _last_int64(value, _PAIR.size)
        except (struct.error, ValueError) as error:
            return Malformed(f"not an offset sync: {error}")
        if run is not None and not 1 <= run <= min(upstream, downstream) + 1:
            return Malformed(f"not an offset sync: a run of {run} records that ends at {upstream} and {downstream}")
        return cls(
            topic=topic, partition=partition, last_upstream=upstream, last_downstream=downstream, run=run, block=block
        )


def _last_int64(data: bytes, at: int) -> int | None:
    """The field that this program adds, if nothing else follows; other bytes were added by another program."""
    return int(_INT64.unpack_from(data, at)[0]) if len(data) == at + _INT64.size else None


def _string(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_BYTES:
        raise ValueError(f"a string of {len(encoded)} bytes; at most {_LONGEST_BYTES} are allowed")
    return _INT16.pack(len(encoded)) + encoded


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, at)
    begin = at + _INT16.size
    if length < 0 or begin + length > len(data):
        raise ValueError(f"a string of {length} bytes, but {len(data) - begin} are left")
    return data[begin : begin + length].decode(), begin + length
