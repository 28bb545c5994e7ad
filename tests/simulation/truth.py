"""What the source had, record by record, and what the target may have of it: checked at every append and at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import TYPE_CHECKING

from mirrorless.batches.rebuild import records_of
from tests.simulation.world import Violation

if TYPE_CHECKING:
    from mirrorless.clusters.topic_partition import TopicPartition
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.log import PartitionLog
    from tests.support.fake_log import Batch


class Fate(IntEnum):
    """What became of a record on the source."""

    OPEN = auto()
    """Its transaction has not ended."""
    COMMITTED = auto()
    ABORTED = auto()
    GONE = auto()
    """It was committed; then retention, an election or the deletion of its topic took it."""
    NEVER = auto()
    """It was not committed, and is not there any more."""


_VALUE_BYTES = 8
_ORIGIN_AT = 48
_NUMBER = (1 << _ORIGIN_AT) - 1


def value_of(number: int, origin: int = 0) -> bytes:
    """The value of the record with a number, that was written to the cluster `origin` first."""
    return (origin << _ORIGIN_AT | number).to_bytes(_VALUE_BYTES)


def numbers_of(batch: Batch, origin: int = 0) -> list[int]:
    """The numbers of a batch's records of an origin, which have no keys and no headers; none for filler and markers."""
    return [one & _NUMBER for one in _values(batch) if one >> _ORIGIN_AT == origin]


def _values(batch: Batch) -> list[int]:
    if batch.header.is_control or not batch.header.record_count:
        return []
    rests = records_of(batch.header, batch.body).rests
    return [int.from_bytes(rest[2:10]) for rest in rests if len(rest) == _VALUE_BYTES + 3]


@dataclass(slots=True)
class SourceRecords:
    """The records of one source partition by number, from 0: fate and offset; `lost` are ended ones that came back."""

    fates: list[Fate] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    def add(self, offset: int, count: int, fate: Fate) -> range:
        """Note records that were produced; returns their numbers."""
        first = len(self.fates)
        self.fates += [fate] * count
        self.offsets += range(offset, offset + count)
        return range(first, first + count)

    def end(self, numbers: range, *, commit: bool) -> None:
        """Note the end of a transaction."""
        for number in numbers:
            if self.fates[number] is Fate.OPEN:
                self.fates[number] = Fate.COMMITTED if commit else Fate.ABORTED

    def lose(self, *, below: int = 0, since: int | None = None) -> None:
        """Note that records at offsets before or from one on are not there any more."""
        for number in range(len(self.fates) - 1, -1, -1):
            offset = self.offsets[number]
            if offset < 0:
                continue
            if offset < below or (since is not None and offset >= since):
                fate = self.fates[number]
                self.offsets[number] = -1
                self.fates[number] = Fate.GONE if fate in (Fate.COMMITTED, Fate.GONE) else Fate.NEVER


