"""Runs leases in this process: one slot per flow, whose connections are kept from lease to lease."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mirrorless.copy.flow.memory_limits import SPARK_WORKER, MemoryLimits
from mirrorless.copy.partition.lease_rows import LeaseRow, Report
from mirrorless.copy.partition.lifecycle import PartitionState
from mirrorless.copy.slot.lease import LeaseTerms
from mirrorless.copy.slot.worker import Slot
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.policy import policy_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.engines.control import Control
    from mirrorless.copy.flow.reference import FlowRef
    from mirrorless.copy.slot.lease import LeaseObserver
    from mirrorless.settings import Flow

_PAUSE_S: Final = 2.0
_SECOND_S: Final = 10.0
"""How soon it is checked again whether another run was first."""
HOLDOVER_S: Final = 30.0
"""Many times what Spark needs between two leases; if the query has ended, no lease takes over."""

_slots: dict[str, Slot] = {}


def run_lease(
    place: FlowRef, rows: Sequence[LeaseRow], *, control: Control, lease: int, slot: int, holdover: bool = False
) -> list[Report]:
    """Copy `rows` for one lease that `control` may end; as `run_watched_lease`."""
    return run_watched_lease(place, rows, watch=control.of(lease, slot), slot=slot, holdover=holdover)


def run_watched_lease(
    place: FlowRef,
    rows: Sequence[LeaseRow],
    *,
    watch: LeaseObserver,
    slot: int,
    seconds: float | None = None,
    holdover: bool = False,
    is_own: Callable[[TopicPartition], bool] | None = None,
    memory: MemoryLimits = SPARK_WORKER,
) -> list[Report]:
    """Copy `rows` for one lease, in this process's slot for the flow; returns a report per partition.

    It lasts for `seconds`, or for the configured time if they are None. `is_own` is as in
    `added_partitions.AddedPartitions.begin`. With `holdover`, a flow's only slot continues to copy after the lease
    until the next takes over; with several slots the next lease's partitions differ, and may be assigned to another
    process.

    An unavailable cluster is in the reports, and so is a configuration that this process cannot read, so that
    the query survives and the next lease retries.
    """
    try:
        known = _ready(place, memory)
        terms = _terms(known.flow, place, rows, seconds=seconds, holdover=holdover)
        reports = known.copy(rows, terms=terms, watch=watch, slot=slot, is_own=is_own)
        states = {report.state for report in reports}
        if known.login_refused or (
            PartitionState.RESUMING in states and states <= {PartitionState.RESUMING, PartitionState.HALTED}
        ):
            forget_slot(place)  # if the brokers moved: the next lease uses the bootstrap servers again, and logs in
        return reports
    except (ClusterError, ConfigurationError) as error:
        forget_slot(place)
        reports = [_unreached(row, error) for row in rows]
        watch.observe(reports)
        if not watch.stopping():
            time.sleep(_PAUSE_S)
        return reports


def connect_slot(place: FlowRef, rows: Sequence[LeaseRow], *, memory: MemoryLimits) -> None:
    """Connect this process's slot for the flow ahead of its lease, which reports it if that fails."""
    try:
        _ready(place, memory).connect(rows)
    except (ClusterError, ConfigurationError):
        forget_slot(place)


def forget_slot(place: FlowRef) -> None:
    """Close this process's slot for the flow; the next lease opens another one."""
    if (known := _slots.pop(place.flow, None)) is not None:
        known.close()


def _ready(place: FlowRef, memory: MemoryLimits) -> Slot:
    """The slot that is kept for the flow, with its current configuration, or a new one."""
    known = _slots.get(place.flow)
    try:
        flow = place.load()
    except ConfigurationError:
        if known is None:
            raise
        flow = known.flow  # the file is being edited; the driver reports it
    if known is not None and (known.login_refused or known.flow.connections != flow.connections):
        forget_slot(place)
        known = None
    if known is None:
        known = _slots[place.flow] = Slot(flow, memory)
    known.flow = flow
    return known


def _terms(
    flow: Flow, place: FlowRef, rows: Sequence[LeaseRow], *, seconds: float | None, holdover: bool
) -> LeaseTerms:
    slots = max((row.slots for row in rows), default=1)
    is_first = all(row.is_first for row in rows)
    longest_s = flow.lease_seconds if is_first else min(flow.lease_seconds, _SECOND_S)
    return LeaseTerms(
        seconds=longest_s if seconds is None else min(longest_s, seconds),
        bounded=place.bounded,
        holdover_s=HOLDOVER_S if holdover and slots == 1 and not place.bounded else 0.0,
        pass_gaps=flow.on_gap == "continue",
        leave_out=flow.errors_tolerance == "all",
        bytes_per_second=flow.max_bytes_per_second and flow.max_bytes_per_second / slots,
        exempt=policy_for(flow).is_heartbeats_topic,
    )


def _unreached(row: LeaseRow, error: ClusterError | ConfigurationError) -> Report:
    passes = error.retriable or isinstance(error, ConfigurationError)
    return Report(
        topic=row.topic,
        partition=row.partition,
        remote_topic=row.remote_topic,
        state="unreachable" if passes else "halted",
        records=0,
        copied_bytes=0,
        first_offset=None,
        next_offset=None if row.last_offset is None else row.last_offset + 1,
        lag_records=row.lag_records,
        latency_ms=None,
        began_ms=None,
        ended_ms=None,
        error=str(error),
    )
