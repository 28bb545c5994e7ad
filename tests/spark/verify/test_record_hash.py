"""Records that differ in anything have different hashes: nulls, empty values, and headers most of all."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mirrorless.verify.windows import record_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "key binary, value binary, headers array<struct<key: string, value: binary>>, timestamp timestamp"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_no_two_of_these_are_alike(spark: SparkSession) -> None:
    headers = [
        None,
        [("a", b"1")],
        [("a", None)],
        [("a", b"")],
        [("a", b"1"), ("a", b"1")],
        [("a", b"1"), ("b", b"2")],
        [("b", b"2"), ("a", b"1")],
        [("a", None), ("b", b"x")],
        [("a", b"x"), ("b", None)],
        [("a", b"b"), ("x", None)],
        [("a", None), ("a", b"")],
        [("a", b""), ("a", None)],
        [("a", b"1,2"), ("b", b"3")],
        [("a", b"1"), ("b", b"2,3")],
        [("ab", b"c")],
        [("a", b"bc")],
        [("", b"abc")],
    ]
    rows = [
        (None, None, None, NOON),
        (b"", None, None, NOON),
        (None, b"", None, NOON),
        (b"", b"", None, NOON),
        (b"k", None, None, NOON),
        (None, b"k", None, NOON),
        (b"ab", b"c", None, NOON),
        (b"a", b"bc", None, NOON),
        (b"k", b"v", None, NOON.replace(microsecond=1_000)),
        *((b"k", b"v", one, NOON) for one in headers),
        *((None, None, one, NOON) for one in headers[1:]),
    ]
    table = spark.createDataFrame(rows, SCHEMA)
    assert table.select(record_hash().alias("hash")).distinct().count() == len(rows)
