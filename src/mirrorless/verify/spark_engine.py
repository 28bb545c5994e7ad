"""Compares with Spark: any size, on many cores or machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from mirrorless.verify.latest import compare_latest
from mirrorless.verify.windows import compare_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from mirrorless.settings import Flow
    from mirrorless.verify.latest_limits import Latest
    from mirrorless.verify.pairing import Paired
    from mirrorless.verify.ranges import OffsetRange
    from mirrorless.verify.selected_offsets import Selection
    from mirrorless.verify.window import Window


class SparkEngine:
    """The `Engine` of a Spark session."""

    name: Final = "Spark"
    errors: Final[tuple[type[Exception], ...]] = (PySparkException, Py4JError)

    def __init__(self, spark: SparkSession, flow: Flow) -> None:
        self._spark = spark
        self._flow = flow

    def windows(
        self, stretches: Sequence[OffsetRange], *, window_records: int, selection: Selection
    ) -> list[list[Window]]:
        """As of `Engine`."""
        return compare_windows(self._spark, self._flow, stretches, window_records=window_records, selection=selection)

    def latest(self, partitions: Sequence[Paired], *, selection: Selection) -> list[Latest]:
        """As of `Engine`."""
        return compare_latest(self._spark, self._flow, partitions, selection=selection)
