"""A process that copies a flow with the product's own leases, one after the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mirrorless.copy.flow.memory_limits import SPARK_WORKER
from mirrorless.copy.identical.claims import Claims
from mirrorless.copy.identical.holes import HoleWriter
from mirrorless.copy.identical.rule import IdenticalOffsets
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.resume.dense import DenseOffsets
from mirrorless.copy.resume.epochs import Epochs
from mirrorless.copy.resume.resolver import PositionResolver
from mirrorless.copy.slot import lease as lease_module
from mirrorless.copy.slot.exact_copies import ExactCopies
from mirrorless.copy.slot.lease import Lease, LeaseTerms
from mirrorless.copy.slot.progress_tracker import ProgressTracker
from mirrorless.errors import MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.kafka_python.structs import DefaultRecordBatch
from mirrorless.progress import writer as progress_writer
from mirrorless.progress.records import Known, parse
from mirrorless.progress.writer import ProgressWriter
from mirrorless.protocol.cluster_client import EARLIEST
from tests.simulation.client import SimulatedClient
from tests.simulation.seams import SimulatedLimits, SimulatedProducer
from tests.simulation.world import Process

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.copy.slot.lease import LeaseObserver
    from mirrorless.settings import Flow
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.world import World


def replace_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the progress writer use a simulated producer."""
    monkeypatch.setattr(progress_writer, "TopicProducer", SimulatedProducer)


class Marks:
    """Which of the processes that copy was the first: what the marks of runs decide (see `run_marks`).

    The mark of one that was killed is valid for `valid_s`.
    """

    def __init__(self, valid_s: float = 0.0) -> None:
        self.running: list[CopierProcess] = []
        self.valid_s = valid_s

    def is_first(self, process: CopierProcess) -> bool:
        """Whether no process with a valid mark began before this one."""
        valid = [one for one in self.running if not one.dead or one.world.now - one.died_at < self.valid_s]
        return bool(valid) and valid[0] is process


