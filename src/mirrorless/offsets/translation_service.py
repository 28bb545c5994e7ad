"""Translates offsets of one flow's source: queries both clusters, walks the source if necessary, caches walks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.batches.producers import EVERY_PRODUCER
from mirrorless.batches.record_counter import RecordCounter
from mirrorless.clusters.internal_topics import offset_syncs_topic
from mirrorless.clusters.replay import Replay
from mirrorless.clusters.side_by_side import side_by_side
from mirrorless.clusters.topics import last_stable_offsets, log_starts, partition_counts, topic_ids
from mirrorless.formats import Malformed, OffsetSync
from mirrorless.log_walk import Walk, Walker
from mirrorless.modes import Modes
from mirrorless.offsets.checkpoints import remote_topic
from mirrorless.offsets.mm2_sync_store import SyncStore
from mirrorless.offsets.offset_map import OffsetMap, Run, RunStore, points, taken_over
from mirrorless.offsets.translation import How, Translated, Unknown, WalkNeeded, inside_log, translate
from mirrorless.policy import policy_for
from mirrorless.progress.records import Known
from mirrorless.progress.topic import ProgressTopic
from mirrorless.progress.topic_ids import NOT_COPIED, NOT_KNOWN, copied_id, is_another
from mirrorless.protocol.log_ends import short_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mirrorless.batches.producers import ProducerFilter
    from mirrorless.clusters.admin import Admin
    from mirrorless.clusters.internal_topics import InternalTopic
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.settings import Flow

_MOST_REMEMBERED: Final = 500_000

Answers = dict["TopicPartition", dict[int, Translated | Unknown]]
"""By source topic and partition, and by upstream offset."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A walk's answer; it is void when another epoch of its partition began."""

    downstream: int
    version: tuple[object, ...]


@dataclass(slots=True)
class Walked:
    """Statistics of walks: `records` counted, and why walks were ended."""

    walks: int = 0
    records: int = 0
    troubles: list[str] = field(default_factory=list)


def counter_from(
    known: Known | None, start: int, until: Sequence[int], *, producers: ProducerFilter = EVERY_PRODUCER
) -> RecordCounter:
    """Count from upstream offset `start`; with the source's leader epoch before it, where the progress ends there."""
    last = known.progress if known is not None else None
    if last is None or last.leader_epoch is None or last.last_offset + 1 != start:
        return RecordCounter(start, until, producers=producers)
    return RecordCounter(start, until, leader_epoch=last.leader_epoch, producers=producers)


