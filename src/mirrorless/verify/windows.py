"""Count, digest and offsets of every window of a range, computed by Spark on both sides and joined.

A window has a fixed number of records, counted from the beginning of the range, so gaps in offsets do not matter. Its
digest is the exclusive or of each record's hash, which includes the record's number: a missing, duplicated, changed
or moved record results in another digest. With `mirrorless.offsets=identical` it includes the offset instead.
"""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 -- the usual alias

from mirrorless.verify.kafka_source import Ranges, java_options, read, select
from mirrorless.verify.selected_offsets import EVERYTHING
from mirrorless.verify.window import WINDOW_RECORDS, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow
    from mirrorless.verify.ranges import OffsetRange
    from mirrorless.verify.selected_offsets import Selection

_NUMBER_BITS: Final = 33
_NULL: Final = "null 5d0c9a83f1e64b27"
_KEY: Final = ("layer", "topic", "partition", "window")


def compare_windows(
    spark: SparkSession,
    flow: Flow,
    stretches: Sequence[OffsetRange],
    *,
    window_records: int = WINDOW_RECORDS,
    selection: Selection = EVERYTHING,
) -> list[list[Window]]:
    """Windows of each stretch, in order, of the `selection`; raises Spark's errors."""
    layers = _layers(stretches)
    source = java_options(flow.source, isolation="read_committed")
    target = java_options(flow.target, isolation="read_committed")
    ours: list[DataFrame] = []
    theirs: list[DataFrame] = []
    for number, layer in enumerate(layers):
        some = [stretches[index] for index in layer.values()]
        here: Ranges = {(one.topic, one.partition): (one.first_upstream, one.end_upstream) for one in some}
        there: Ranges = {(one.remote_topic, one.partition): (one.first_downstream, one.end_downstream) for one in some}
        for ranges, options, side, selected in (
            (here, source, ours, selection.source),
            (there, target, theirs, selection.target),
        ):
            if left := {place: both for place, both in ranges.items() if both[0] < both[1]}:
                side.append(numbered(select(read(spark, options, left), selected), number))
    if not ours and not theirs:
        return [[] for _ in stretches]
    remote = {one.remote_topic: one.topic for one in stretches}
    exact = {name for one in stretches if one.same_offsets for name in (one.topic, one.remote_topic)}
    joined = _joined(spark, _placed(ours, exact), _placed(theirs, exact), remote, window_records)
    found: list[list[Window]] = [[] for _ in stretches]
    for row in joined.toArrow().to_pylist():
        found[layers[row["layer"]][row["topic"], row["partition"]]].append(_window(row))
    return [sorted(windows) for windows in found]


def numbered(rows: DataFrame, layer: int) -> DataFrame:
    """Number the rows of each Kafka partition from 0 in the order of its offsets.

    Spark's own ids count the rows of a task, and a task reads one partition.
    """
    number = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << _NUMBER_BITS) - 1))
    return rows.withColumn("number", number).withColumn("layer", F.lit(layer))


def _placed(sides: Sequence[DataFrame], exact: Iterable[str]) -> list[DataFrame]:
    """Add what a record's hash includes of its place: the offset for topics in `exact`, else the number."""
    at = F.when(F.col("topic").isin(*exact), F.col("offset")).otherwise(F.col("number")) if exact else F.col("number")
    return [rows.withColumn("at", at) for rows in sides]


def headers_hash() -> Column:
    """Hash of the headers with their order and repeats, and 0 without any.

    Spark's hash skips nulls; the joined values show where they are. Not by `transform`, which would keep Spark
    from compiling the whole stage.
    """
    values = F.col("headers.value")
    joined = F.array_join(values.cast("array<string>"), ",", _NULL)
    hashed = F.xxhash64(F.size("headers"), F.col("headers.key"), values, joined)
    return F.when(F.col("headers").isNull(), F.lit(0).cast("bigint")).otherwise(hashed)


def record_hash(*first: Column) -> Column:
    """Hash of all fields of a record; Spark's hash skips nulls, so whether a field is null is hashed too."""
    nulls = (F.col("key").isNull(), F.col("value").isNull())
    return F.xxhash64(*first, *nulls, F.col("key"), F.col("value"), headers_hash(), F.col("timestamp"))


def _digested(rows: DataFrame, window_records: int) -> DataFrame:
    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    return (
        rows.withColumn("window", F.expr(f"number div {window_records}"))
        .groupBy(*_KEY)
        .agg(
            F.count("*").alias("records"),
            F.bit_xor(record_hash(F.col("at"))).alias("digest"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.sum(size).alias("size_bytes"),
        )
    )


def _joined(
    spark: SparkSession,
    ours: Sequence[DataFrame],
    theirs: Sequence[DataFrame],
    remote: Mapping[str, str],
    window_records: int,
) -> DataFrame:
    names = spark.createDataFrame(list(remote.items()), "topic string, source_topic string")
    empty = _EMPTY
    left = _digested(reduce(_union, ours), window_records) if ours else spark.createDataFrame([], empty)
    right = _digested(reduce(_union, theirs), window_records) if theirs else spark.createDataFrame([], empty)
    right = right.join(F.broadcast(names), "topic").drop("topic").withColumnRenamed("source_topic", "topic")
    for name in ("records", "digest", "first", "last", "size_bytes"):
        right = right.withColumnRenamed(name, f"remote_{name}")
    return left.join(right, list(_KEY), "full")


_EMPTY: Final = (
    "layer int, topic string, partition int, window bigint, records bigint, digest bigint, first bigint, last bigint, "
    "size_bytes bigint"
)


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionAll(other)


def _layers(stretches: Sequence[OffsetRange]) -> list[dict[TopicPartition, int]]:
    """Spark reads one range of a partition at a time: the k-th ranges of all partitions are read together."""
    layers: list[dict[TopicPartition, int]] = []
    depth: dict[TopicPartition, int] = defaultdict(int)
    for index, one in enumerate(stretches):
        place = (one.topic, one.partition)
        if depth[place] == len(layers):
            layers.append({})
        layers[depth[place]][place] = index
        depth[place] += 1
    return layers


def _window(row: Mapping[str, Any]) -> Window:
    return Window(
        number=row["window"],
        records=row["records"] or 0,
        remote_records=row["remote_records"] or 0,
        digest=row["digest"],
        remote_digest=row["remote_digest"],
        first_upstream=row["first"],
        last_upstream=row["last"],
        first_downstream=row["remote_first"],
        last_downstream=row["remote_last"],
        size_bytes=(row["size_bytes"] or 0) + (row["remote_size_bytes"] or 0),
    )
