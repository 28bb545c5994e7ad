"""Finds partitions that appear while a lease runs, so that its slots copy them within seconds.

A lease is planned once; a topic that discovery creates a moment later would wait for the next lease. So the first slots
of a flow look at both clusters every second, each for its share.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

from mirrorless.clusters.admin import Admin
from mirrorless.clusters.identity import id_of
from mirrorless.clusters.topics import high_watermarks, partition_counts
from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.errors import MirrorlessError
from mirrorless.metadata.loop_check import refuse_loops
from mirrorless.metadata.service_records import replicated_on
from mirrorless.progress.deals import hash_share
from mirrorless.progress.skipped_origins import SkippedOrigins
from mirrorless.progress.source_notes import is_new, starts_at_latest
from mirrorless.progress.topic import ProgressTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow

LOOKING_SLOTS: Final = 4
"""So many slots look, until the next lease assigns what they found: a look reads all topics of both clusters."""
_EVERY_S: Final = 1.0
_AGAIN_S: Final = 5.0
"""After a look that failed, whatever time it took: it took a timeout."""
_SHARE: Final = 50
"""Looks at clusters with very many topics are rarer, so that they take at most a fiftieth of the time."""
_log = logging.getLogger(__name__)


class PartitionCounts(NamedTuple):
    """Topics of both clusters, with how many partitions they have."""

    source: Mapping[str, int]
    target: Mapping[str, int]

    def copied(self, remote: Mapping[str, str]) -> dict[str, int]:
        """Return how many partitions of each source topic exist on both sides; `remote` is by source topic."""
        return {topic: min(self.source[topic], self.target.get(name, 0)) for topic, name in remote.items()}


def planned_text(counts: Mapping[str, int]) -> str:
    """Return, for a lease's row, how many partitions of each source topic a plan knows."""
    return json.dumps(counts, ensure_ascii=False, separators=(",", ":"))


def new_places(planned: Mapping[str, int], copied: Mapping[str, int]) -> list[TopicPartition]:
    """Return the partitions that a plan does not know, by the counts of both."""
    return [(topic, partition) for topic, count in copied.items() for partition in range(planned.get(topic, 0), count)]


@dataclass(eq=False, slots=True)
class _Lease:
    """What one lease looks for: `row` is one of its rows, `planned` grows with what is found."""

    flow: Flow
    row: LeaseRow
    planned: dict[str, int]
    is_own: Callable[[TopicPartition], bool]
    seen: PartitionCounts | None = field(default=None)


class AddedPartitions:
    """Looks for partitions that no plan knows, in its own thread, for one lease after the other."""

    def __init__(self) -> None:
        self._lease: _Lease | None = None
        self._found: SimpleQueue[tuple[_Lease, LeaseRow]] = SimpleQueue()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(
        self,
        flow: Flow,
        rows: Iterable[LeaseRow],
        *,
        slot: int,
        is_own: Callable[[TopicPartition], bool] | None = None,
    ) -> None:
        """Look for what the plan of `rows` does not know, if a row has it: for what `is_own`, by default by hash."""
        carries = next((row for row in rows if row.planned is not None), None)
        if carries is None or carries.planned is None:
            self._lease = None
            return
        of = min(carries.slots, LOOKING_SLOTS)
        own = is_own or (lambda place: hash_share(place, of) == slot)
        self._lease = _Lease(flow, carries, json.loads(carries.planned), own)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="added-partitions", daemon=True)
            self._thread.start()

    def found(self) -> list[LeaseRow]:
        """Return what was found for the lease since the last call."""
        rows: list[LeaseRow] = []
        try:
            while True:
                lease, row = self._found.get_nowait()
                if lease is self._lease:
                    rows.append(row)
        except Empty:
            return rows

    def end(self) -> None:
        """Stop looking; the next lease's plan has what was not taken."""
        self._lease = None

    def close(self) -> None:
        """Stop for good; the thread ends when the clusters have answered."""
        self._lease = None
        self._closed.set()

    def _run(self) -> None:
        pause_s, took_s = _EVERY_S, math.inf
        look: _Look | None = None
        while not self._closed.wait(pause_s):
            lease = self._lease
            if lease is None:
                continue
            began = time.monotonic()
            try:
                if look is None or look.flow != lease.flow:
                    if look is not None:
                        look.close()
                    look = _Look(lease.flow)
                for row in look.rows(lease):
                    self._found.put((lease, row))
                # A look that waited for a link that was cut says nothing of what the next one takes.
                before_s, took_s = took_s, time.monotonic() - began
                pause_s = max(_EVERY_S, min(before_s, took_s) * _SHARE)
            except Exception as error:  # noqa: BLE001 -- also of a custom policy; the next look may succeed
                _log.log(
                    logging.DEBUG if isinstance(error, MirrorlessError) else logging.WARNING,
                    "%s: could not look for new partitions: %s",
                    lease.flow.name,
                    error,
                )
                pause_s = _AGAIN_S
        if look is not None:
            look.close()


