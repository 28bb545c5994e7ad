"""A flow between two clusters in memory, copied by real leases: a test of minutes in milliseconds."""

# ruff: noqa: ARG002 -- a fake takes what the real one takes
from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mirrorless.copy.identical.claims import Claims
from mirrorless.copy.identical.holes import HoleWriter
from mirrorless.copy.identical.rule import IdenticalOffsets
from mirrorless.copy.partition import state
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.partition.state import PartitionCopy
from mirrorless.copy.resume.dense import DenseOffsets
from mirrorless.copy.resume.epochs import Epochs
from mirrorless.copy.resume.resolver import PositionResolver
from mirrorless.copy.slot import appender, error_policy, fetcher, lease, parallel_reads, progress_tracker, send_queues
from mirrorless.copy.slot.exact_copies import ExactCopies
from mirrorless.copy.slot.lease import Lease, LeaseTerms
from mirrorless.copy.slot.progress_tracker import ProgressTracker
from mirrorless.kafka_python.structs import DefaultRecordBatch
from mirrorless.metadata.fences import FENCED_BYTES
from mirrorless.progress.producer_ids import producer_id
from mirrorless.progress.records import Known, parse
from mirrorless.protocol.cluster_client import EARLIEST
from mirrorless.settings import Cluster, Flow
from tests.support.fake_cluster import FakeCluster
from tests.support.virtual_loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.handover import Handover
    from mirrorless.copy.partition.lease_rows import Report
    from mirrorless.progress.records import LeaveOut, SourcePartition
    from mirrorless.progress.writer import ProgressWriter

_CLOCKED = (appender, error_policy, fetcher, lease, parallel_reads, progress_tracker, send_queues, state)
PROGRESS_TOPIC = "mm2-offsets.A.internal"


class FakeProgressWriter:
    """Keeps what is written, as `Known` by source partition; `broken` takes nothing more."""

    def __init__(self) -> None:
        self.topic = PROGRESS_TOPIC
        self.error: str | None = None
        self.failures = 0
        self.known: dict[TopicPartition, Known] = {}
        self.dead_letters: list[LeaveOut] = []
        self.broken = False

    def write(self, key: bytes, value: bytes | None) -> None:
        """As of `ProgressWriter`."""
        if self.broken:
            self.failures += 1
            self.error = "progress was not written"
            return
        parsed = parse(key, value)
        assert parsed is not None
        where, said = parsed
        self.known.setdefault((where.topic, where.partition), Known()).take(said)

    def dead_letter(self, topic: str, where: SourcePartition, what: LeaveOut) -> None:
        """As of `ProgressWriter`."""
        self.dead_letters.append(what)

    def poll(self) -> None:
        """As of `ProgressWriter`."""

    def flush(self, seconds: float) -> bool:
        """As of `ProgressWriter`."""
        return not self.broken


class Observer:
    """A lease's observer that keeps what it hears; `stops` ends the lease."""

    def __init__(self, *, watched: bool = False) -> None:
        self.watched = watched
        self.stops = False
        self.observed: list[list[Report]] = []
        self.events: list[str] = []
        self.after: list[Report] = []

    def stopping(self) -> bool:
        """As of `LeaseObserver`."""
        return self.stops

    def observe(self, reports: list[Report]) -> None:
        """As of `LeaseObserver`."""
        self.observed.append(reports)

    def holding(self) -> None:
        """As of `LeaseObserver`."""
        self.events.append("holding")

    def handed_over(self) -> None:
        """As of `LeaseObserver`."""
        self.events.append("handed over")

    def landed(self, reports: list[Report]) -> None:
        """As of `LeaseObserver`."""
        self.events.append("landed")
        self.after = reports


class FakeLimits:
    """`max.message.bytes` of remote topics, as of `SizeLimits`; `seen` is what a broker that lags answers."""

    def __init__(self, target: FakeCluster) -> None:
        self._target = target
        self.seen: int | None = None

    def is_fenced(self, remote_topic: str, *, first: bool) -> bool:
        """As of `SizeLimits`."""
        return self._limit(remote_topic) == int(FENCED_BYTES)

    def exceeds(self, remote_topic: str, size_bytes: int) -> bool | None:
        """As of `SizeLimits`."""
        return size_bytes > self._limit(remote_topic)

    def too_large(self, remote_topic: str, size_bytes: int) -> str:
        """As of `SizeLimits`."""
        return f"max.message.bytes of {remote_topic} is below {size_bytes}"

    def keyless(self, remote_topic: str) -> str:
        """As of `SizeLimits`."""
        return f"cleanup.policy of {remote_topic} is compact"

    def is_kept_for_ever(self, remote_topic: str) -> bool:
        """As of `SizeLimits`."""
        return remote_topic.endswith("-store-repartition")

    def _limit(self, remote_topic: str) -> int:
        limit = self._target.log(remote_topic).max_message_bytes if self.seen is None else self.seen
        return 1_048_588 if limit is None else limit


