"""Compacted topics: the latest value of each key on both sides, computed by Spark.

The cleaner removes older values at any time, independently on each side. It keeps the last
record of each key; it removes a tombstone after `delete.retention.ms`, so a missing tombstone equals an existing one.
Both sides are cut at the last certain pair of offsets; a key with a newer record after the cut, on either
side, is not compared, because the cleaner may have removed the record before it. Nor is a key whose last record is
before the beginning of the copy, nor one that retention deleted on one side (`compact,delete`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 -- the usual alias

from mirrorless.verify.findings import Difference, DifferenceKind
from mirrorless.verify.kafka_source import Ranges, java_options, read, select
from mirrorless.verify.latest_limits import MOST_KEYS, Latest, cut_of, limits_of
from mirrorless.verify.selected_offsets import EVERYTHING
from mirrorless.verify.windows import headers_hash

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow
    from mirrorless.verify.pairing import Paired
    from mirrorless.verify.selected_offsets import SelectedOffsets, Selection

_KEY: Final = ("topic", "partition", "key")
_FIELDS: Final = ("value", "headers", "timestamp")
_SAME, _MISSING, _EXTRA, _CHANGED = "same", "missing", "extra", "changed"
_DIFFERENT: Final = (_MISSING, _EXTRA, _CHANGED)
_IN_FLIGHT, _EARLIER, _BY_RETENTION = "in flight", "earlier", "by retention"
_LIMITS: Final = (
    "topic string, partition int, begin_upstream bigint, begin_downstream bigint, kept_upstream bigint, "
    "kept_downstream bigint"
)
_SIDE: Final = (
    "topic string, partition int, key binary, {0}offset bigint, {0}tombstone boolean, {0}value bigint, "
    "{0}headers bigint, {0}timestamp timestamp, {0}newer int, {0}size bigint"
)


def compare_latest(
    spark: SparkSession, flow: Flow, partitions: Sequence[Paired], *, selection: Selection = EVERYTHING
) -> list[Latest]:
    """Compare the latest values of these partitions, of the `selection`; raises Spark's errors."""
    numbers = {one.place: number for number, one in enumerate(partitions)}
    here: dict[TopicPartition, tuple[TopicPartition, int]] = {
        one.place: (one.place, cut_of(one).upstream) for one in partitions
    }
    there: dict[TopicPartition, tuple[TopicPartition, int]] = {
        (one.remote_topic, one.place[1]): (one.place, cut_of(one).downstream) for one in partitions
    }
    ours = {one.place: one.source for one in partitions}
    theirs = {(one.remote_topic, one.place[1]): one.target for one in partitions}
    options = (java_options(cluster, isolation="read_committed") for cluster in (flow.source, flow.target))
    left = _latest(spark, next(options), ours, here, side="", selected=selection.source)
    right = _latest(spark, next(options), theirs, there, side="remote_", selected=selection.target)
    limits = [(*one.place, *limits_of(one)) for one in partitions]
    joined = (
        left.join(right, list(_KEY), "full")
        .join(F.broadcast(spark.createDataFrame(limits, _LIMITS)), ["topic", "partition"])
        .withColumn("outcome", _outcome())
        .drop("key")
        .cache()
    )
    found = [Latest() for _ in partitions]
    size = F.coalesce("size", F.lit(0)) + F.coalesce("remote_size", F.lit(0))
    counted = joined.groupBy("topic", "partition", "outcome").agg(F.count("*").alias("keys"), F.sum(size).alias("size"))
    for row in counted.toArrow().to_pylist():
        one = found[numbers[row["topic"], row["partition"]]]
        one.size_bytes += row["size"]
        outcome, keys = row["outcome"], row["keys"]
        one.in_flight += keys if outcome == _IN_FLIGHT else 0
        one.earlier += keys if outcome == _EARLIER else 0
        one.by_retention += keys if outcome == _BY_RETENTION else 0
        one.keys += keys if outcome in (_SAME, *_DIFFERENT) else 0
        one.different += keys if outcome in _DIFFERENT else 0
    for one, paired in zip(found, partitions, strict=True):
        if one.different:
            topic, partition = paired.place
            of_one = joined.where((F.col("topic") == topic) & (F.col("partition") == partition))
            rows = of_one.where(F.col("outcome").isin(*_DIFFERENT)).orderBy("offset", "remote_offset")
            one.differences += [_difference(paired, row) for row in rows.limit(MOST_KEYS).toArrow().to_pylist()]
    joined.unpersist()
    return found


