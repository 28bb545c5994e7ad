"""Runs leases in a Spark worker: connections are opened at the first one and kept for those that follow."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless.batches import checksum
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.internal_topics import offset_syncs_topic
from mirrorless.copy.connections import Connections
from mirrorless.copy.incarnations import Incarnations
from mirrorless.copy.journal import Journal
from mirrorless.copy.lease import Lease, Terms
from mirrorless.copy.ledger import Ledger
from mirrorless.copy.newcomers import Newcomers
from mirrorless.copy.partition import State
from mirrorless.copy.positions import Positions
from mirrorless.copy.producer_expiry import producer_expiry_ms
from mirrorless.copy.rows import LeaseRow, Report
from mirrorless.copy.send_window import PRODUCER_EXPIRY_MS
from mirrorless.copy.size_limit import SizeLimits
from mirrorless.copy.sync_feed import SyncFeed
from mirrorless.copy.sync_writer import SyncWriter
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.protocol.wire import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mirrorless.copy.control import Control
    from mirrorless.copy.flow_place import FlowPlace
    from mirrorless.copy.lease import Watch
    from mirrorless.copy.partition import Left
    from mirrorless.settings import Flow

_PAUSE_S = 2.0
_EXPIRY_EVERY_S = 300.0
_SECOND_S = 10.0
"""Where another run was first, how soon it is looked for again."""
_HOLDOVER_S = 30.0
"""What Spark needs between two leases, many times over; where the query has ended, nobody takes over."""

# Every failed connection is told once, in the reports; the library would tell it on stderr, several times a second.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class _Held:
    lease: Lease
    flow: Flow


class Slot:
    """Connections to both clusters of one flow, and the copy that goes on between two leases."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._held: _Held | None = None
        self._expiry_ms, self._expiry_due = PRODUCER_EXPIRY_MS, 0.0
        checksum.prepare()
        # Whatever needs a token or a file may fail, and leaves nothing behind as long as nothing was started.
        self._journal = Journal(topic=flow.offset_storage_topic, config=for_confluent(flow.target, role="producer"))
        self._syncs = SyncWriter(offset_syncs_topic(flow)) if flow.emit_offset_syncs_enabled else None
        self._ends = Connections(flow)
        self._newcomers = Newcomers()
        self._ends.start()

    def copy(self, rows: Sequence[LeaseRow], *, terms: Terms, watch: Watch, slot: int = 0) -> list[Report]:
        """Copy the partitions of `rows` for one lease, and those that appear meanwhile, as far as they are this slot's.

        Raises `ClusterError` if an end cannot be reached.
        """

        async def copy() -> list[Report]:
            await self._ends.connect(
                self.flow, topics={row.topic for row in rows}, remote_topics={row.remote_topic for row in rows}
            )
            lease = await self._lease(rows, replace(terms, remembered_ms=await self._remembered_ms()), watch)
            reports = await lease.run()
            self._held = _Held(lease, self.flow)
            return reports

        self._newcomers.begin(self.flow, rows, slot=slot)
        try:
            return self._ends.run(copy)
        finally:
            self._newcomers.end()

    @property
    def login_refused(self) -> bool:
        """Whether a broker of either end did not let us in: a slot of its own reads the login anew."""
        return self._ends.source.login_refused or self._ends.target.login_refused

    def close(self) -> None:
        """End a copy that still goes on, and close all connections."""
        try:
            self._ends.run(self._land)
        finally:
            self._newcomers.close()
            self._ends.close()

    async def _remembered_ms(self) -> int:
        """How old a record the target certainly remembers our producer by: half of what it forgets, for clocks differ.

        Asked for at times, since it may be changed while brokers run.
        """
        now = time.monotonic()
        if now >= self._expiry_due:
            self._expiry_ms = await producer_expiry_ms(self._ends.target)
            self._expiry_due = now + _EXPIRY_EVERY_S
        return self._expiry_ms // 2

    async def _lease(self, rows: Sequence[LeaseRow], terms: Terms, watch: Watch) -> Lease:
        """The lease before, if its copy still goes on and can be what is asked for; else a new one."""
        held, self._held = self._held, None
        if held is None:
            return self._begin(rows, terms, watch, {})
        goes_on = await held.lease.recall()
        if goes_on and held.flow == self.flow and held.lease.renew(rows, terms, watch):
            return held.lease
        return self._begin(rows, terms, watch, await held.lease.leave())

    async def _land(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            await held.lease.recall()
            await held.lease.land()

    def _begin(
        self, rows: Sequence[LeaseRow], terms: Terms, watch: Watch, left: Mapping[tuple[str, int], Left]
    ) -> Lease:
        flow = self.flow
        ends = self._ends
        feed = None
        if self._syncs is not None and flow.emit_offset_syncs_enabled:
            feed = SyncFeed(self._syncs, lag_max=flow.offset_lag_max, index_records=flow.sync_index_records)
        ledger = Ledger(self._journal, flow, syncs=feed)
        incarnations = Incarnations(
            net=ends.net,
            source=ends.source,
            target=ends.target,
            source_alias=flow.source.alias,
            source_id=ends.source.cluster_id,
            journal_topic=flow.offset_storage_topic,
            start_at=start_of(flow),
        )
        positions = Positions(
            source=ends.source,
            target=ends.target,
            incarnations=incarnations,
            reread=ends.progress.read,
            left_out=ledger.left_out,
        )
        return Lease(
            net=ends.net,
            source=ends.source,
            target=ends.target,
            ledger=ledger,
            limits=SizeLimits(flow.target),
            positions=positions,
            source_id=ends.source.cluster_id,
            target_id=ends.target.cluster_id,
            rows=rows,
            terms=terms,
            watch=watch,
            left=left,
            newcomers=self._newcomers,
        )


def start_of(flow: Flow) -> int:
    """Where partitions without progress begin: `EARLIEST`, `LATEST`, or a timestamp in ms."""
    if flow.start_timestamp_ms is not None:
        return flow.start_timestamp_ms
    return LATEST if flow.auto_offset_reset == "latest" else EARLIEST


_slots: dict[str, Slot] = {}


def run_lease(
    place: FlowPlace, rows: Sequence[LeaseRow], *, control: Control, lease: int, slot: int, holdover: bool = False
) -> list[Report]:
    """Copy `rows` for one lease, in this process's slot for the flow; returns a report a partition.

    With `holdover`, a flow's only slot copies on behind the lease until the next one takes over; with several slots the
    next one's partitions are others, and may be dealt to another process.

    A cluster that cannot be reached is in the reports, and so is a configuration that this process cannot read, so that
    the query lives on and the next lease tries again.
    """
    watch = control.of(lease, slot)
    try:
        known = _ready(place)
        terms = _terms(known.flow, place, rows, holdover=holdover)
        reports = known.copy(rows, terms=terms, watch=watch, slot=slot)
        states = {report.state for report in reports}
        if known.login_refused or (State.RESUMING in states and states <= {State.RESUMING, State.HALTED}):
            _forget(place)  # perhaps the brokers moved: the next lease asks the bootstrap servers again, and logs in
        return reports
    except (ClusterError, ConfigurationError) as error:
        _forget(place)
        reports = [_unreached(row, error) for row in rows]
        watch.observe(reports)
        if not control.stopping():
            time.sleep(_PAUSE_S)
        return reports


def _ready(place: FlowPlace) -> Slot:
    """The slot that is kept for the flow, with its configuration as it is now, or a new one."""
    known = _slots.get(place.flow)
    try:
        flow = place.load()
    except ConfigurationError:
        if known is None:
            raise
        flow = known.flow  # somebody is editing the file; the driver complains
    if known is not None and (known.login_refused or known.flow.connections != flow.connections):
        _forget(place)
        known = None
    if known is None:
        known = _slots[place.flow] = Slot(flow)
    known.flow = flow
    return known


def _terms(flow: Flow, place: FlowPlace, rows: Sequence[LeaseRow], *, holdover: bool) -> Terms:
    slots = max((row.slots for row in rows), default=1)
    is_first = all(row.is_first for row in rows)
    return Terms(
        seconds=flow.lease_seconds if is_first else min(flow.lease_seconds, _SECOND_S),
        bounded=place.bounded,
        holdover_s=_HOLDOVER_S if holdover and slots == 1 and not place.bounded else 0.0,
        pass_gaps=flow.on_gap == "continue",
        leave_out=flow.errors_tolerance == "all",
        bytes_per_second=flow.max_bytes_per_second and flow.max_bytes_per_second / slots,
    )


def _forget(place: FlowPlace) -> None:
    if (known := _slots.pop(place.flow, None)) is not None:
        known.close()


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
