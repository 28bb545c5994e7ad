"""The stream's source: every micro-batch is a lease, every Spark partition a slot, every row a source partition."""

from __future__ import annotations

import time
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from mirrorless.copy.engines.control import Control
from mirrorless.copy.engines.lease_plans import LeasePlans
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.progress.run_marks import run_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.copy.planning.run_order import RunOrder
    from mirrorless.settings import Flow

_TYPES: Final[dict[str, tuple[str, pa.DataType]]] = {
    "str": ("string", pa.string()),
    "int": ("bigint", pa.int64()),
    "bool": ("boolean", pa.bool_()),
}


def spark_schema(row: type[LeaseRow | Report]) -> str:
    """Spark's DDL for a row class, its fields in order."""
    return ", ".join(f"{name} {spark}" for name, spark, _ in _columns(row))


def arrow_schema(row: type[LeaseRow | Report]) -> pa.Schema:
    """Arrow's schema for a row class, of the same widths as Spark's."""
    return pa.schema([pa.field(name, arrow) for name, _, arrow in _columns(row)])


def _columns(row: type[LeaseRow | Report]) -> list[tuple[str, str, pa.DataType]]:
    return [(item.name, *_TYPES[str(item.type).split(" ", maxsplit=1)[0]]) for item in fields(row)]


def as_tuple(row: LeaseRow) -> tuple[Any, ...]:
    """A lease's row as Spark's data source wants it."""
    return tuple(getattr(row, item.name) for item in fields(row))


class SlotLease(InputPartition):
    """The rows of one slot."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        super().__init__(None)
        self.rows = rows


class PartitionLeases(DataSource):
    """Data source `partition_leases`; options: location, flow, bounded, and control (the folder of a run)."""

    @classmethod
    def name(cls) -> str:
        """Name to give to `format`."""
        return "partition_leases"

    def schema(self) -> str:
        """Columns of a lease's row."""
        return spark_schema(LeaseRow)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 -- Spark's
        """The reader; it runs in a separate process on the driver."""
        place = FlowRef(
            location=self.options["location"], flow=self.options["flow"], bounded=self.options["bounded"] == "true"
        )
        return LeaseReader(place, Control(self.options.get("control")))


class LeaseReader(DataSourceStreamReader):
    """Plans leases. A lease's offset is the time in ms when it was planned, so that it grows across restarts.

    Spark's checkpoint has only that number and may be lost without harm.
    """

    def __init__(self, place: FlowRef, control: Control) -> None:
        self._control = control
        self._deployment = place.deployment
        self._order: RunOrder | None = None
        self._plans = LeasePlans(place, control, self._order_of)
        self._last: dict[str, int] = {"lease": 0}
        self._run = None if control.folder is None else run_in(control.folder)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 -- Spark's name
        """The offset of a query without a checkpoint."""
        return {"lease": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 -- Spark's name
        """Request one more lease, unless a stop was requested."""
        if not self._control.stopping():
            self._last = {"lease": max(self._last["lease"] + 1, int(time.time() * 1000))}
        return self._last

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Assign the partitions to the slots, as `LeasePlans` does; none once the functions take over."""
        if start == end:
            return []
        piles = self._plans.next(stopping=self._control.stopping) or []
        if self._order is not None and self._order.is_to_yield():
            self._control.ask_to_stop()
            return []
        return [SlotLease([as_tuple(row) for row in pile]) for pile in piles]

    def _order_of(self, flow: Flow) -> RunOrder:
        # Imported only to plan leases: other processes that use this class would load all clients.
        from mirrorless.copy.planning.run_order import RunOrder  # noqa: PLC0415

        self._order = RunOrder(
            flow,
            run=self._run,
            deployment=self._deployment,
            stopping=self._control.stopping,
            work=self._control.work,
        )
        return self._order

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a slot."""
        assert isinstance(partition, SlotLease)
        return iter(partition.rows)

    def stop(self) -> None:
        """Close the connections."""
        self._plans.close()
