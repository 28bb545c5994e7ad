"""Runs of records without gaps in offsets, by which offsets translate exactly.

A run of `n` records is upstream `[u, u + n)` and downstream `[d, d + n)`. Every offset in it has one answer, and the
offset after it too. A run of no records is a point: where an epoch of the copy began, or the end of the copy.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.batches.header import SEQUENCES
from mirrorless.progress.epoch_kind import EpochKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.formats import OffsetSync
    from mirrorless.progress.records import Announcement, Progress

MOST_RUNS: Final = 2048
"""Maximum number of runs per partition; beyond it shorter ones of the older half are dropped: walks get longer."""


class Run(NamedTuple):
    """A number of records on both sides, without a gap, from these first offsets on."""

    first_upstream: int
    first_downstream: int
    records: int

    @property
    def end_upstream(self) -> int:
        """Upstream offset after the run."""
        return self.first_upstream + self.records

    @property
    def end_downstream(self) -> int:
        """Downstream offset after the run."""
        return self.first_downstream + self.records

    @property
    def shift(self) -> int:
        """The difference between the two sides."""
        return self.first_upstream - self.first_downstream

    def before(self, other: Run) -> bool:
        """Whether all of this run is before the other one, on both sides."""
        return self.end_upstream <= other.first_upstream and self.end_downstream <= other.first_downstream

    def agrees(self, other: Run) -> bool:
        """Whether both can be true of one copy: one before the other, or consecutive."""
        return self.shift == other.shift or self.before(other) or other.before(self)


@dataclass(slots=True)
class _Partition:
    runs: list[Run] = field(default_factory=list)
    foreign: list[int] = field(default_factory=list)
    newest: tuple[int, int] = (-1, -1)
    resets: int = 0

    def forget(self) -> None:
        """Forget everything: both sides have changed."""
        self.runs.clear()
        self.foreign.clear()
        self.resets += 1


class RunStore:
    """The runs of all partitions of one flow, from its offset syncs in the order of their topic."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, _Partition] = {}

    def add(self, sync: OffsetSync) -> None:
        """Add the next sync; if either side went back, everything known of the partition is forgotten.

        A sync of MirrorMaker 2 has no run: it only shows a part of which only pairs are known.
        """
        partition = self._partitions.setdefault((sync.topic, sync.partition), _Partition())
        upstream, downstream = pair = sync.last_upstream, sync.last_downstream
        if pair != partition.newest and (upstream < partition.newest[0] or downstream <= partition.newest[1]):
            partition.forget()
        partition.newest = pair
        if sync.run is None:
            if partition.runs or not partition.foreign:
                end = partition.runs[-1].end_upstream if partition.runs else 0
                if not partition.foreign or partition.foreign[-1] < end:
                    partition.foreign.append(upstream)
            return
        run = Run(upstream - sync.run + 1, downstream - sync.run + 1, sync.run)
        runs = partition.runs
        while runs and run.first_upstream <= runs[-1].end_upstream and run.shift == runs[-1].shift:
            earlier = runs.pop()
            first = min(earlier.first_upstream, run.first_upstream)
            run = Run(first, first - run.shift, run.end_upstream - first)
        if runs and not runs[-1].before(run):
            partition.forget()
        runs.append(run)
        if len(runs) > MOST_RUNS:
            partition.runs = _thinned(runs)

    def forget(self) -> None:
        """Record that the topic is read from its beginning again; derived results are void."""
        for partition in self._partitions.values():
            partition.forget()
            partition.newest = (-1, -1)

    def runs(self, place: TopicPartition) -> Sequence[Run]:
        """The runs of a partition, in order on both sides."""
        return self._partitions[place].runs if place in self._partitions else ()

    def foreign(self, place: TopicPartition) -> Sequence[int]:
        """One upstream offset of each part that MirrorMaker 2 copied."""
        return self._partitions[place].foreign if place in self._partitions else ()

    def resets(self, place: TopicPartition) -> int:
        """How often the partition's runs were forgotten; results derived from them before are void."""
        return self._partitions[place].resets if place in self._partitions else 0


def _thinned(runs: list[Run]) -> list[Run]:
    half = len(runs) // 2
    pairs = zip(runs[0:half:2], runs[1:half:2], strict=False)
    older = [max(pair, key=lambda run: run.records) for pair in pairs]
    return older + runs[half - half % 2 :]


def points(progress: Progress | None, announced: Mapping[int, Announcement]) -> list[Run]:
    """The certain points in the progress topic: where each epoch began, and the end of the copy.

    Earlier epochs are used only up to where a later one began, on either side.
    """
    known = [(one.epoch, Run(one.start, one.downstream, 0)) for one in _begun(announced, progress)]
    if progress is not None and progress.epoch is not None and progress.last_downstream is not None:
        known.append((progress.epoch, Run(progress.last_offset + 1, progress.last_downstream + 1, 0)))
        known.sort()
    chain: list[Run] = []
    for _, point in known:
        while chain and not (chain[-1].before(point) and chain[-1].first_upstream < point.first_upstream):
            chain.pop()
        chain.append(point)
    return chain


