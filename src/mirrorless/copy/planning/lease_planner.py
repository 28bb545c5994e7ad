"""Plans a lease: queries both clusters and the progress, and determines for every partition where its copy is."""

from __future__ import annotations

import heapq
import logging
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from mirrorless import client_logs
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import client_rack
from mirrorless.clusters.compaction import CLEANUP_POLICY, COMPACT, policies
from mirrorless.clusters.configs import topic_configs
from mirrorless.clusters.identity import ends_of
from mirrorless.clusters.kafka_admin_client import admin_client
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.clusters.target_state import TargetState, TargetStates, configs_topic
from mirrorless.clusters.topics import high_watermarks, last_stable_offsets, partition_counts, topic_ids, undescribed
from mirrorless.copy.flow.start_group import group_starts
from mirrorless.copy.flow.status import gone, line_on_gone
from mirrorless.copy.planning.mm2_coexistence import CompetingMirrorMaker2
from mirrorless.copy.planning.records_there import begin_now, came_from_target, line_on_copies, records_of_others
from mirrorless.copy.planning.run_order import RunOrder
from mirrorless.copy.slot.added_partitions import LOOKING_SLOTS, PartitionCounts, planned_text, row_of
from mirrorless.errors import ClusterError, ClusterUnavailable, FlowPaused, MirrorlessError
from mirrorless.kafka_python.errors import KafkaError, RetriableError
from mirrorless.metadata.loop_check import refuse_loops
from mirrorless.metadata.service_records import replicated_on
from mirrorless.metadata.state_topics import progress_topic
from mirrorless.progress.copied_topics import learn_renamed
from mirrorless.progress.recovery import create_again, write_again
from mirrorless.progress.skipped_origins import SkippedOrigins
from mirrorless.progress.source_notes import is_new, starts_at_latest
from mirrorless.progress.topic import ProgressTopic
from mirrorless.progress.topic_ids import copied_id, is_another, remote_id

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Set

    from mirrorless.clusters.admin import Refusal
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.copy.partition.lease_rows import LeaseRow
    from mirrorless.kafka_python.admin import AdminRequests
    from mirrorless.progress.records import Known
    from mirrorless.settings import Flow

_KNOWN_FOR_S: Final = 600.0


