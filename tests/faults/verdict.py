"""What became of the records: both sides read to their ends and held against each other, partition by partition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.faults.load import COMPACTED, PLAIN, TRANSACTIONS
from tests.support.identical import records_at
from tests.support.world import Seen, World, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.faults.load import Load


@dataclass(slots=True)
class Verdict:
    """Counts over all partitions; `disordered` are partitions whose records are all there, but not in order.

    `moved` are records at other offsets than on the source, where they are to have the same.
    """

    records: int = 0
    duplicates: int = 0
    losses: int = 0
    strangers: int = 0
    disordered: int = 0
    moved: int = 0

    @property
    def equal(self) -> bool:
        """Whether the target holds exactly what it should."""
        return not (self.duplicates or self.losses or self.strangers or self.disordered or self.moved)


def judge(world: World, load: Load, *, identical: bool = False) -> Verdict:
    """Compare the three topics, and whether offsets are `identical`. The target is read uncommitted."""
    verdict = Verdict()
    judge_whole(world, verdict)
    judge_compacted(world, load, verdict)
    if identical:
        judge_offsets(world, verdict)
    return verdict


def judge_whole(world: World, verdict: Verdict) -> None:
    """Compare the topics that are not compacted."""
    for topic in (PLAIN, TRANSACTIONS):
        ours = read(world.source, topic, isolation="read_committed")
        theirs = read(world.target, world.remote(topic))
        for partition, expected in ours.items():
            _compare(verdict, [_whole(one) for one in expected], [_whole(one) for one in theirs[partition]])


def judge_compacted(world: World, load: Load, verdict: Verdict) -> None:
    """Compare the compacted topic.

    The cleaner may have been faster than the copy, or run on the target too: what is there must be in order and once,
    and the last value of every key must be there.
    """
    theirs = read(world.target, world.remote(COMPACTED))
    for partition, written in load.written.items():
        there = [(one.key or b"", one.value or b"") for one in theirs[partition]]
        last = dict(written)
        kept = [pair for pair in written if last[pair[0]] == pair[1]]
        latest = [pair for pair in there if last.get(pair[0]) == pair[1]]
        _compare(verdict, kept, latest)
        older = [pair for pair in there if last.get(pair[0]) != pair[1]]
        verdict.records += len(older)
        verdict.duplicates += len(older) - len(set(older))
        verdict.strangers += len(set(there) - set(written))
        places = {pair: number for number, pair in enumerate(written)}
        order = [places[pair] for pair in there if pair in places]
        verdict.disordered += order != sorted(order)


def judge_offsets(world: World, verdict: Verdict) -> None:
    """Count the records of the target whose offset has another record on the source.

    The cleaner of the source may have removed what the target still has: of a key that was written again later.
    """
    for topic in (PLAIN, TRANSACTIONS, COMPACTED):
        ours = records_at(world.source, topic)
        for partition, records in records_at(world.target, world.remote(topic), isolation="read_uncommitted").items():
            expected = {one.offset: one for one in ours[partition]}
            cleaned = {one.offset for one in records} - expected.keys() if topic == COMPACTED else set()
            verdict.moved += sum(expected.get(one.offset) != one for one in records if one.offset not in cleaned)


def _whole(one: Seen) -> tuple[object, ...]:
    return one.key, one.value, one.timestamp, tuple(one.headers or ())


def _compare(verdict: Verdict, expected: Sequence[object], there: Sequence[object]) -> None:
    wanted, found = Counter(expected), Counter(there)
    verdict.records += len(there)
    verdict.losses += sum((wanted - found).values())
    verdict.duplicates += sum(count - 1 for one, count in found.items() if count > 1 and one in wanted)
    verdict.strangers += sum(count for one, count in found.items() if one not in wanted)
    verdict.disordered += wanted == found and list(expected) != list(there)