def _begun(announced: Mapping[int, Announcement], progress: Progress | None) -> list[Announcement]:
    """The epochs in order, without those in which nothing was ever appended as far as known (decision 0003).

    Such an epoch says where the copy would have resumed, not where it did.
    """
    epochs = [announced[epoch] for epoch in sorted(announced)]
    surely = {one.last_begun for one in epochs}
    if progress is not None and progress.epoch is not None:
        surely.add(progress.epoch)
    begun: list[Announcement] = []
    later: Announcement | None = None
    stood_at: int | None = None  # the target's earliest epoch when a later one was announced
    for one in reversed(epochs):
        at_once = later is not None and later.downstream == one.downstream
        passed_by = stood_at is not None and stood_at < one.epoch
        if one.epoch in surely or not (at_once or passed_by or _is_void(one, progress)):
            begun.append(one)
        if one.last_begun is not None:
            stood_at = one.last_begun if stood_at is None else min(stood_at, one.last_begun)
        later = one
    return begun[::-1]


def _is_void(announcement: Announcement, progress: Progress | None) -> bool:
    """Whether the copy resumed elsewhere than at the position after which this epoch was announced to begin.

    The progress may be about records that the target lost, though the epoch begins before them.
    """
    if announcement.after is None or progress is None or progress.epoch is None or progress.sequence is None:
        return False
    epoch, sequence = announcement.after
    if progress.epoch != epoch:
        return epoch < progress.epoch < announcement.epoch and progress.sequence > 0
    lost = announcement.kind is EpochKind.TARGET_LOST
    return not lost and 0 < (progress.sequence - sequence) % SEQUENCES < SEQUENCES // 2


def taken_over(announced: Mapping[int, Announcement]) -> list[int]:
    """Upstream offsets up to which MirrorMaker 2 had copied when this program took over."""
    return [
        one.start for one in announced.values() if one.kind is EpochKind.AFTER_MIRRORMAKER2 or one.behind is not None
    ]


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """Everything certain about one partition, in order on both sides.

    `foreign` are upstream offsets in parts that MirrorMaker 2 copied, where nothing can be counted.
    """

    runs: tuple[Run, ...]
    foreign: tuple[int, ...] = ()

    @classmethod
    def of(cls, runs: Iterable[Run], points: Sequence[Run], *, foreign: Iterable[int] = ()) -> OffsetMap:
        """Join runs and points; runs that a point contradicts are of an earlier epoch and are dropped."""
        kept = [run for run in runs if all(run.agrees(point) for point in points)]
        return cls(tuple(_merged(sorted([*kept, *points]))), tuple(foreign))

    def at_downstream(self, offset: int) -> tuple[Run | None, Run | None]:
        """The same, by the downstream side."""
        place = bisect_right(self.runs, offset, key=lambda run: run.first_downstream)
        return (
            self.runs[place - 1] if place else None,
            self.runs[place] if place < len(self.runs) else None,
        )

    def first_at_downstream(self, offset: int) -> Run:
        """The first of the runs that downstream `offset` is in, or just after; there must be one."""
        place = bisect_right(self.runs, offset, key=lambda run: run.first_downstream) - 1
        while place and self.runs[place - 1].end_downstream >= offset:
            place -= 1
        return self.runs[place]

    def countable(self, run: Run, following: Run | None) -> bool:
        """Whether all records between two neighbours, or after the last run, were copied by this program."""
        return not any(
            run.end_upstream <= offset and (following is None or offset <= following.first_upstream)
            for offset in self.foreign
        )

    def fits(self, upstream: int, downstream: int) -> bool:
        """Whether a pair can be of this copy: not after what comes later, and with no more records than offsets."""
        run, following = self.at(upstream)
        if run is not None and upstream - downstream < run.shift:
            return False
        return run is None or following is None or downstream <= following.first_downstream

    def at(self, offset: int) -> tuple[Run | None, Run | None]:
        """The run that begins at or before upstream `offset`, and the one that begins after it."""
        place = bisect_right(self.runs, offset, key=lambda run: run.first_upstream)
        return (
            self.runs[place - 1] if place else None,
            self.runs[place] if place < len(self.runs) else None,
        )


def _merged(runs: Iterable[Run]) -> Iterator[Run]:
    """Join consecutive runs without a gap; points inside a run vanish."""
    last: Run | None = None
    for run in runs:
        if last is not None and run.shift == last.shift and run.first_upstream <= last.end_upstream:
            end = max(last.end_upstream, run.end_upstream)
            last = last._replace(records=end - last.first_upstream)
        else:
            if last is not None:
                yield last
            last = run
    if last is not None:
        yield last