class Translator:
    """Everything that is known about a flow's offsets; call `refresh` before `translate`.

    `must_read_to_end` is for when earlier checkpoints could not be read. With `inside_log`
    answers at records that the target's retention has deleted are raised to the first offset left, where a
    group continues. `shares_target`: records of other origins are in the same partitions of the target.
    `keeps_offsets` is as in `Modes`.
    """

    shares_target = False

    def __init__(
        self, flow: Flow, *, source: Admin, target: Admin, must_read_to_end: bool = False, inside_log: bool = True
    ) -> None:
        self._flow = flow
        self._policy, self.keeps_offsets = policy_for(flow), Modes(flow).keeps_offsets
        self._source, self._target = source, target
        self._inside_log = inside_log
        on_target = flow.offset_syncs_topic_location == "target"
        self.syncs = OffsetSyncs(
            offset_syncs_topic(flow), target if on_target else source, must_read_to_end=must_read_to_end
        )
        self.progress_topic = ProgressTopic(flow, target)
        self.progress: Mapping[TopicPartition, Known] = {}
        self._ids: dict[str, str] = {}
        self._unidentified: dict[str, str] = {}
        self._walker = Walker(flow.source)
        self._remembered: dict[tuple[TopicPartition, int], _Remembered] = {}
        self.target_ends: dict[TopicPartition, int] = {}
        self._target_starts: dict[TopicPartition, int] = {}
        self.walked = Walked()

    def remote(self, topic: str) -> str:
        """Name of a source topic on the target."""
        return remote_topic(topic, source=self._flow.source.alias, target=self._flow.target.alias, policy=self._policy)

    def prepare(self, *, stopping: Callable[[], bool] = lambda: False) -> None:
        """Connect, and read what `refresh` then only reads on; raises `ClusterError`."""
        side_by_side(
            lambda: self.syncs.read(stopping=stopping),
            lambda: self._read_progress(partition_counts(self._target.metadata()), stopping),
        )

    def _read_progress(self, counts: Mapping[str, int], stopping: Callable[[], bool]) -> bool:
        """Read the progress if the target has its topic; returns whether it was read to its end."""
        if self._flow.offset_storage_topic not in counts:
            return True
        self.progress = self.progress_topic.read(stopping=stopping)
        return self.progress_topic.complete

    def refresh(self, places: Iterable[TopicPartition], *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read the current state of these source partitions; raises `ClusterError`.

        Once `stopping` returns true the rest is left to the next call, and False returned: nothing can be translated
        yet.
        """
        places = list(places)
        # The target's ends first: see `translation.translate`.
        counts = partition_counts(self._target.metadata())
        remote = {place: (self.remote(place[0]), place[1]) for place in places}
        there = {place: there for place, there in remote.items() if there[1] < counts.get(there[0], 0)}
        (ends, _), (starts, _) = side_by_side(
            lambda: last_stable_offsets(self._target, there.values()),
            lambda: log_starts(self._target, there.values() if self._inside_log else ()),
        )
        self.target_ends = {place: ends[far] for place, far in there.items() if far in ends}
        self._target_starts = {place: starts[far] for place, far in there.items() if far in ends and far in starts}
        # Then the syncs before the progress, which so has the announcement of each sync's epoch.
        whole = self.syncs.read(stopping=stopping) and self._read_progress(counts, stopping)
        if whole:
            self._identify({topic for topic, _ in places})
        return whole

    def identify(self, topics: Iterable[str], *, stopping: Callable[[], bool] = lambda: False) -> None:
        """Find which of these source topics were recreated, and nothing else; raises `ClusterError`."""
        if self._flow.offset_storage_topic in partition_counts(self._target.metadata()):
            self.progress = self.progress_topic.read(stopping=stopping)
        self._identify(set(topics))

    def why_not(self, place: TopicPartition) -> str | None:
        """Why no offset of a source partition translates: its topic was recreated. None if not.

        As of the last `refresh`, or `identify`, with a place of its topic.
        """
        known = self.progress.get(place)
        topic_id = self._ids.get(place[0])
        if topic_id is None and place[0] in self._unidentified and copied_id(known) is not None:
            return NOT_KNOWN
        return NOT_COPIED if is_another(known, topic_id) else None

    def shortened(
        self, places: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
        """Return where the target's logs end now that end before what was copied to them, and why some are unknown."""
        expected = {place: self.progress[place].target_end for place in places if place in self.progress}
        remote = {
            (self.remote(place[0]), place[1]): place
            for place, end in expected.items()
            if end > self.target_ends.get(place, 0) and self.why_not(place) is None
        }
        short, missing = short_logs(
            self._flow.target, self._target, {there: expected[place] for there, place in remote.items()}
        )
        return (
            {remote[there]: end for there, end in short.items()},
            {remote[there]: reason for there, reason in missing.items()},
        )

    def _identify(self, topics: set[str]) -> None:
        """Query ids after the offsets of groups: offsets of a topic that was deleted since are void too."""
        copied = {topic for (topic, _), known in self.progress.items() if topic in topics and copied_id(known)}
        found, missing = topic_ids(self._source, copied)
        self._ids = {topic: one for topic, one in self._ids.items() if topic not in topics} | found
        self._unidentified = {topic: one for topic, one in self._unidentified.items() if topic not in topics} | missing

    def line(self, place: TopicPartition) -> OffsetMap:
        """Everything that is certain about a source partition."""
        known = self.progress.get(place) or Known()
        if self.keeps_offsets(place[0]) and known.is_identical:
            return OffsetMap((Run(0, 0, self.target_ends.get(place, 0)),))
        runs = self.syncs.runs
        return OffsetMap.of(
            runs.runs(place),
            points(known.progress, known.announced),
            foreign=[*runs.foreign(place), *taken_over(known.announced)],
        )

    def turn_starts(self, place: TopicPartition) -> list[int]:  # noqa: ARG002
        """Return where the flow's turns began on the source; none unless it takes turns."""
        return []

    def counter(self, place: TopicPartition, start: int, until: Sequence[int]) -> RecordCounter:
        """Count the records of a source partition from `start` on; a log that was cut before that is refused."""
        return counter_from(self.progress.get(place), start, until)

    def translate(self, wanted: Mapping[TopicPartition, Collection[int]], *, deadline: float) -> Answers:
        """Translate upstream offsets; walks end at the monotonic time `deadline`."""
        self.walked = Walked()
        answers: Answers = {place: {} for place in wanted}
        needed: dict[TopicPartition, dict[int, WalkNeeded]] = {}
        for place, offsets in wanted.items():
            end = self.target_ends.get(place)
            if end is None:
                answers[place] = dict.fromkeys(
                    offsets, Unknown(f"{self.remote(place[0])} does not exist on the target")
                )
                continue
            if (reason := self.why_not(place)) is not None:
                answers[place] = dict.fromkeys(offsets, Unknown(reason))
                continue
            line = self.line(place)
            for offset in offsets:
                found = translate(offset, line=line, nearest=self.syncs.slots.nearest(place, offset), target_end=end)
                if isinstance(found, WalkNeeded):
                    needed.setdefault(place, {})[offset] = found
                else:
                    answers[place][offset] = found
        self._walk(needed, answers, deadline)
        if self._inside_log:
            for place, start in self._target_starts.items():
                if place in answers:
                    answers[place] = {offset: inside_log(one, start) for offset, one in answers[place].items()}
        return answers

    def read_again(self, place: TopicPartition, offset: int, answer: Translated) -> int:
        """Return the maximum number of records between the answer and the exact one, which is unknown if not exact."""
        if answer.exact:
            return 0
        run, following = self.line(place).at(offset)
        ceiling = self.target_ends[place] if following is None else following.first_downstream
        most = ceiling - answer.downstream
        return max(0, most if run is None else min(most, offset - run.end_upstream))

    def close(self) -> None:
        """Close all connections."""
        self.syncs.close()
        self.progress_topic.close()
        self._walker.close()

    def _walk(
        self, needed: Mapping[TopicPartition, Mapping[int, WalkNeeded]], answers: Answers, deadline: float
    ) -> None:
        walks: list[Walk] = []
        for place, by_offset in needed.items():
            by_start: dict[int, list[int]] = defaultdict(list)
            version = self._version(place)
            for offset, walk in sorted(by_offset.items()):
                remembered = self._remembered.get((place, offset))
                if remembered is not None and remembered.version == version and remembered.downstream <= walk.ceiling:
                    answers[place][offset] = Translated(remembered.downstream, How.WALK)
                else:
                    by_start[walk.from_upstream].append(offset)
            walks += [Walk(place, self.counter(place, start, offsets)) for start, offsets in by_start.items()]
        self._walker.walk(walks, deadline=deadline)
        if len(self._remembered) > _MOST_REMEMBERED:
            self._remembered.clear()
        for done in walks:
            version = self._version(done.place)
            for offset in done.counter.until:
                asked, records = needed[done.place][offset], done.counter.counts.get(offset)
                answer = asked.not_counted() if records is None else asked.counted(records)
                answers[done.place][offset] = answer
                if answer.how is How.WALK:
                    self._remembered[done.place, offset] = _Remembered(answer.downstream, version)
            self.walked.walks += 1
            self.walked.records += done.counter.records
            if done.trouble is not None:
                self.walked.troubles.append(f"{done.place[0]}-{done.place[1]}: {done.trouble}")

    def _version(self, place: TopicPartition) -> tuple[object, ...]:
        known = self.progress.get(place) or Known()
        return self.syncs.runs.resets(place), max(known.announced, default=None)


class OffsetSyncs:
    """The offset syncs topic; `admin` is the client of its cluster.

    `slots` is MirrorMaker 2's store, `runs` this program's; `malformed` counts the skipped records.
    """

    def __init__(self, topic: InternalTopic, admin: Admin, *, must_read_to_end: bool = False) -> None:
        self._replay = Replay(topic=topic.name, cluster=topic.cluster, admin=admin)
        self.slots = SyncStore(must_read_to_end=must_read_to_end)
        self.runs = RunStore()
        self.malformed = 0

    def read(self, *, stopping: Callable[[], bool] = lambda: False) -> bool:
        """Read to the topic's end, and return whether it was reached; raises `ClusterUnavailable`."""
        for entry in self._replay.read(self._forget, stopping=stopping):
            sync = OffsetSync.parse(entry.key, entry.value)
            if isinstance(sync, Malformed):
                self.malformed += 1
            else:
                self.slots.add(sync)
                self.runs.add(sync)
        if self._replay.complete:
            self.slots.initialized()
        return self._replay.complete

    def close(self) -> None:
        """Close the connection."""
        self._replay.close()

    def _forget(self) -> None:
        self.slots.forget()
        self.runs.forget()
