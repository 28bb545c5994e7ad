"""How many slots the workers of a job have room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def executor_cores(spark: SparkSession) -> int | None:
    """Return the cores of the executors that are there; None where slots are threads of this process.

    A slot's task lasts the whole lease, so of more slots than cores some would wait for the next one to begin.
    """
    context = spark.sparkContext
    cores = context.getConf().get("spark.executor.cores")
    if cores is None or (context.master or "local").startswith("local"):
        return None
    executors = context._jsc.sc().statusTracker().getExecutorInfos()  # the driver is one
    return max(1, len(executors) - 1) * int(cores)