class FakeFlow:
    """Source cluster A, target cluster B, topic `t` and its remote topic `A.t`, and the progress topic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, partitions: int = 1) -> None:
        self.loop = VirtualLoop()
        self.loop.replace_time(monkeypatch, *_CLOCKED)
        self.source, self.target = FakeCluster(self.loop, "A"), FakeCluster(self.loop, "B")
        self.partitions = partitions
        self.source.create("t", partitions)
        self.target.create("A.t", partitions)
        self.target.create(PROGRESS_TOPIC)
        self.writer = FakeProgressWriter()
        self.added: list[LeaseRow] = []
        self.observer = Observer()
        self.followable = True
        self.flow = Flow(
            source=Cluster(alias="A", bootstrap_servers="a:9092"), target=Cluster(alias="B", bootstrap_servers="b:9092")
        )

    def produce(self, *values: bytes, partition: int = 0, age_ms: int = 0) -> None:
        """Append one batch to the source."""
        self.source.log("t", partition).produce(values, timestamp_ms=self.loop.now_ms - age_ms)

    def copied(self, partition: int = 0) -> list[bytes]:
        """Values that the target has."""
        return self.target.log("A.t", partition).values()

    def known(self) -> dict[TopicPartition, Known]:
        """What the progress topic has: announcements are in the target's log, all else is the writer's."""
        found = {
            place: Known(one.progress, dict(one.announced), one.halt, one.stop)
            for place, one in self.writer.known.items()
        }
        for header, body in reversed(self.target.log(PROGRESS_TOPIC).batches):
            for record in DefaultRecordBatch(header.pack() + body):
                parsed = parse(record.key, record.value)
                assert parsed is not None
                found.setdefault((parsed[0].topic, parsed[0].partition), Known()).take(parsed[1])
        return found

    def row(self, partition: int = 0, **changes: Any) -> LeaseRow:  # noqa: ANN401
        """A row of the lease planned now."""
        known = self.known().get(("t", partition), Known())
        fields: dict[str, Any] = {
            "topic": "t",
            "partition": partition,
            "remote_topic": "A.t",
            "source_end": self.source.log("t", partition).stable,
            "last_offset": None if known.progress is None else known.progress.last_offset,
            "known": known.to_json(),
            "followable": self.followable,
        }
        return LeaseRow(**(fields | changes))

    def rows(self) -> list[LeaseRow]:
        """Rows of all partitions."""
        return [self.row(partition) for partition in range(self.partitions)]

    def tracker(self) -> ProgressTracker:
        """A tracker that writes to `writer`."""
        return ProgressTracker(cast("ProgressWriter", self.writer), self.flow)

    def epochs(self, *, start_at: int = EARLIEST) -> Epochs:
        """The flow's announcements."""
        return Epochs(
            net=cast("Any", self.loop),
            source=self.source.client,
            target=self.target.client,
            source_alias="A",
            source_id=self.source.cluster_id,
            progress_topic=PROGRESS_TOPIC,
            start_at=start_at,
        )

    def resolver(self, tracker: ProgressTracker | None = None) -> PositionResolver:
        """What finds positions."""
        source, target, epochs = self.source.client, self.target.client, self.epochs()
        return PositionResolver(
            source=source,
            target=target,
            epochs=epochs,
            dense=DenseOffsets(source=source, target=target, epochs=epochs),
            identical=self.exact().rule,
            reread=self.known,
            left_out=(tracker or self.tracker()).left_out,
        )

    def exact(self) -> ExactCopies:
        """What copies with identical offsets need; this flow has none."""
        source, target = self.source.client, self.target.client
        claims = Claims(
            net=cast("Any", self.loop),
            target=target,
            source_alias="A",
            source_id=lambda: self.source.cluster_id,
            progress_topic=PROGRESS_TOPIC,
            reread=self.known,
        )
        holes = HoleWriter(target, claims)
        rule = IdenticalOffsets(source=source, target=target, epochs=self.epochs(), claims=claims, holes=holes)
        return ExactCopies(self.flow, claims, holes, rule)

    def copy_of(self, row: LeaseRow | None = None) -> PartitionCopy:
        """A copy as a lease begins it."""
        row = row or self.row()
        known = row.said()
        return PartitionCopy(
            row,
            producer_id(self.source.cluster_id, row.topic, row.partition),
            known.announced,
            halt=known.halt,
            stop=known.stop,
            stored=known.progress,
            written=known.progress,
            source_end=row.source_end,
        )

    def lease(
        self,
        rows: Sequence[LeaseRow] | None = None,
        *,
        left: Mapping[TopicPartition, Handover] | None = None,
        **terms: Any,  # noqa: ANN401
    ) -> Lease:
        """A lease over all partitions; bounded, unless `terms` say otherwise."""
        tracker = self.tracker()
        return Lease(
            net=cast("Any", self.loop),
            source=self.source.client,
            target=self.target.client,
            tracker=tracker,
            limits=cast("Any", FakeLimits(self.target)),
            resolver=self.resolver(tracker),
            source_id=self.source.cluster_id,
            target_id=self.target.cluster_id,
            rows=self.rows() if rows is None else rows,
            terms=self.terms(**terms),
            watch=self.observer,
            left=left or {},
            added=cast("Any", SimpleNamespace(found=self._found)),
            exact=self.exact(),
        )

    def terms(self, **changes: Any) -> LeaseTerms:  # noqa: ANN401
        """Terms of a bounded lease, or others."""
        return LeaseTerms(**({"seconds": 60.0, "bounded": True} | changes))

    def run(self, **terms: Any) -> list[Report]:  # noqa: ANN401
        """Copy for one lease and return its reports."""
        return self.loop.run(self.lease(**terms).run())

    def _found(self) -> list[LeaseRow]:
        found, self.added = self.added, []
        return found
