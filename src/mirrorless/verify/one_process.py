"""Compares in this process, without Spark: one partition after the other, in bounded memory.

Windows and latest values are those of `windows` and `latest`, with other hashes. What is too much for one process is
refused before it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from mirrorless.errors import ClusterError, PrerequisiteError
from mirrorless.verify.findings import Difference, DifferenceKind
from mirrorless.verify.fingerprints import Fingerprints
from mirrorless.verify.latest_limits import MOST_KEYS, Latest, LatestLimits, cut_of, limits_of
from mirrorless.verify.window import Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mirrorless.settings import Flow
    from mirrorless.verify.alignment import Print
    from mirrorless.verify.pairing import Paired
    from mirrorless.verify.ranges import OffsetRange
    from mirrorless.verify.selected_offsets import Selection

MOST_OFFSETS: Final = 20_000_000
"""Offsets that are read at most, of both sides: some minutes."""
MOST_HELD_KEYS: Final = 1_000_000
"""Keys of one compacted partition that are kept at most, of both sides: some hundred MB."""
_HINT: Final = (
    "compare with Spark (pip install 'mirrorless[spark]' and a JDK 17), or less with --topics, --since or --sample"
)
_COMPARED: Final = ("value", "headers", "timestamp")


@dataclass(slots=True)
class _Digest:
    """One side of a window."""

    records: int = 0
    digest: int | None = None
    first: int | None = None
    last: int | None = None
    size_bytes: int = 0


@dataclass(slots=True)
class _Last:
    """The last record of a key before the cut, None if there is none, and whether there is a newer one."""

    record: Print | None = None
    is_newer: bool = False


class OneProcess:
    """The `Engine` without Spark."""

    name: Final = "this process"
    errors: Final[tuple[type[Exception], ...]] = (ClusterError,)

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def windows(
        self, stretches: Sequence[OffsetRange], *, window_records: int, selection: Selection
    ) -> list[list[Window]]:
        """As of `Engine`; raises `PrerequisiteError` if it is too much for one process."""
        _refuse_too_much(
            sum(one.end_upstream - one.first_upstream + one.end_downstream - one.first_downstream for one in stretches)
        )
        with _Sides(self._flow, selection) as sides:
            return [self._windows(sides, one, window_records) for one in stretches]

    def latest(self, partitions: Sequence[Paired], *, selection: Selection) -> list[Latest]:
        """As of `Engine`; raises `PrerequisiteError` if it is too much for one process."""
        _refuse_too_much(sum(end - first for one in partitions for first, end in (one.source, one.target)))
        with _Sides(self._flow, selection) as sides:
            return [_compared(sides, one) for one in partitions]

    def _windows(self, sides: _Sides, one: OffsetRange, window_records: int) -> list[Window]:
        ours = _digests(
            sides.source,
            sides.source.read(one.topic, one.partition, first=one.first_upstream, end=one.end_upstream),
            window_records,
            exact=one.same_offsets,
        )
        theirs = _digests(
            sides.target,
            sides.target.read(one.remote_topic, one.partition, first=one.first_downstream, end=one.end_downstream),
            window_records,
            exact=one.same_offsets,
        )
        return [
            Window(
                number=number,
                records=(here := ours[number] if number < len(ours) else _Digest()).records,
                remote_records=(there := theirs[number] if number < len(theirs) else _Digest()).records,
                digest=here.digest,
                remote_digest=there.digest,
                first_upstream=here.first,
                last_upstream=here.last,
                first_downstream=there.first,
                last_downstream=there.last,
                size_bytes=here.size_bytes + there.size_bytes,
            )
            for number in range(max(len(ours), len(theirs)))
        ]


class _Sides:
    """Readers of both clusters."""

    def __init__(self, flow: Flow, selection: Selection) -> None:
        self.source = Fingerprints(flow.source, isolation="read_committed", selected=selection.source)
        self.target = Fingerprints(flow.target, isolation="read_committed", selected=selection.target)

    def __enter__(self) -> _Sides:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()
        self.target.close()


def _refuse_too_much(offsets: int) -> None:
    if offsets > MOST_OFFSETS:
        raise PrerequisiteError(
            f"{offsets:,} offsets of both sides are to be read, and without Spark {MOST_OFFSETS:,} at most: {_HINT}"
        )


def _digests(reader: Fingerprints, records: Iterable[Print], window_records: int, *, exact: bool) -> list[_Digest]:
    found: list[_Digest] = []
    before = reader.read_bytes
    for number, record in enumerate(records):
        if number % window_records == 0:
            found.append(_Digest(first=record.offset, digest=0))
        one = found[-1]
        at = record.offset if exact else number
        content = repr((at, *record.content)).encode()
        one.digest = (one.digest or 0) ^ int.from_bytes(blake2b(content, digest_size=8).digest(), "big", signed=True)
        one.records += 1
        one.last = record.offset
        one.size_bytes += reader.read_bytes - before
        before = reader.read_bytes
    return found


def _compared(sides: _Sides, one: Paired) -> Latest:
    """Compare the latest values of one partition, as `latest` does."""
    cut, limits, found = cut_of(one), limits_of(one), Latest()
    topic, partition = one.place
    before = sides.source.read_bytes + sides.target.read_bytes
    ours = _last(sides.source.read(topic, partition, first=one.source[0], end=one.source[1]), cut.upstream)
    theirs = _last(
        sides.target.read(one.remote_topic, partition, first=one.target[0], end=one.target[1]),
        cut.downstream,
        held=len(ours),
    )
    found.size_bytes = sides.source.read_bytes + sides.target.read_bytes - before
    differences: list[Difference] = []
    nothing = _Last()
    for key in ours.keys() | theirs.keys():
        here, there = ours.get(key, nothing), theirs.get(key, nothing)
        if here.is_newer or there.is_newer:
            found.in_flight += 1
            continue
        kind = _outcome(here.record, there.record, limits)
        if kind == "earlier":
            found.earlier += 1
        elif kind == "by retention":
            found.by_retention += 1
        else:
            found.keys += 1
            if isinstance(kind, DifferenceKind):
                found.different += 1
                differences.append(_difference(one, kind, here.record, there.record))
    differences.sort(key=lambda each: (each.upstream or -1, each.downstream or -1))
    found.differences += differences[:MOST_KEYS]
    return found


def _last(records: Iterator[Print], cut: int, *, held: int = 0) -> dict[bytes, _Last]:
    found: dict[bytes, _Last] = {}
    for record in records:
        if record.key is None:  # from before the topic was compacted; the cleaner removes them
            continue
        if record.key not in found and len(found) + held >= MOST_HELD_KEYS:
            raise PrerequisiteError(
                f"a compacted partition has more than {MOST_HELD_KEYS:,} keys on both sides, which are too many "
                f"without Spark: {_HINT}"
            )
        one = found.setdefault(record.key, _Last())
        if record.offset < cut:
            one.record = record
        else:
            one.is_newer = True
    return found


def _outcome(here: Print | None, there: Print | None, limits: LatestLimits) -> DifferenceKind | str:
    """The result of a key without a newer record, in the order of `latest`."""
    if (here is None or here.value is None) and (there is None or there.value is None):
        return "same"
    is_early = here is None or here.offset < limits.begin_upstream
    if is_early and (there is None or there.offset < limits.begin_downstream):
        return "earlier"
    if there is None:
        assert here is not None
        return "by retention" if here.offset < limits.kept_upstream else DifferenceKind.MISSING
    if here is None:
        return "by retention" if there.offset < limits.kept_downstream else DifferenceKind.EXTRA
    return "same" if here.content == there.content else DifferenceKind.CHANGED


def _difference(paired: Paired, kind: DifferenceKind, here: Print | None, there: Print | None) -> Difference:
    fields: tuple[str, ...] = ()
    if here is not None and there is not None:
        fields = tuple(name for name in _COMPARED if getattr(here, name) != getattr(there, name))
    return Difference(
        kind=kind,
        topic=paired.place[0],
        remote_topic=paired.remote_topic,
        partition=paired.place[1],
        upstream=None if here is None else here.offset,
        downstream=None if there is None else there.offset,
        records=1,
        fields=fields,
    )
