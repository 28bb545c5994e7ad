"""The stream's source: every micro-batch is a lease, every Spark partition a slot, every row a source partition."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from mirrorless.copy.engines.control import Control
from mirrorless.copy.flow.reference import FlowRef
from mirrorless.copy.partition.lease_rows import LeaseRow, as_tuple, spark_schema
from mirrorless.copy.progress.run_marks import run_in
from mirrorless.errors import (
    ClusterUnavailable,
    ConfigurationError,
    FlowNotEnabled,
    FlowPaused,
    LoopError,
    MirrorlessError,
    MirrorMaker2MayRun,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql.types import StructType

    from mirrorless.copy.planning.lease_planner import LeasePlanner

_ATTEMPTS = 5
_RETRY_S = 2.0


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
        self._place = place
        self._control = control
        self._planner: LeasePlanner | None = None
        self._last: dict[str, int] = {"lease": 0}
        self._mistake = self._waiting = self._news = ""
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
        """Assign the partitions to the slots.

        An unavailable cluster is retried a few times. Then a bounded copy fails, since an empty plan
        would mean that everything is copied; any other has an empty lease, and the next one retries. The same holds if
        the flow is paused, is not enabled any more, or would replicate in a loop. For errors that pass within minutes,
        a bounded copy waits.
        """
        if start == end:
            return []
        attempts = 0
        while attempts < _ATTEMPTS and not self._control.stopping():
            try:
                piles = self._plan()
            except (FlowPaused, FlowNotEnabled, LoopError) as idle:
                if self._place.bounded or self._planner is None:
                    raise  # an empty plan would look like everything copied
                self._control.complain(str(idle))
                time.sleep(_RETRY_S)
                return []
            except MirrorlessError as error:
                attempts += not (self._place.bounded and isinstance(error, MirrorMaker2MayRun))
                if not error.retriable or (self._place.bounded and attempts == _ATTEMPTS):
                    raise
                self._control.complain(str(error), unreachable=True)
                if attempts == _ATTEMPTS and isinstance(error, ClusterUnavailable):
                    self._log_in_again()
                time.sleep(_RETRY_S)
            else:
                self._control.complain(self._mistake or self._waiting or self._news)
                if not piles and not self._place.bounded:
                    time.sleep(_RETRY_S)  # nothing to copy yet: avoids a busy loop of leases
                return [SlotLease([as_tuple(row) for row in pile]) for pile in piles]
        return []

    def _plan(self) -> list[list[LeaseRow]]:
        self._mistake = ""
        try:
            flow = self._place.load()
        except FlowNotEnabled:
            raise
        except ConfigurationError as error:
            if self._planner is None:
                raise
            # The file is being edited: the last valid configuration is used until it is valid again.
            flow = self._planner.flow
            self._mistake = str(error)
        if self._planner is not None and self._planner.flow.connections != flow.connections:
            self.stop()
        elif self._planner is not None and self._planner.missing:
            self._log_in_again()
        if self._planner is None:
            # Imported only to plan leases: other processes that use this class would load all clients.
            from mirrorless.copy.planning.lease_planner import LeasePlanner  # noqa: PLC0415

            self._planner = LeasePlanner(
                flow, bounded=self._place.bounded, run=self._run, stopping=self._control.stopping
            )
        self._planner.refuse_paused()
        piles = self._planner.plan(flow, slots=self._control.slots())
        self._waiting, self._news = self._planner.waiting, self._planner.news
        return piles

    def _log_in_again(self) -> None:
        if self._planner is not None:
            with suppress(MirrorlessError):
                self._planner = self._planner.with_new_clients()

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a slot."""
        assert isinstance(partition, SlotLease)
        return iter(partition.rows)

    def stop(self) -> None:
        """Close the connections."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None
