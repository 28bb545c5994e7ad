"""The outcome of every key of a compacted topic, with the rows of both sides at hand instead of clusters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from mirrorless.offsets.offset_map import OffsetMap, Run
from mirrorless.settings import Cluster, Flow
from mirrorless.verify import latest
from mirrorless.verify.findings import DifferenceKind
from mirrorless.verify.latest import compare_latest
from mirrorless.verify.latest_limits import MOST_KEYS, Latest
from mirrorless.verify.pairing import Paired
from mirrorless.verify.ranges import Pair
from mirrorless.verify.results import keyed_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from mirrorless.verify.kafka_source import Ranges

FLOW = Flow(source=Cluster(alias="a", bootstrap_servers="a:1"), target=Cluster(alias="b", bootstrap_servers="b:1"))
SCHEMA = (
    "topic string, partition int, offset bigint, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, timestamp timestamp"
)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Row(NamedTuple):
    """A record of a compacted topic."""

    offset: int
    key: int
    value: bytes | None = b"value"


@pytest.fixture
def compare(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Compare:
    return Compare(spark, monkeypatch)


class Compare:
    """Compares one partition whose offsets are the same on both sides."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._spark = spark
        self._rows: Mapping[str, Sequence[Row]] = {}
        monkeypatch.setattr(latest, "read", self._read)

    def _read(self, spark: SparkSession, options: object, ranges: Ranges) -> DataFrame:  # noqa: ARG002
        rows = [
            (topic, partition, row.offset, b"%d" % row.key, row.value, None, NOON)
            for (topic, partition), (first, end) in ranges.items()
            for row in self._rows[topic]
            if first <= row.offset < end
        ]
        return spark.createDataFrame(rows, SCHEMA)

    def __call__(
        self, ours: Sequence[Row], theirs: Sequence[Row], *, end: int, began: int = 0, first: int = 0
    ) -> tuple[Latest, Paired]:
        self._rows = {"t": ours, "a.t": theirs}
        one = Paired(
            place=("t", 0),
            remote_topic="a.t",
            source=(0, end),
            target=(first, end),
            line=OffsetMap((Run(began, began, end - began),)),
            beginning=Pair(began, began),
        )
        (found,) = compare_latest(self._spark, FLOW, [one])
        return found, one


def test_a_changed_key_behind_many_that_retention_took(compare: Compare) -> None:
    ours = [Row(number, number) for number in range(5_001)]
    found, one = compare(ours, [Row(5_000, 5_000, b"other")], end=5_001, first=5_000)
    assert (found.keys, found.different, found.by_retention) == (1, 1, 5_000)
    assert [(other.kind, other.upstream, other.fields) for other in found.differences] == [
        (DifferenceKind.CHANGED, 5_000, ("value",))
    ]
    result = keyed_result(one, found)
    assert not result.more
    assert result.notes == ("5000 keys were deleted by retention on one side only",)


def test_more_keys_than_are_shown(compare: Compare) -> None:
    ours = [Row(number, number) for number in range(2 * MOST_KEYS)]
    found, one = compare(ours, [], end=len(ours))
    assert (found.keys, found.different, len(found.differences)) == (len(ours), len(ours), MOST_KEYS)
    assert keyed_result(one, found).more


def test_keys_from_before_the_copy_began(compare: Compare) -> None:
    ours = [Row(0, 1), Row(1, 2), Row(2, 3), Row(10, 2), Row(11, 4), Row(12, 5)]
    # Of an earlier copy: key 6, which the source has no more. Written by somebody else: key 3.
    theirs = [Row(5, 6), Row(10, 2), Row(11, 4), Row(13, 3, b"foreign")]
    found, one = compare(ours, theirs, end=14, began=10)
    assert (found.keys, found.earlier) == (4, 2)
    assert {(other.kind, other.upstream) for other in found.differences} == {
        (DifferenceKind.CHANGED, 2),
        (DifferenceKind.MISSING, 12),
    }
    assert keyed_result(one, found).notes == ("2 keys whose last record is older than the copy are not compared",)


def test_tombstones_that_are_gone_are_as_good_as_there(compare: Compare) -> None:
    found, _ = compare([Row(0, 1, None), Row(1, 2)], [Row(1, 2), Row(3, 3, None)], end=4)
    assert (found.keys, found.different) == (3, 0)
