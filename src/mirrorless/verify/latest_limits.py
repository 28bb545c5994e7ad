"""Which latest values of compacted topics can be compared, and the result; see `latest`. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.verify.ranges import Pair, pair_at_upstream, pair_near

if TYPE_CHECKING:
    from mirrorless.verify.findings import Difference
    from mirrorless.verify.pairing import Paired

MOST_KEYS: Final = 100


@dataclass(slots=True)
class Latest:
    """One compacted partition: `keys` compared, how many of them differ, and the differences of the first.

    Not compared are keys with a newer record after the cut (`in_flight`), those whose last record is before the
    beginning of the copy (`earlier`), and those of which one side has deleted the record with everything before its
    first offset (`by_retention`).
    """

    keys: int = 0
    different: int = 0
    size_bytes: int = 0
    in_flight: int = 0
    earlier: int = 0
    by_retention: int = 0
    differences: list[Difference] = field(default_factory=list)


def cut_of(one: Paired) -> Pair:
    """The offsets up to which both sides of a partition are compared; empty if no pair is certain."""
    return one.certain_end or Pair(one.source[0], one.target[0])


class LatestLimits(NamedTuple):
    """Offsets before which the two sides may differ: upstream and downstream.

    `begin` is where the copy began. Records before `kept_upstream` are or may be deleted on the target, those before
    `kept_downstream` on the source.
    """

    begin_upstream: int
    begin_downstream: int
    kept_upstream: int
    kept_downstream: int


def limits_of(one: Paired) -> LatestLimits:
    """Limits of a partition; if it is not known how offsets correspond, a missing record counts as deleted."""
    first, remote_first = one.source[0], one.target[0]
    cut = cut_of(one)
    kept_upstream = (pair_near(one.line, remote_first) or cut).upstream if remote_first else 0
    kept_downstream = (pair_at_upstream(one.line, first) or cut).downstream if first else 0
    return LatestLimits(*(one.beginning or Pair(0, 0)), kept_upstream, kept_downstream)