class FollowableTopics:
    """Knows `cleanup.policy` of the source's topics for ten minutes; asks nothing without `client.rack`.

    Brokers compact their replicas independently. After a crash the copy counts the leader's records to find its
    position, and so does the translation of offsets: of a compacted topic a follower may have sent fewer.
    """

    def __init__(self, flow: Flow, admin: Admin, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rack = client_rack(flow.source)
        self._admin = admin
        self._clock = clock
        self._until = 0.0
        self._compacted: dict[str, bool] = {}
        self._name = flow.name
        self._told = False

    def among(self, topics: Iterable[str]) -> Set[str]:
        """Return those that may be read from followers; raises `ClusterUnavailable`.

        A topic whose configs may not be described is read from leaders, which is logged.
        """
        if self._rack is None:
            return frozenset()
        if self._clock() >= self._until:
            self._compacted.clear()
            self._until = self._clock() + _KNOWN_FOR_S
        wanted = set(topics)
        if missing := sorted(wanted - self._compacted.keys()):
            configs, refused = topic_configs(self._admin, missing)
            for topic in missing:
                policy = configs[topic].get(CLEANUP_POLICY) if topic in configs else None
                self._compacted[topic] = policy is None or COMPACT in (policy.value or COMPACT)
            self._note(refused)
        return {topic for topic in wanted if not self._compacted[topic]}

    def _note(self, refused: Mapping[str, Refusal]) -> None:
        if refused and not self._told:
            self._told = True
            topic, refusal = next(iter(refused.items()))
            _log.warning(
                "%s: %d topics are read from their leaders, because their cleanup.policy is not visible, among them "
                "%s: %s; grant DESCRIBE_CONFIGS on them",
                self._name,
                len(refused),
                topic,
                refusal.text,
            )


_Item = TypeVar("_Item")


def deal(items: Iterable[_Item], *, slots: int, weight: Callable[[_Item], int]) -> list[list[_Item]]:
    """Assign `items` to at most `slots` slots: the heaviest first, each to the slot with the smallest sum.

    Among slots of the same sum the one with fewer items gets the next, so that idle partitions are spread too. Slots
    without items are omitted.
    """
    piles: list[list[_Item]] = [[] for _ in range(slots)]
    heap = [(0, 0, number) for number in range(slots)]
    for item in sorted(items, key=weight, reverse=True):
        total, count, number = heapq.heappop(heap)
        piles[number].append(item)
        heapq.heappush(heap, (total + weight(item), count + 1, number))
    return [pile for pile in piles if pile]


_DISCOVERIES = 2
"""Number of topic discoveries after which a partition that is missing on the target is reported."""
_log = logging.getLogger(__name__)


class LeasePlanner:
    """Keeps connections to both ends of a flow between leases; `bounded` fixes the source's end at the first plan.

    `order` is the place of this run of the flow's copy among other runs; the planner closes it.

    `waiting` says why partitions were left out of the last plan, or may make no progress; empty if there are none.
    `news` is what only the last plan has to report.
    `missing` says that some brokers of the source did not answer it.
    """

    def __init__(self, flow: Flow, *, bounded: bool, order: RunOrder | None = None) -> None:
        client_logs.set_up()
        self.flow = flow
        self._bounded = bounded
        self._order: RunOrder | None = RunOrder(flow) if order is None else order
        self._ends: dict[TopicPartition, int] = {}
        self._source = Admin(flow.source)
        self._target = Admin(flow.target)
        self._progress = ProgressTopic(flow, self._target)
        self._rival = CompetingMirrorMaker2(flow)
        self._unmade: dict[TopicPartition, float] = {}
        self._gone: set[str] = set()
        self.waiting = self.news = ""
        self.missing = False
        self._sizes: Sizes | None = Sizes(flow)
        self._states = TargetStates(flow, admin=self._target)
        self._followable = FollowableTopics(flow, self._source)
        self._skipped: SkippedOrigins | None = None
        self._has_planned = False

    def prepare(self) -> bool:
        """Connect to both ends and read the progress, so that the first plan takes a few round trips only.

        What fails is left to the plan, which reports it. Returns whether the progress could be read.
        """

        def attempt(read: Callable[[], object]) -> None:
            with suppress(MirrorlessError):
                read()

        reads = self._source.metadata, self._target.metadata, self._states.read, self._progress.read
        side_by_side(*(partial(attempt, read) for read in reads))
        return self._progress.was_read

    def refuse_paused(self) -> None:
        """Raise `FlowPaused` if the flow's target state is not STARTED, `ClusterUnavailable` if that is not known."""
        state = self._states.read()
        if state is not TargetState.STARTED:
            topic = None if self.flow.paused_by_file else configs_topic(self.flow).name
            raise FlowPaused(flow=self.flow.name, state=state, topic=topic)

    def plan(self, flow: Flow, *, slots: int | None = None) -> list[list[LeaseRow]]:
        """Return one list of rows per slot; `flow` is the current configuration, with the same `connections`.

        `slots` is their maximum besides `tasks.max`: one without a core would only start when another one's lease ends.

        Raises `ClusterError` if an end does not answer, `SameClusterError` if there is only one cluster, `LoopError` if
        topics would be replicated in a loop, and `MirrorMaker2Runs` if MirrorMaker 2 copies the same flow, or may.
        """
        self.flow = flow
        # Progress that is older than the source's ends makes a partition's lag longer at most.
        source, target, read = side_by_side(self._source.metadata, self._target.metadata, self._read_progress)
        ids = ends_of(flow, source=self._source, target=self._target, at_source=source, at_target=target)
        counts = PartitionCounts(partition_counts(source), partition_counts(target))
        refuse_loops(flow, counts.source.keys() | counts.target.keys())
        learn_renamed(flow, self._source)
        remote = replicated_on(flow, self._source, counts.source)
        copied = counts.copied(remote)
        places = [(topic, partition) for topic, count in copied.items() for partition in range(count)]
        kept, (ends, unknown) = side_by_side(lambda: self._kept_badly(counts.target), lambda: self._source_ends(places))
        if isinstance(read, MirrorlessError):
            if progress_topic(flow).name in counts.target:
                raise read
            read = self._progress.read()  # it was deleted, and is there again
        known, waiting = self._rival.read(self._progress, ends.keys() & set(places), read)
        kept = self._written_again() or kept
        if known and not counts.source:
            # A broker that has just started may have no topics for some seconds (2.8 and 3.9 with ZooKeeper).
            raise ClusterUnavailable(
                f"no topics are visible, but {len(known)} partitions were copied: the broker has just started, or "
                "the flow's user lost DESCRIBE on its topics",
                cluster=flow.source.alias,
            )
        unmade = self._not_made(counts.source, copied)
        self._note_gone(gone(flow, known, source={*counts.source, *undescribed(source)}, target=counts.target))
        copies = came_from_target(flow, self._source, places, known)
        alike = line_on_copies(flow, copies) if copies else ""
        self.waiting = str(self._rival.may_run(waiting)) if waiting else kept or unknown or unmade or alike
        places = [place for place in places if place in ends and place not in waiting | copies.keys()]
        starts = group_starts(flow, begin_now(places, known))
        if not self._has_planned and (others := records_of_others(flow, self._target, remote, places, known)):
            self.news = "; ".join(filter(None, (self.news, others)))
        seen = self._progress.notes.partitions if starts_at_latest(flow) else {}
        if self._skipped is None or self._skipped.is_old(flow, ids.target_id):
            self._skipped = SkippedOrigins(flow, target_id=ids.target_id, progress=self._progress)
        origins = {topic: self._skipped.of(topic) for topic in {place[0] for place in places}}
        rows = [
            row_of(
                place,
                remote[place[0]],
                ends[place],
                known.get(place),
                is_new=is_new(place, seen),
                origins=origins[place[0]],
                start=starts.get(place),
            )
            for place in places
        ]
        if self._bounded:
            rows = self._worth_a_look(rows, known)
        followable = self._followable.among({row.topic for row in rows})
        slots = min(flow.tasks_max, slots or flow.tasks_max)
        weights = self._lag_bytes(rows) if slots > 1 else dict.fromkeys(((row.topic, row.partition) for row in rows), 0)
        piles = deal(
            rows,
            slots=slots,
            weight=lambda row: weights[row.topic, row.partition],
        )
        is_first = self._is_first(flow) if rows else True
        dealt = [
            [replace(row, slots=len(piles), is_first=is_first, followable=row.topic in followable) for row in pile]
            for pile in piles
        ]
        if not self._bounded:
            for pile in dealt[:LOOKING_SLOTS]:
                pile[0] = replace(pile[0], planned=planned_text(copied))
        self._has_planned = True
        return dealt

    def planned_again(self, rows: Iterable[LeaseRow]) -> list[LeaseRow]:
        """Return the rows of a plan as first ones, with the progress that another run has written since."""
        known = self._progress.read()
        return [
            replace(
                row,
                is_first=True,
                known=said.to_json(),
                last_offset=said.progress.last_offset if said.progress else row.last_offset,
            )
            if (said := known.get((row.topic, row.partition)))
            else replace(row, is_first=True)
            for row in rows
        ]

    def close(self) -> None:
        """Close what was opened."""
        if self._order is not None:
            self._order.close()
        self._progress.close()
        self._states.close()
        if self._sizes is not None:
            self._sizes.close()

    def _read_progress(self) -> dict[TopicPartition, Known] | MirrorlessError:
        try:
            return self._progress.read()
        except MirrorlessError as error:
            return error

    def _is_first(self, flow: Flow) -> bool:
        assert self._order is not None
        self._order.follow(flow)
        claimed = self._order.claimed
        is_first = self._order.is_first()
        if self._order.claimed != claimed:
            self.refuse_paused()  # who stops the flow now, sees the mark
        return is_first

    def _note_gone(self, topics: Mapping[str, str]) -> None:
        """Report a copied topic that is not on the source any more, once until it is there again."""
        lines = [line_on_gone(self.flow, topic, topics[topic]) for topic in sorted(topics.keys() - self._gone)]
        self.news = "; ".join(lines)
        self._gone = set(topics)

    def _kept_badly(self, there: Collection[str]) -> str:
        """A line on a progress topic that is not compacted, with which a run does not begin; raises `ClusterError`.

        If it was deleted since it was read, it is recreated.
        """
        topic = progress_topic(self.flow)
        if topic.name not in there:
            if self._progress.was_read:
                create_again(self.flow, self._target)
            return ""
        policy = policies(self._target, [topic.name]).wrong.get(topic.name)
        if policy is None:
            return ""
        line = f"topic {topic.name} has {topic.complaint(policy)}"
        if not self._has_planned:
            raise ClusterError(line, cluster=self.flow.target.alias)
        return f"cluster {self.flow.target.alias}: {line}"

    def _written_again(self) -> str:
        """Write what a deleted progress topic lost again, and return a line on it; empty if nothing was lost."""
        if not self._progress.lost:
            return ""
        told = write_again(self.flow, self._progress.lost)
        self._progress.found_again()
        return told

    def _not_made(self, counts: Mapping[str, int], copied: Mapping[str, int]) -> str:
        """A line on partitions that the target has lacked for longer than topic discovery needs to create them."""
        now = time.monotonic()
        lacking = [(topic, partition) for topic, there in copied.items() for partition in range(there, counts[topic])]
        self._unmade = {place: self._unmade.get(place, now) for place in lacking}
        patience_s = _DISCOVERIES * self.flow.refresh_topics_interval_seconds
        late = [place for place, since in self._unmade.items() if now - since >= patience_s]
        if not late:
            return ""
        topic, partition = late[0]
        return (
            f"{len(late)} partitions are not copied, since {self.flow.target.alias} lacks them, among them "
            f"{topic}-{partition}; the log of topic discovery has the reason"
        )

    def _worth_a_look(self, rows: list[LeaseRow], known: Mapping[TopicPartition, Known]) -> list[LeaseRow]:
        """Partitions with records to copy, of which a side has less than was copied, or of a recreated topic."""
        progress = {place: said.progress for place, said in known.items() if said.progress is not None}
        remote_ends, _ = last_stable_offsets(self._target, [(row.remote_topic, row.partition) for row in rows])

        def is_short(row: LeaseRow) -> bool:
            copied = progress.get((row.topic, row.partition))
            if copied is None:
                return False
            remote_end = remote_ends.get((row.remote_topic, row.partition))
            last = -1 if copied.last_downstream is None else copied.last_downstream
            lost = remote_end is not None and last >= remote_end
            return lost or copied.last_offset >= row.source_end

        idle = [row for row in rows if row.lag_records == 0 and not is_short(row)]
        said = {row.place: known.get(row.place) for row in idle}
        ids, _ = topic_ids(self._source, {topic for (topic, _), one in said.items() if copied_id(one)})
        remote_ids, _ = topic_ids(self._target, {row.remote_topic for row in idle if remote_id(said[row.place])})
        left = {
            row.place
            for row in idle
            if not is_another(said[row.place], ids.get(row.topic))
            and remote_id(said[row.place]) in (None, remote_ids.get(row.remote_topic))
        }
        return [row for row in rows if row.place not in left]

    def _source_ends(self, places: list[TopicPartition]) -> tuple[Mapping[TopicPartition, int], str]:
        """The ends of the source's partitions, and a line on partitions without an answer.

        These have the last known end, if any: their slot, which has separate connections, asks itself,
        and reports the error.
        """
        if self._bounded and self._ends:
            return self._ends, ""
        # The high watermarks, since records of open transactions exist, and are waited for.
        ends, missing = high_watermarks(self._source, places)
        text = ""
        self.missing = bool(missing)
        if missing:
            (topic, partition), reason = next(iter(missing.items()))
            text = f"the end of {len(missing)} partitions is not known, among them {topic}-{partition}: {reason}"
            if self._bounded:
                raise ClusterUnavailable(text, cluster=self.flow.source.alias)
            ends |= {place: self._ends.get(place, 0) for place in missing}
        self._ends = ends
        return ends, text

    def with_new_clients(self) -> LeasePlanner:
        """Return a planner with new clients that log in again and this one's knowledge; this one is closed then.

        A client keeps the login that it was created with, which may have been changed since. Raises `MirrorlessError`
        if a client cannot be created; then this one stays usable.
        """
        assert self._order is not None
        self._order.log_in_again()
        planner = LeasePlanner(self.flow, bounded=self._bounded, order=self._order)
        planner._ends, planner._rival, planner._unmade = self._ends, self._rival, self._unmade
        planner._gone, planner._has_planned = self._gone, self._has_planned
        self._order = None
        planner._progress.follow(self._progress)
        self.close()
        return planner

    def _lag_bytes(self, rows: list[LeaseRow]) -> dict[TopicPartition, int]:
        """How much each partition has left to copy, in bytes; in records, if sizes may not be described."""
        lags = {(row.topic, row.partition): row.lag_records for row in rows}
        if self._sizes is None or not any(lags.values()):
            return lags
        try:
            sizes = self._sizes.read()
        except KafkaError as error:
            _log.warning(
                "%s: partition sizes are unknown, assigning by records instead of bytes: %s", self.flow.name, error
            )
            self._sizes.close()
            if not isinstance(error, RetriableError):
                self._sizes = None
            return lags
        # As if the log began at offset 0: sufficient to distinguish a hot partition from an idle one.
        return {
            place: max(lag, lag * sizes.get(place, 0) // max(1, self._ends.get(place, 1)))
            for place, lag in lags.items()
        }


class Sizes:
    """Bytes of every partition of a flow's source on its brokers' disks (`DescribeLogDirs`, KIP-113)."""

    def __init__(self, flow: Flow) -> None:
        self._cluster = flow.source
        self._client: AdminRequests | None = None

    def read(self) -> dict[TopicPartition, int]:
        """The largest replica's bytes of every partition; raises kafka-python's errors."""
        if self._client is None:
            self._client = admin_client(self._cluster)
        sizes: dict[TopicPartition, int] = {}
        for broker in self._client.describe_log_dirs():
            for log_dir in broker["log_dirs"]:
                for topic in log_dir["topics"]:
                    for part in topic["partitions"]:
                        place = topic["name"], part["partition_index"]
                        sizes[place] = max(sizes.get(place, 0), part["partition_size"])
        return sizes

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None
