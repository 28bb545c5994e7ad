"""The copy as a Structured Streaming query: leases in, the copier in the executors, reports out."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_run import run_lease
from mirrorless.copy.engines.spark.lease_source import PartitionLeases, arrow_schema, spark_schema
from mirrorless.copy.partition.lease_rows import LeaseRow, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from mirrorless.copy.flow.reference import FlowRef

_WORKERS_OF = "MIRRORLESS_COPY"
_building = threading.Lock()
"""The flows of a process share one environment, which has a flow's name only while its function is passed to Spark."""
_BATCH_ID = "streaming.sql.batchId"
"""Spark's local property for the number of the micro-batch (`MicroBatchExecution`)."""
_COLLECT_EVERY = 5_000
"""Number of additional objects before a collection; Python's own limit is 700."""


def start_copy(
    spark: SparkSession,
    place: FlowRef,
    *,
    checkpoint: str,
    control: Control,
    on_reports: Callable[[list[Report]], None],
) -> StreamingQuery:
    """Start the copy of one flow; `on_reports` receives every finished lease, with a report per partition.

    `checkpoint` is a folder that Spark requires; it may be lost without harm.
    """
    options = {"location": place.location, "flow": place.flow, "bounded": str(place.bounded).lower()}
    if control.folder is not None:
        options["control"] = control.folder
    with _building:
        spark.dataSource.register(PartitionLeases)
        leases = spark.readStream.format(PartitionLeases.name()).options(**options).load()
        with _workers_of(spark, place.flow):
            slots = control if control.for_slots else Control()
            reports = leases.mapInArrow(copier(place, slots), spark_schema(Report))

    def each_lease(reports: DataFrame, _lease: int) -> None:
        on_reports([Report(**row) for row in reports.toArrow().to_pylist()])

    return (
        reports.writeStream.queryName(place.flow)
        .option("checkpointLocation", checkpoint)
        .foreachBatch(each_lease)
        .start()
    )


@contextmanager
def _workers_of(spark: SparkSession, flow: str) -> Iterator[None]:
    """Run functions that are passed to Spark in this context in separate Python processes.

    Spark keeps idle ones by their environment (`PythonWorkerFactory`) and takes the one that waits longest. Otherwise
    a lease might begin in the process that read the rows of the one before, or in another
    flow's, and its copy would continue in a process that has no lease.
    """
    environment = spark.sparkContext.environment
    environment[_WORKERS_OF] = flow
    try:
        yield
    finally:
        del environment[_WORKERS_OF]


def collect() -> None:
    """Collect this process's reference cycles between two leases; in a lease seldom, and never during imports.

    A copy makes many tuples and no cycles, and looking for those took a fourteenth of its time. Its failures make some
    small ones with large contents: batches, connections, the clients of a slot that was dropped.
    """
    gc.collect()
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(_COLLECT_EVERY)


def copier(place: FlowRef, control: Control) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: rows of one slot in, a report for each out, until the lease ends."""

    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [LeaseRow(**row) for batch in batches for row in batch.to_pylist()]
        collect()
        context = TaskContext.get()
        assert context is not None
        lease = int(context.getLocalProperty(_BATCH_ID) or 0)
        slot = context.partitionId()
        reports = run_lease(place, rows, control=control, lease=lease, slot=slot, holdover=True) if rows else []
        yield pa.RecordBatch.from_pylist([report.as_row() for report in reports], schema=arrow_schema(Report))

    return copy
