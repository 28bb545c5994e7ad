"""Runs leases in a process: connections are opened at the first lease and kept for the following ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mirrorless import client_logs
from mirrorless.batches import checksum
from mirrorless.clusters.internal_topics import offset_syncs_topic
from mirrorless.clusters.msk import is_serverless
from mirrorless.copy.flow.connections import FlowConnections
from mirrorless.copy.flow.memory_limits import SPARK_WORKER, MemoryLimits
from mirrorless.copy.identical.claims import Claims
from mirrorless.copy.identical.holes import HoleWriter
from mirrorless.copy.identical.rule import SERVERLESS, IdenticalOffsets
from mirrorless.copy.offset_syncs.feed import SyncFeed
from mirrorless.copy.offset_syncs.writer import SyncWriter
from mirrorless.copy.partition.send_window import PRODUCER_EXPIRY_MS, remembered_ms
from mirrorless.copy.partition.size_limit import SizeLimits
from mirrorless.copy.resume.dense import DenseOffsets
from mirrorless.copy.resume.epochs import Epochs
from mirrorless.copy.resume.resolver import PositionResolver
from mirrorless.copy.slot.added_partitions import AddedPartitions
from mirrorless.copy.slot.exact_copies import ExactCopies
from mirrorless.copy.slot.lease import Lease, LeaseTerms
from mirrorless.copy.slot.producer_expiry import producer_expiry_ms
from mirrorless.copy.slot.progress_tracker import ProgressTracker
from mirrorless.progress.writer import ProgressWriter
from mirrorless.protocol.cluster_client import EARLIEST, LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.handover import Handover
    from mirrorless.copy.partition.lease_rows import LeaseRow, Report
    from mirrorless.copy.slot.lease import LeaseObserver
    from mirrorless.settings import Flow

_EXPIRY_EVERY_S = 300.0


@dataclass(frozen=True, slots=True)
class _Held:
    lease: Lease
    flow: Flow


class Slot:
    """Connections to both clusters of one flow, and the copy that continues between two leases."""

    def __init__(self, flow: Flow, memory: MemoryLimits = SPARK_WORKER) -> None:
        self.flow = flow
        self._memory = memory
        self._held: _Held | None = None
        self._expiry_ms, self._expiry_due = PRODUCER_EXPIRY_MS, 0.0
        client_logs.set_up()
        checksum.prepare()
        # What needs a token or a file may fail: before anything is started.
        self._progress_writer = ProgressWriter(topic=flow.offset_storage_topic, cluster=flow.target)
        self._syncs = SyncWriter(offset_syncs_topic(flow)) if flow.emit_offset_syncs_enabled else None
        self._ends = FlowConnections(flow, memory)
        self._added = AddedPartitions()
        self._claims = Claims(
            net=self._ends.net,
            target=self._ends.target,
            source_alias=flow.progress_alias,
            source_id=lambda: self._ends.source.cluster_id,
            progress_topic=flow.offset_storage_topic,
            reread=self._ends.progress.read,
        )
        self._ends.start()

    def connect(self, rows: Sequence[LeaseRow]) -> None:
        """Connect to both ends before a lease of `rows`; raises `ClusterError` if an end cannot be reached."""

        async def connect() -> None:
            await self._connect(rows)
            await self._remembered_ms()  # which the lease knows then

        self._ends.run(connect)

    def copy(
        self,
        rows: Sequence[LeaseRow],
        *,
        terms: LeaseTerms,
        watch: LeaseObserver,
        slot: int = 0,
        is_own: Callable[[TopicPartition], bool] | None = None,
    ) -> list[Report]:
        """Copy the partitions of `rows` for one lease, and those of this slot that appear meanwhile.

        `is_own` is as in `AddedPartitions.begin`. Raises `ClusterError` if an end cannot be reached.
        """

        async def copy() -> list[Report]:
            await self._connect(rows)
            own = replace(terms, remembered_ms=await self._remembered_ms(), memory=self._memory)
            lease = await self._lease(rows, own, watch)
            reports = await lease.run()
            self._held = _Held(lease, self.flow)
            return reports

        self._added.begin(self.flow, rows, slot=slot, is_own=is_own)
        try:
            return self._ends.run(copy)
        finally:
            self._added.end()

    async def _connect(self, rows: Sequence[LeaseRow]) -> None:
        await self._ends.connect(
            self.flow, topics={row.topic for row in rows}, remote_topics={row.remote_topic for row in rows}
        )

    @property
    def login_refused(self) -> bool:
        """Whether a broker of either cluster refused the login: a new slot reads it again."""
        return self._ends.source.login_refused or self._ends.target.login_refused

    def close(self) -> None:
        """End a copy that still runs, and close all connections."""
        try:
            self._ends.run(self._land)
        finally:
            self._added.close()
            self._ends.close()

    async def _remembered_ms(self) -> int:
        """Return `remembered_ms` of the brokers' expiry, which is read again at times, since it may change."""
        now = time.monotonic()
        if now >= self._expiry_due:
            self._expiry_ms = await producer_expiry_ms(self._ends.target)
            self._expiry_due = now + _EXPIRY_EVERY_S
        return remembered_ms(self._expiry_ms)

    async def _lease(self, rows: Sequence[LeaseRow], terms: LeaseTerms, watch: LeaseObserver) -> Lease:
        """Return the lease before, if its copy still runs and can be renewed; else a new one."""
        held, self._held = self._held, None
        if held is None:
            return self._begin(rows, terms, watch, {})
        runs = await held.lease.recall()
        if runs and held.flow == self.flow and held.lease.renew(rows, terms, watch):
            return held.lease
        return self._begin(rows, terms, watch, await held.lease.leave())

    async def _land(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            await held.lease.recall()
            await held.lease.land()

    def _begin(
        self,
        rows: Sequence[LeaseRow],
        terms: LeaseTerms,
        watch: LeaseObserver,
        left: Mapping[TopicPartition, Handover],
    ) -> Lease:
        flow = self.flow
        ends = self._ends
        feed = None
        if self._syncs is not None and flow.emit_offset_syncs_enabled:
            feed = SyncFeed(self._syncs, lag_max=flow.offset_lag_max, index_records=flow.sync_index_records)
        tracker = ProgressTracker(self._progress_writer, flow, syncs=feed)
        epochs = Epochs(
            net=ends.net,
            source=ends.source,
            target=ends.target,
            source_alias=flow.progress_alias,
            source_id=ends.source.cluster_id,
            progress_topic=flow.offset_storage_topic,
            start_at=start_of(flow),
        )
        holes = HoleWriter(ends.target, self._claims)
        identical = IdenticalOffsets(
            source=ends.source,
            target=ends.target,
            epochs=epochs,
            claims=self._claims,
            holes=holes,
            impossible=SERVERLESS if is_serverless(flow.target) else None,
        )
        resolver = PositionResolver(
            source=ends.source,
            target=ends.target,
            epochs=epochs,
            dense=DenseOffsets(source=ends.source, target=ends.target, epochs=epochs),
            identical=identical,
            reread=ends.progress.read,
            left_out=tracker.left_out,
        )
        return Lease(
            net=ends.net,
            source=ends.source,
            target=ends.target,
            tracker=tracker,
            limits=SizeLimits(flow.target),
            resolver=resolver,
            source_id=ends.source.cluster_id,
            target_id=ends.target.cluster_id,
            rows=rows,
            terms=terms,
            watch=watch,
            left=left,
            added=self._added,
            exact=ExactCopies(flow, self._claims, holes, identical),
        )


def start_of(flow: Flow) -> int:
    """Return where partitions without progress begin: `EARLIEST`, `LATEST`, or a timestamp in ms."""
    if flow.start_timestamp_ms is not None:
        return flow.start_timestamp_ms
    return LATEST if flow.auto_offset_reset == "latest" else EARLIEST