class Truth:
    """Follows one flow from `source` to `target`, whose remote topics are named by `remote`.

    `identical`: offsets have to be the same. `origin` is the source's number in the values of its records: the topics
    of both clusters may have records of the other one too, which are not copied back. `cut` are source partitions that
    lost a tail: where the progress is older than that, the copy continues at the progress, says so, and repeats
    records; none may be missing all the same.
    """

    def __init__(
        self,
        source: SimulatedCluster,
        target: SimulatedCluster,
        remote: dict[str, str],
        *,
        identical: bool,
        origin: int = 0,
    ) -> None:
        self.origin = origin
        self.source = source
        self.target = target
        self.remote = remote
        self.identical = identical
        self.records: dict[TopicPartition, SourceRecords] = {}
        self._origin = {remote_topic: topic for topic, remote_topic in remote.items()}
        self._last: dict[TopicPartition, tuple[object, int]] = {}
        self._retained: dict[TopicPartition, tuple[object, int]] = {}
        self.cut: set[TopicPartition] = set()
        self.copied = 0
        target.appended = self.appended

    def of(self, place: TopicPartition) -> SourceRecords:
        """The records of a source partition."""
        return self.records.setdefault(place, SourceRecords())

    def appended(self, place: TopicPartition, base: int) -> None:
        """Check a batch that was appended to a remote partition; raises `Violation`."""
        topic = self._origin.get(place[0])
        if topic is None:
            return
        log = self.target.log(*place)
        batch = log.batches[-1]
        numbers = numbers_of(batch, self.origin)
        if len(numbers) < len(_values(batch)):
            raise Violation(
                f"{place[0]}-{place[1]} offset {base}: records of {self.target.alias} are copied back to it"
            )
        if not numbers:
            return
        self.copied += len(numbers)
        origin = topic, place[1]
        last = self._last_number(place, log)
        if self.target.world.trace is not None:
            header = batch.header
            writer = f"epoch {header.producer_epoch} sequence {header.base_sequence}"
            self.target.world.note(f"{place[0]}-{place[1]} offset {base}: {numbers[0]} to {numbers[-1]}, {writer}")
        name = f"{place[0]}-{place[1]} offset {base}"
        self._check(origin, last, numbers, name)
        if self.identical:
            self._check_offsets(origin, batch, numbers, name)
        self._last[place] = (log, max(last, numbers[-1]))

    def _check(self, origin: TopicPartition, last: int, numbers: list[int], name: str) -> None:
        fates = self.of(origin).fates
        for number in numbers:
            if number <= last and origin not in self.cut:
                raise Violation(f"{name}: record {number} after record {last}: repeated, or out of order")
            if fates[number] not in (Fate.COMMITTED, Fate.GONE):
                raise Violation(f"{name}: record {number} is {fates[number].name} on the source")
            for skipped in range(last + 1, number):
                if fates[skipped] is Fate.COMMITTED:
                    raise Violation(f"{name}: record {skipped} is skipped: {number} follows {last}")
            last = max(last, number)

    def _check_offsets(self, origin: TopicPartition, batch: Batch, numbers: list[int], name: str) -> None:
        known = self.of(origin).offsets
        found = records_of(batch.header, batch.body).offsets
        for number, offset in zip(numbers, found, strict=True):
            if known[number] not in (-1, offset):
                raise Violation(f"{name}: record {number} is at {offset}, on the source at {known[number]}")

    def _last_number(self, place: TopicPartition, log: PartitionLog) -> int:
        """The number of the last record before the batch that was appended just now."""
        known = self._last.get(place)
        if known is not None and known[0] is log:
            return known[1]
        return max(self._last_of(log.batches[:-1]), self._deleted(place, log))

    def retained(self, place: TopicPartition, offset: int) -> None:
        """Note that retention is about to delete what a remote partition has before an offset."""
        log = self.target.log(*place)
        gone = self._last_of([one for one in log.batches if one.header.next_offset <= offset])
        self._retained[place] = (log, max(gone, self._deleted(place, log)))

    def cleaned(self, place: TopicPartition, offsets: set[int]) -> None:
        """Note that compaction removed records of a source partition.

        If the last one that the target has, or a later one, is among them, then the copy may have nothing to compare
        with: it continues at the progress, and says so.
        """
        records, remote = self.of(place), (self.remote[place[0]], place[1])
        last = self._end_of(remote) if self.target.has(remote) else -1
        for number, offset in enumerate(records.offsets):
            if offset in offsets:
                committed = records.fates[number] in (Fate.COMMITTED, Fate.GONE)
                records.fates[number] = Fate.GONE if committed else Fate.NEVER
                records.offsets[number] = -1
                if number >= last:
                    self.cut.add(place)

    def _deleted(self, place: TopicPartition, log: PartitionLog) -> int:
        """The last record that retention deleted from a log, -1 if there is none."""
        found = self._retained.get(place)
        return found[1] if found is not None and found[0] is log else -1

    def _end_of(self, place: TopicPartition) -> int:
        log = self.target.log(*place)
        known = self._last.get(place)
        if known is None or known[0] is not log:
            known = self._last[place] = (log, max(self._last_of(log.batches), self._deleted(place, log)))
        return known[1]

    def truncated(self, place: TopicPartition) -> None:
        """Note that a remote partition lost its tail, or was recreated."""
        self._last.pop(place, None)

    def missing(self) -> list[str]:
        """A line for each remote partition that lacks a record of the source's end."""
        lines = []
        for (topic, partition), records in self.records.items():
            if topic not in self.source.topics or not self.source.has((topic, partition)):
                continue
            place = self.remote[topic], partition
            if not self.target.has(place):
                lines.append(f"{place[0]}-{partition} does not exist")
                continue
            last = next((n for n in range(len(records.fates) - 1, -1, -1) if records.fates[n] is Fate.COMMITTED), -1)
            have = self._end_of(place)
            if have < last:
                lines.append(f"{place[0]}-{partition} ends with record {have}, not {last}")
        return lines

    def check_whole(self) -> None:
        """Check all that the target has at the end, as a reader of its logs; raises `Violation`."""
        if lines := self.missing():
            raise Violation("; ".join(lines))
        for (topic, partition), records in self.records.items():
            place = self.remote[topic], partition
            if not self.source.has((topic, partition)) or not self.target.has(place):
                continue
            log = self.target.log(*place)
            have = self._have(log)
            if sorted(set(have)) != have and (topic, partition) not in self.cut:
                raise Violation(f"{place[0]}-{partition} has records twice or out of order: {have}")
            has, first = set(have), self._deleted(place, log)
            lacks = [n for n, fate in enumerate(records.fates) if fate is Fate.COMMITTED and n not in has and n > first]
            if lacks:
                raise Violation(f"{place[0]}-{partition} lacks records {lacks[:5]}")

    def _have(self, log: PartitionLog) -> list[int]:
        return [number for batch in log.batches for number in numbers_of(batch, self.origin)]

    def _last_of(self, batches: list[Batch]) -> int:
        """The last number in some batches, -1 if there is none."""
        return next((found[-1] for batch in reversed(batches) if (found := numbers_of(batch, self.origin))), -1)
