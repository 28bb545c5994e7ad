"""Reads exactly the given offsets with Spark's Kafka source and a flow's client settings."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from mirrorless.clusters.java_settings import HONOURED_COMMON_KEYS, JavaSettings
from mirrorless.settings.client_keys import BOOTSTRAP_SERVERS, SECURITY_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Cluster
    from mirrorless.verify.selected_offsets import SelectedOffsets

Ranges = dict["TopicPartition", tuple[int, int]]
"""First and end offset by topic and partition."""

# More than Java's 500 records per poll and 1 MB per partition: a task reads one partition from beginning to end.
_READING: Final = {
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(50 << 20),
}


def java_options(cluster: Cluster, *, isolation: str) -> dict[str, str]:
    """Return the options with which Spark's executors read `cluster`; they contain secrets.

    Java's client gets the settings unchanged from the file, with references resolved: they are its own.
    """
    settings = JavaSettings(cluster, "consumer")
    found = {f"kafka.{key}": settings.raw(key) for key in (BOOTSTRAP_SERVERS, *SECURITY_KEYS, *HONOURED_COMMON_KEYS)}
    return {key: value for key, value in found.items() if value is not None} | {
        **_READING,
        "kafka.isolation.level": isolation,
        "kafka.allow.auto.create.topics": "false",  # Java's consumer would create a topic that was deleted meanwhile
        "includeHeaders": "true",
    }


def select(rows: DataFrame, offsets: SelectedOffsets) -> DataFrame:
    """Return the rows at these offsets, in their order."""
    if offsets.is_all:
        return rows
    has = offsets.has

    def chosen(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset"))
            numbers = [number for number, row in enumerate(zip(*columns, strict=True)) if has(*row)]
            yield batch.take(pa.array(numbers, pa.int64()))

    return rows.mapInArrow(chosen, rows.schema)


def read(spark: SparkSession, options: Mapping[str, str], ranges: Ranges) -> DataFrame:
    """Rows of these offsets, one Spark partition per Kafka partition, in the order of its offsets."""
    firsts: dict[str, dict[str, int]] = defaultdict(dict)
    ends: dict[str, dict[str, int]] = defaultdict(dict)
    for (topic, partition), (first, end) in ranges.items():
        firsts[topic][str(partition)] = first
        ends[topic][str(partition)] = end
    assigned = {topic: sorted(map(int, some)) for topic, some in firsts.items()}
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(firsts))
        .option("endingOffsets", json.dumps(ends))
        .load()
    )
