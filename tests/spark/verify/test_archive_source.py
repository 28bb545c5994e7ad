"""An archive as a DataFrame; here, since these tests share a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, PySparkException

from mirrorless.archive.object_store import open_store
from mirrorless.archive.spark_source import ArchiveSource
from tests.support.archived import LOG, plain, put, remember, transaction

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_an_archive_is_read_with_sql(spark: SparkSession, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}")
    end = put(store, 0, [plain(0), plain(10)])
    remember(store, {("orders", 0): 20}, at_ms=1_000)
    end = put(store, end, [*transaction(20, 5, commit=False), *transaction(31, 5, commit=True)], aborted=[(5, 20)])
    put(store, end, [plain(42)])
    remember(store, {("orders", 0): 52}, at_ms=2_000)
    spark.dataSource.register(ArchiveSource)
    read = spark.read.format("mirrorless.archive").option("location", store.location)

    rows = read.option("topics", "ord.*, payments").load()
    found = rows.selectExpr("topic", "partition", "offset", "timestamp", "key", "size(headers) AS headers").collect()
    assert [one.offset for one in found] == [*range(20), *range(31, 41), *range(42, 52)]
    assert {(one.topic, one.partition, one.headers) for one in found} == {("orders", 0, 0)}
    assert read.option("until", "1970-01-01T00:00:01.5Z").load().count() == 20
    assert read.option("topics", "payments").load().count() == 0

    (tmp_path / LOG.object(20, 0)).unlink()
    with pytest.raises((AnalysisException, PySparkException), match="its predecessor ends at 20"):
        read.option("topics", "orders").option("until", "1970-01-01T00:00:09Z").load().count()