class _Look:
    """Connections to both ends of a flow."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._source, self._target = Admin(flow.source), Admin(flow.target)
        self._progress = ProgressTopic(flow, self._target)

    def close(self) -> None:
        """Close the connections."""
        self._progress.close()

    def rows(self, lease: _Lease) -> list[LeaseRow]:
        """Return rows of the slot's partitions that appeared since the last look; raises `ClusterError`."""
        source, target = self._source.metadata(), self._target.metadata()
        counts = PartitionCounts(partition_counts(source), partition_counts(target))
        if counts == lease.seen:
            return []
        refuse_loops(self.flow, counts.source.keys() | counts.target.keys())
        grown = {topic for topic, count in counts.source.items() if count > lease.planned.get(topic, 0)}
        remote = replicated_on(self.flow, self._source, counts.source, only=grown)
        copied = counts.copied(remote)
        places = [place for place in new_places(lease.planned, copied) if lease.is_own(place)]
        target_id = id_of(self.flow.target, target.cluster_id)
        rows = self._planned(places, remote, lease.row, target_id) if places else []
        lease.planned |= {topic: max(count, lease.planned.get(topic, 0)) for topic, count in copied.items()}
        lease.seen = counts
        return rows

    def _planned(
        self, places: list[TopicPartition], remote: Mapping[str, str], like: LeaseRow, target_id: str
    ) -> list[LeaseRow]:
        ends, _ = high_watermarks(self._source, places)
        known = self._progress.read()
        origins = SkippedOrigins(self.flow, target_id=target_id, progress=self._progress)
        seen = self._progress.notes.partitions if starts_at_latest(self.flow) else {}
        rows = [
            row_of(
                place,
                remote[place[0]],
                ends.get(place, 0),
                said,
                is_new=is_new(place, seen),
                origins=origins.of(place[0]),
            )
            for place in places
            if not _is_mirrormakers(said := known.get(place))
        ]
        return [replace(row, slots=like.slots, is_first=like.is_first) for row in rows]


def row_of(
    place: TopicPartition,
    remote_topic: str,
    end: int,
    known: Known | None,
    *,
    is_new: bool,
    origins: str | None,
    start: int | None = None,
) -> LeaseRow:
    """Return a lease's row of one partition, whose source ends at `end`."""
    progress = known.progress if known else None
    return LeaseRow(
        topic=place[0],
        partition=place[1],
        remote_topic=remote_topic,
        source_end=end,
        last_offset=progress.last_offset if progress else None,
        known=known.to_json() if known else None,
        is_new=is_new,
        origins=origins,
        start=start,
    )


def _is_mirrormakers(known: Known | None) -> bool:
    """Whether MirrorMaker 2 copied it last, and may still: the next plan decides that."""
    return known is not None and known.progress is not None and known.progress.sequence is None