def _latest(
    spark: SparkSession,
    options: Mapping[str, str],
    ranges: Ranges,
    cuts: Mapping[TopicPartition, tuple[TopicPartition, int]],
    *,
    side: str,
    selected: SelectedOffsets,
) -> DataFrame:
    """The last record of each key before the cut, whether there is a newer one after it, and all records' bytes."""
    ranges = {place: both for place, both in ranges.items() if both[0] < both[1]}
    if not ranges:
        return spark.createDataFrame([], _SIDE.format(side))
    limits = [(*place, cuts[place][0][0], cuts[place][1]) for place in ranges]
    rows = (
        select(read(spark, options, ranges), selected)
        .join(
            F.broadcast(spark.createDataFrame(limits, "topic string, partition int, name string, cut bigint")),
            ["topic", "partition"],
        )
        .drop("topic")
        .withColumnRenamed("name", "topic")
    )
    rows = rows.where(F.col("key").isNotNull())  # from before the topic was compacted; the cleaner removes them
    before = F.col("offset") < F.col("cut")
    record = F.struct(
        F.col("offset"),
        F.col("value").isNull().alias("tombstone"),
        F.xxhash64("value").alias("value"),
        headers_hash().alias("headers"),
        F.col("timestamp"),
    )
    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    latest = rows.groupBy(*_KEY).agg(
        F.max(F.when(before, record)).alias("latest"),
        F.max(F.when(before, 0).otherwise(1)).alias(f"{side}newer"),
        F.sum(size).alias(f"{side}size"),
    )
    names = ("offset", "tombstone", *_FIELDS)
    return latest.select(
        *_KEY,
        *(F.col(f"latest.{name}").alias(f"{side}{name}") for name in names),
        f"{side}newer",
        f"{side}size",
    )


def _outcome() -> Column:
    """The result of a key; columns are those of both sides and of `LatestLimits`."""
    gone = F.col("offset").isNull() | F.col("tombstone")
    remote_gone = F.col("remote_offset").isNull() | F.col("remote_tombstone")
    before = F.col("offset").isNull() | (F.col("offset") < F.col("begin_upstream"))
    remote_before = F.col("remote_offset").isNull() | (F.col("remote_offset") < F.col("begin_downstream"))
    same = F.expr("true")
    for name in _FIELDS:
        same = same & F.col(name).eqNullSafe(F.col(f"remote_{name}"))
    return (
        F.when((F.coalesce("newer", F.lit(0)) == 1) | (F.coalesce("remote_newer", F.lit(0)) == 1), _IN_FLIGHT)
        .when(gone & remote_gone, _SAME)
        .when(before & remote_before, _EARLIER)
        .when(F.col("remote_offset").isNull() & (F.col("offset") < F.col("kept_upstream")), _BY_RETENTION)
        .when(F.col("offset").isNull() & (F.col("remote_offset") < F.col("kept_downstream")), _BY_RETENTION)
        .when(F.col("remote_offset").isNull(), _MISSING)
        .when(F.col("offset").isNull(), _EXTRA)
        .when(same & (F.col("tombstone") == F.col("remote_tombstone")), _SAME)
        .otherwise(_CHANGED)
    )


def _difference(paired: Paired, row: Mapping[str, Any]) -> Difference:
    kind = {_MISSING: DifferenceKind.MISSING, _EXTRA: DifferenceKind.EXTRA, _CHANGED: DifferenceKind.CHANGED}[
        row["outcome"]
    ]
    changed = kind is DifferenceKind.CHANGED
    return Difference(
        kind=kind,
        topic=paired.place[0],
        remote_topic=paired.remote_topic,
        partition=paired.place[1],
        upstream=row["offset"],
        downstream=row["remote_offset"],
        records=1,
        fields=tuple(name for name in _FIELDS if changed and row[name] != row[f"remote_{name}"]),
    )