class ProgressReader:
    """What the progress topic says, read at once; what was read before is kept."""

    def __init__(self, cluster: SimulatedCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._id: object = None
        self._at: list[int] = []
        self._known: dict[TopicPartition, Known] = {}

    def read(self) -> dict[TopicPartition, Known]:
        """Read to the end."""
        there = self._cluster.topics.get(self._topic)
        if there is None:
            return {}
        if self._id != there.id:
            self._id, self._at, self._known = there.id, [0] * len(there.partitions), {}
        for number, partition in enumerate(there.partitions):
            for header, body in partition.log.batches[self._at[number] :]:
                for record in DefaultRecordBatch(header.pack() + body):
                    parsed = parse(record.key, record.value)
                    if parsed is not None:
                        where, said = parsed
                        self._known.setdefault((where.topic, where.partition), Known()).take(said)
            self._at[number] = len(partition.log.batches)
        return self._known


class _Observer:
    """Ends a lease when the process is asked to stop."""

    watched = False

    def __init__(self, process: CopierProcess) -> None:
        self._process = process

    def stopping(self) -> bool:
        return self._process.stopping

    def observe(self, reports: list[Report]) -> None:
        self._process.reports = reports

    def holding(self) -> None: ...

    def handed_over(self) -> None: ...

    def landed(self, reports: list[Report]) -> None: ...


class CopierProcess(Process):
    """Copies `topics` of a flow until it is killed or stopped; `reports` are those of its last lease."""

    def __init__(
        self,
        world: World,
        name: str,
        *,
        flow: Flow,
        topics: dict[str, str],
        marks: Marks,
        terms: dict[str, Any],
        origins: str | None = None,
        ahead_s: float = 0.0,
    ) -> None:
        super().__init__(world, name, ahead_s=ahead_s)
        self.flow = flow
        self.stopping = self.ended = False
        self.died_at = 0.0
        self.reports: Sequence[Report] = ()
        self._topics = topics
        self._marks = marks
        self._terms = terms
        self._origins = origins
        self.source = SimulatedClient(self, world.clusters[flow.source.alias])
        self.target = SimulatedClient(self, world.clusters[flow.target.alias])
        self.start(self._copies())

    def kill(self) -> None:
        """As of `Process`; its sockets drop what has not left them."""
        self.died_at = self.world.now
        super().kill()
        for client in (self.source, self.target):
            client.link.drop()

    async def _copies(self) -> None:
        self._begin_clients()
        self._marks.running.append(self)
        while not self.stopping:
            try:
                await self._one_lease()
            except (MirrorlessError, kafka_errors.KafkaError) as error:
                self.world.note(f"{self.name}: {error}")
                await self.sleep(1.0)
        self._marks.running.remove(self)
        self.ended = True

    def _begin_clients(self) -> None:
        self._progress = ProgressReader(self.world.clusters[self.flow.target.alias], self.flow.offset_storage_topic)
        self._writer = ProgressWriter(topic=self.flow.offset_storage_topic, cluster=self.flow.target)
        self._claims = Claims(
            net=cast("Any", self),
            target=self.target.client,
            source_alias=self.flow.progress_alias,
            source_id=lambda: self.source.cluster_id,
            progress_topic=self.flow.offset_storage_topic,
            reread=self._progress.read,
        )
        self._claims.owner = self.name

    async def _one_lease(self) -> None:
        rows = self._rows()
        if not rows:
            await self.sleep(0.5)
            return
        await self._connect(rows)
        self.reports = await self._lease(rows, watch=_Observer(self)).run()
        for report in self.reports:
            if report.error or report.events:
                self.world.note(f"{self.name}: {report.topic}-{report.partition} {report.error or report.events}")
        await self.sleep(0.05)

    async def _connect(self, rows: Sequence[LeaseRow]) -> None:
        await self.source.connect(timeout_ms=20_000, topics={row.topic for row in rows})
        remote = {row.remote_topic for row in rows}
        await self.target.connect(timeout_ms=20_000, topics={*remote, self.flow.offset_storage_topic})

    def _rows(self) -> list[LeaseRow]:
        """Plan: partitions that both sides have, as administrators' clients see them now."""
        known = self._progress.read()
        source, target = self.source._cluster, self.target._cluster
        rows = []
        for topic, remote in self._topics.items():
            if topic not in source.topics or remote not in target.topics:
                continue
            both = zip(source.topics[topic].partitions, target.topics[remote].partitions, strict=False)
            for partition, (part, _) in enumerate(both):
                said = known.get((topic, partition))
                rows.append(
                    LeaseRow(
                        topic=topic,
                        partition=partition,
                        remote_topic=remote,
                        source_end=part.log.high_watermark,
                        last_offset=None if said is None or said.progress is None else said.progress.last_offset,
                        known=None if said is None else said.to_json(),
                        is_first=self._marks.is_first(self),
                        origins=self._origins,
                    )
                )
        return rows

    def _lease(self, rows: Sequence[LeaseRow], *, watch: LeaseObserver, seconds: float | None = None) -> Lease:
        terms = self._terms if seconds is None else self._terms | {"seconds": seconds}
        tracker = ProgressTracker(self._writer, self.flow)
        epochs = Epochs(
            net=cast("Any", self),
            source=self.source.client,
            target=self.target.client,
            source_alias=self.flow.progress_alias,
            source_id=self.source.cluster_id,
            progress_topic=self.flow.offset_storage_topic,
            start_at=EARLIEST,
        )
        source, target = self.source.client, self.target.client
        holes = HoleWriter(target, self._claims)
        identical = IdenticalOffsets(source=source, target=target, epochs=epochs, claims=self._claims, holes=holes)
        resolver = PositionResolver(
            source=source,
            target=target,
            epochs=epochs,
            dense=DenseOffsets(source=source, target=target, epochs=epochs),
            identical=identical,
            reread=self._progress.read,
            left_out=tracker.left_out,
        )
        return Lease(
            net=cast("Any", self),
            source=self.source.client,
            target=self.target.client,
            tracker=tracker,
            limits=cast("Any", SimulatedLimits(self.target._cluster)),
            resolver=resolver,
            source_id=self.source.cluster_id,
            target_id=self.target.cluster_id,
            rows=rows,
            terms=LeaseTerms(memory=SPARK_WORKER, **terms),
            watch=watch,
            left={},
            added=cast("Any", SimpleNamespace(found=list)),
            exact=ExactCopies(self.flow, self._claims, holes, identical),
        )


def set_tick(seconds: float) -> None:
    """How often a lease looks at what is due: seconds instead of milliseconds make long schedules affordable."""
    lease_module._TICK_S = seconds
