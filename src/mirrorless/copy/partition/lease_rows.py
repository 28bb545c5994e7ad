"""What travels between planner and slots: a row per partition out, a report per partition back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from mirrorless.progress.producer_ids import producer_id
from mirrorless.progress.records import Known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mirrorless.clusters.topic_partition import TopicPartition

_ENDED = frozenset({"caught up", "halted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """One partition for one lease: its remote topic, and its records of the progress topic.

    `known` has these records, as `Known.to_json` writes them; `last_offset` is that of the progress, for the lag.
    `source_end` is the source's last stable offset when the lease was planned; a bounded lease ends there. `slots` is
    how many share the flow. `is_first`: no other run of the flow's copy began before this one; otherwise that run alone
    copies records so old that the target may have forgotten the producer. One row of each slot that looks for new
    partitions has `planned`, the partitions that the plan knows (`added_partitions.planned_text`). `is_new`: the
    partition appeared after topic discovery last looked (`source_notes.is_new`). `followable`: it may be read from
    a follower, with `client.rack` (`planning.closest_replica`). `origins`: with `mirrorless.both.directions=skip`, the
    ids of the clusters whose records are copied to the source under the topic's own name, separated by commas, else
    None. `start`: where `mirrorless.start.group` stands; without progress the copy begins there.
    """

    topic: str
    partition: int
    remote_topic: str
    source_end: int
    last_offset: int | None = None
    known: str | None = None
    slots: int = 1
    is_first: bool = True
    planned: str | None = None
    is_new: bool = False
    followable: bool = False
    origins: str | None = None
    start: int | None = None

    @property
    def place(self) -> TopicPartition:
        """The source topic and partition."""
        return self.topic, self.partition

    @property
    def lag_records(self) -> int:
        """Offsets between the progress and the source's end; markers, holes and what retention took are counted too."""
        return max(0, self.source_end - (0 if self.last_offset is None else self.last_offset + 1))

    @property
    def copies_at_source(self) -> frozenset[int]:
        """The producer ids of the copies that append records of other clusters to the source partition."""
        clusters = self.origins.split(",") if self.origins else ()
        return frozenset(producer_id(cluster_id, self.topic, self.partition) for cluster_id in clusters)

    def said(self) -> Known:
        """Return the partition's records of the progress topic."""
        return Known() if self.known is None else Known.from_json(self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One partition after (or during) a lease.

    `records` and `copied_bytes` were acknowledged in this lease, from source offset `first_offset` on; `next_offset` is
    the next to copy, `lag_records` what the source has from there on (markers and holes included). `latency_ms` is from
    the last copied record's timestamp to its acknowledgement. `began_ms` is when the first batch was fetched,
    `ended_ms` when the last one was acknowledged. `left_out` counts records or batches that could not be copied, `gaps`
    those skipped by `mirrorless.on.gap`, `foreign` offsets of the remote partition that another writer took, `skipped`
    records that a copy had appended to the source (`mirrorless.both.directions=skip`); `events`
    has a line for each, with place and reason. `batches` were acknowledged; the least, greatest and average latency is
    of these, and the age: from a batch's newest record to its fetch. `fetch_throttle_ms` and `produce_throttle_ms` are
    how long the source's and the target's leader made the copy wait, because a quota is used up (KIP-219). `waits`: the
    partition is left to another run of the flow's copy, which began first. `fetched_bytes` were sent by the source,
    `follower_bytes` of these by a follower in the rack of `client.rack` (KIP-392).
    """

    topic: str
    partition: int
    remote_topic: str
    state: str
    records: int
    copied_bytes: int
    first_offset: int | None
    next_offset: int | None
    lag_records: int
    latency_ms: int | None
    began_ms: int | None
    ended_ms: int | None
    left_out: int = 0
    gaps: int = 0
    foreign: int = 0
    skipped: int = 0
    events: str = ""
    error: str | None = None
    batches: int = 0
    latency_min_ms: int | None = None
    latency_max_ms: int | None = None
    latency_avg_ms: int | None = None
    age_ms: int | None = None
    age_min_ms: int | None = None
    age_max_ms: int | None = None
    age_avg_ms: int | None = None
    fetch_throttle_ms: int = 0
    produce_throttle_ms: int = 0
    waits: bool = False
    fetched_bytes: int = 0
    follower_bytes: int = 0

    def as_row(self) -> dict[str, Any]:
        """The report as a row of `REPORT_SCHEMA`."""
        return dict(zip(_REPORT_FIELDS, _report_values(self), strict=True))


def without_lease(report: Report, reason: str) -> Report:
    """Return the report of a partition of the last lease when the next one cannot be planned; halted stays halted."""
    halted = report.state == "halted"
    return Report(
        topic=report.topic,
        partition=report.partition,
        remote_topic=report.remote_topic,
        state=report.state if halted else "unreachable",
        records=0,
        copied_bytes=0,
        first_offset=None,
        next_offset=report.next_offset,
        lag_records=report.lag_records,
        latency_ms=None,
        began_ms=None,
        ended_ms=None,
        error=report.error if halted else reason,
    )


_REPORT_FIELDS = tuple(item.name for item in fields(Report))
_report_values = attrgetter(*_REPORT_FIELDS)  # `asdict` takes twenty times as long


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The sum of the reports of a lease, or of several.

    `over`: no partition has anything left to do, each is caught up or halted. `left_out`, `gaps`, `foreign`,
    `skipped`, `fetched_bytes` and `follower_bytes` are as in `Report`, the throttle times those of the partition that
    waited longest. `errors` has each text once.
    """

    partitions: int
    records: int
    copied_bytes: int
    lag_records: int
    latency_ms: int | None
    seconds: float
    over: bool
    left_out: int
    gaps: int
    foreign: int
    skipped: int
    fetch_throttle_ms: int
    produce_throttle_ms: int
    fetched_bytes: int
    follower_bytes: int
    errors: tuple[str, ...]

    @property
    def records_per_s(self) -> float:
        """Records a second between the first batch that came and the last that was acknowledged."""
        return self.records / self.seconds if self.seconds else 0.0

    def as_fields(self) -> dict[str, Any]:
        """Return fields for a log line."""
        return asdict(self)


def summary(reports: Iterable[Report]) -> Summary:
    """Add up reports; those of one lease for `lag_records` and `over` to mean anything."""
    reports = list(reports)
    began = min((report.began_ms for report in reports if report.began_ms is not None), default=0)
    ended = max((report.ended_ms for report in reports if report.ended_ms is not None), default=0)
    return Summary(
        partitions=len(reports),
        records=sum(report.records for report in reports),
        copied_bytes=sum(report.copied_bytes for report in reports),
        lag_records=sum(report.lag_records for report in reports),
        latency_ms=max((report.latency_ms for report in reports if report.latency_ms is not None), default=None),
        seconds=max(0, ended - began) / 1000,
        left_out=sum(report.left_out for report in reports),
        gaps=sum(report.gaps for report in reports),
        foreign=sum(report.foreign for report in reports),
        skipped=sum(report.skipped for report in reports),
        fetch_throttle_ms=max((report.fetch_throttle_ms for report in reports), default=0),
        produce_throttle_ms=max((report.produce_throttle_ms for report in reports), default=0),
        fetched_bytes=sum(report.fetched_bytes for report in reports),
        follower_bytes=sum(report.follower_bytes for report in reports),
        over=all(report.state in _ENDED for report in reports),
        errors=tuple(dict.fromkeys(report.error for report in reports if report.error is not None)),
    )
