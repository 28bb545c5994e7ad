"""Copies a flow's source into an archive: batches as they were fetched, in objects of 64 MB or one minute.

A partition continues where its chain of objects ends; nothing else is remembered. An object is created on the
condition that there is none of its name: a writer that finds one has been overtaken, drops what it has, and reads the
chain again. So two writers at once, or one that was suspended, make one history.

Before an object is created the source's leader is asked whether it still has the log that was read: by the topic's id
(KIP-516), and by the leader epoch of the last batch (KIP-320). Where the source was truncated a new branch begins.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from mirrorless.archive.chain import LogId, read_chain
from mirrorless.archive.segment import Segment, read_footer
from mirrorless.archive.state import Document, LogEnds, Topic, identify, plain_groups, store_documents
from mirrorless.batches.header import FormatError
from mirrorless.clusters.admin import Admin
from mirrorless.clusters.client_settings import for_kafka_python
from mirrorless.clusters.configs import Origin, topic_configs
from mirrorless.clusters.groups import GroupOffsets, list_groups
from mirrorless.clusters.topics import high_watermarks, last_stable_offsets, topic_ids
from mirrorless.errors import MirrorlessError
from mirrorless.filters import group_filter_for, why_left_out
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.protocol import clients
from mirrorless.protocol.broker_errors import error_name
from mirrorless.protocol.cluster_client import EARLIEST, READ_COMMITTED
from mirrorless.protocol.leaders import NotNow, leader_of
from mirrorless.protocol.requests import OFFSET_OUT_OF_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.archive.object_store import ObjectStore
    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.requests import Fetched
    from mirrorless.settings import Flow

_CONNECT_MS: Final = 20_000
_WAIT_MS: Final = 500
_PAUSE_S: Final = 0.5
_STATE_S: Final = 1.0
_LARGEST_BYTES: Final = 64 << 20
_SPOOLED_BYTES: Final = 2 << 30
"""Of all partitions together; beyond it the largest ones become objects early."""
_RESPONSE_BYTES: Final = 32 << 20
_PARTITION_BYTES: Final = 8 << 20
_IDLE_ROUNDS: Final = 6
"""Without a batch: what is left of a log up to its end was compacted away."""
_PASSES: Final = (kafka_errors.KafkaError, NotNow)


@dataclass(slots=True)
class Log:
    """One partition: where its chain ends, and what waits to become an object. `halted` says in one line why it ends.

    `epoch` is the leader epoch of the record before `position`, -1 if it is not known.
    """

    id: LogId
    branch: int
    segment: Segment
    epoch: int = -1
    halted: str | None = None
    began_s: float = field(default_factory=time.monotonic)

    @property
    def place(self) -> TopicPartition:
        """The partition as clients name it."""
        return self.id.topic, self.id.partition

    @property
    def position(self) -> int:
        """The next offset to fetch."""
        return self.segment.end


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What a writer has done since it began, and what stopped; `overtaken` counts objects that another writer made."""

    objects: int
    size_bytes: int
    overtaken: int
    documents: int
    halted: dict[TopicPartition, str]
    notes: tuple[str, ...]


class ArchiveWriter:
    """Archives the topics that a flow selects; `say` receives lines for the operator.

    `object_s` is after how many seconds an object is complete, which is how much an archive lacks at most.
    """

    def __init__(self, flow: Flow, store: ObjectStore, *, object_s: float, say: Callable[[str], None]) -> None:
        self._flow = flow
        self._store = store
        self._object_s = object_s
        self._say = say
        self._admin = Admin(flow.source)
        self._groups = GroupOffsets(flow.source)
        self._net = clients.event_loop()
        self._wire = clients.cluster_client(
            self._net,
            cluster=flow.source.alias,
            cluster_id=flow.source.cluster_id,
            config=for_kafka_python(flow.source, role="consumer"),
        )
        self._logs: dict[TopicPartition, Log] = {}
        self._topics: dict[str, Topic] = {}
        self._documents: list[Document] = []
        self._documents_since_s = 0.0
        self._objects = self._bytes = self._overtaken = self._stored = 0
        self._notes: list[str] = []

    def run(self, stopping: Callable[[], bool], *, caught_up: bool = False) -> ArchiveReport:
        """Archive until `stopping`, or with `caught_up` until everything is archived that is there at the beginning.

        LogEnds with complete objects. Raises `MirrorlessError` if the source does not answer at the start, or for what
        the store refuses.
        """
        self._net.run(lambda: self._wire.connect(timeout_ms=_CONNECT_MS, topics=()))
        self._discover()
        identify(self._store, source_id=self._wire.cluster_id, source_alias=self._flow.source.alias)
        until = self._ends() if caught_up else None
        looked = stated = time.monotonic()
        idle = 0
        while not stopping():
            idle = 0 if self._net.run(self._fetch_all) else idle + 1
            now = time.monotonic()
            if now - stated >= _STATE_S:
                stated = now
                self._note_state()
            self._complete(now)
            if now - looked >= self._flow.refresh_topics_interval_seconds:
                looked = now
                self._discover()
            if until is not None and (idle >= _IDLE_ROUNDS or self._has(until)):
                break
        self._note_state()
        self._complete(None)
        return self.report()

    def report(self) -> ArchiveReport:
        """Return what was done until now."""
        halted = {log.place: log.halted for log in self._logs.values() if log.halted is not None}
        return ArchiveReport(self._objects, self._bytes, self._overtaken, self._stored, halted, tuple(self._notes))

    def close(self) -> None:
        """Close all connections; what is no object yet is dropped."""
        for log in self._logs.values():
            log.segment.close()
        self._groups.close()
        self._wire.close()
        self._net.close()

    # Topics and partitions

    def _discover(self) -> None:
        """Add partitions that are new, and those of topics that were created again."""
        metadata = self._admin.metadata()
        leaves_out = why_left_out(self._flow)
        wanted = {name: len(one.partitions) for name, one in metadata.topics.items() if leaves_out(name) is None}
        ids, missing = topic_ids(self._admin, wanted)
        for name, reason in missing.items():
            self._tell(f"{name}: {reason}")
        configs = topic_configs(self._admin, ids)[0]
        topics = {
            name: Topic(
                ids[name].replace("-", ""),
                wanted[name],
                {key: one.value or "" for key, one in configs.get(name, {}).items() if one.origin == Origin.TOPIC},
            )
            for name in sorted(ids)
        }
        for name in wanted.keys() - ids.keys() - missing.keys():
            self._tell(f"{name}: its cluster has no topic ids: an archive needs Kafka 2.8 or later")
        if self._documents and topics != self._topics:
            self._store_state()
        self._topics = topics
        self._net.run(lambda: self._wire.learn(topics))
        for one in (
            LogId(name, made.topic_id, number) for name, made in topics.items() for number in range(made.partitions)
        ):
            log = self._logs.get((one.topic, one.partition))
            if log is None or log.id != one:
                if log is not None:
                    self._store_object(log)
                self._logs[one.topic, one.partition] = self._resumed(one)
        for place in [place for place in self._logs if place[0] not in topics]:
            self._store_object(self._logs.pop(place))

    def _resumed(self, log: LogId) -> Log:
        """Return a log at the end of its chain; a new one begins where the source's does."""
        chain = read_chain(self._store, log)
        if chain.links:
            footer = read_footer(self._store, chain.links[-1].name)
            return Log(log, chain.branch, Segment(footer.end), footer.leader_epoch)
        return Log(log, 0, Segment(max(chain.floor, 0)))

    # Batches

    async def _fetch_all(self) -> bool:
        """Fetch once from every leader; returns whether anything came."""
        by_leader: dict[int, list[Log]] = {}
        for log in self._logs.values():
            node = self._wire.leader(log.place)
            if log.halted is None and node is not None:
                by_leader.setdefault(node, []).append(log)
        if not by_leader:
            self._wire.refresh_leaders()
            await self._net.sleep(_PAUSE_S)
            return False
        came = await self._wire.side_by_side(*(self._fetch(node, logs) for node, logs in by_leader.items()))
        return any(came)

    async def _fetch(self, node: int, logs: list[Log]) -> bool:
        # Those that waited longest first: a full answer has no room for the others.
        logs.sort(key=lambda log: log.segment.size_bytes)
        try:
            found = await self._wire.fetch(
                node,
                [(log.place, log.position, log.epoch) for log in logs],
                isolation=READ_COMMITTED,
                max_wait_ms=_WAIT_MS,
                max_bytes=_RESPONSE_BYTES,
                partition_max_bytes=_PARTITION_BYTES,
            )
        except _PASSES:
            self._wire.refresh_leaders()
            await self._net.sleep(_PAUSE_S)
            return False
        moved = False
        for one in found:
            moved = await self._take(self._logs[one.place], one) or moved
        return moved

    async def _take(self, log: Log, fetched: Fetched) -> bool:
        if fetched.error_code == OFFSET_OUT_OF_RANGE:
            await self._out_of_range(log)
        elif fetched.error_code:
            self._wire.refresh_leaders()
        elif fetched.diverges_at is not None:
            self._branch(log, fetched.diverges_at)
        elif self._wire.topic_id(log.id.topic) is None or self._is_of_another(log):
            return False  # the next look for topics finds it
        else:
            try:
                added = log.segment.add(fetched.records, fetched.aborted)
            except FormatError as error:
                self._halt(log, f"offset {error.offset}: {error}; an archive takes format v2 only")
                return False
            if added:
                log.epoch = log.segment.leader_epoch
            return bool(added)
        return False

    def _is_of_another(self, log: Log) -> bool:
        known = self._wire.topic_id(log.id.topic)
        return known is not None and known.hex != log.id.topic_id

    async def _out_of_range(self, log: Log) -> None:
        """Continue where the source's log begins, or begin a branch where it ends."""
        node = leader_of(self._wire, log.place)
        first = (await self._wire.offsets(node, [log.place], at=EARLIEST))[log.place]
        if first.error_code:
            self._wire.refresh_leaders()
        elif first.offset <= log.position:
            self._branch(log, (await self._wire.log_ends(node, [log.place]))[log.place].offset)
        elif log.epoch < 0 and log.segment.size_bytes == 0 and not log.position:
            log.segment = Segment(first.offset)  # nothing was archived yet
        elif self._flow.on_gap == "continue":
            end = log.position
            self._store_object(log)
            log.segment = Segment(first.offset, gap_from=end)
            self._tell(f"{log.place[0]}-{log.place[1]}: offsets {end} to {first.offset} were deleted on the source")
        else:
            self._halt(
                log,
                f"offsets {log.position} to {first.offset} were deleted on the source before they were archived; "
                "mirrorless.on.gap=continue archives what is left",
            )

    def _branch(self, log: Log, at: int) -> None:
        """Drop what the source's log does not have any more, and begin a branch there."""
        log.segment.close()
        log.branch += 1
        where = f"{log.place[0]}-{log.place[1]}"
        self._tell(f"{where}: the source's log was truncated at offset {at}: branch {log.branch} begins there")
        log.segment, log.epoch, log.began_s = Segment(at), -1, time.monotonic()

    def _halt(self, log: Log, reason: str) -> None:
        log.halted = reason
        self._tell(f"{log.place[0]}-{log.place[1]}: halted: {reason}")

    # Objects

    def _complete(self, now: float | None) -> None:
        """Make objects of what is large or old enough, with None of everything; then store the documents of state."""
        spooled = sum(log.segment.size_bytes for log in self._logs.values())
        aged = now is None or any(self._is_old(log, now) for log in self._logs.values())
        for log in sorted(self._logs.values(), key=lambda one: -one.segment.size_bytes):
            if aged or log.segment.size_bytes >= _LARGEST_BYTES or spooled > _SPOOLED_BYTES:
                spooled -= log.segment.size_bytes
                self._store_object(log)
        if aged or (now is not None and now - self._documents_since_s >= self._object_s):
            self._store_state()

    def _is_old(self, log: Log, now: float) -> bool:
        return log.segment.size_bytes > 0 and now - log.began_s >= self._object_s

    def _store_object(self, log: Log) -> None:
        """Create the object of a log, if it has batches, and begin the next one."""
        segment = log.segment
        log.began_s = time.monotonic()
        if not segment.size_bytes:
            return
        if not self._net.run(lambda: self._is_still_there(log)):
            return
        body = segment.finish(
            topic=log.id.topic,
            topic_id=log.id.topic_id,
            partition=log.id.partition,
            written_ms=int(time.time() * 1000),
        )
        if self._store.create(log.id.object(segment.first, log.branch), body):
            self._objects += 1
            self._bytes += segment.size_bytes
            log.segment = Segment(segment.end)
        else:
            self._overtaken += 1
            again = self._resumed(log.id)
            log.segment, log.branch, log.epoch = again.segment, again.branch, again.epoch
        segment.close()

    async def _is_still_there(self, log: Log) -> bool:
        """Ask the leader whether its log is the one that was read; begins a branch if it is not."""
        if self._is_of_another(log):
            return True  # it belongs to the id of the fetches, whatever the source has now
        while True:
            try:
                found = await self._wire.fetch(
                    leader_of(self._wire, log.place),
                    [(log.place, log.position, log.epoch)],
                    isolation=READ_COMMITTED,
                    partition_max_bytes=1,
                )
            except _PASSES:
                self._wire.refresh_leaders()
                await self._net.sleep(_PAUSE_S)
                if self._is_of_another(log) or self._wire.topic_id(log.id.topic) is None:
                    return True
                continue
            one = next((one for one in found if one.place == log.place), None)
            if one is None or not (one.error_code or one.diverges_at is not None):
                return True
            if one.diverges_at is not None:
                self._branch(log, one.diverges_at)
                return False
            if one.error_code == OFFSET_OUT_OF_RANGE:
                return True  # deleted since, or truncated: the next fetch finds out, and an object hides no branch
            self._tell(f"{log.place[0]}-{log.place[1]}: {error_name(one.error_code)}")
            self._wire.refresh_leaders()
            await self._net.sleep(_PAUSE_S)

    # State

    def _note_state(self) -> None:
        """Keep a document of now; what cannot be read is missing in it."""
        try:
            stable = last_stable_offsets(self._admin, self._logs)[0]
            high = high_watermarks(self._admin, self._logs)[0]
            selected = group_filter_for(self._flow)
            names = [name for name in list_groups(self._admin)[0] if selected.selects(name)]
            groups = {name: some for name, some in self._groups.committed(names) if not isinstance(some, str)}
        except MirrorlessError as error:
            self._tell(f"no state of this second: {error}")
            return
        logs = {place: LogEnds(high.get(place, end), end) for place, end in stable.items()}
        if not self._documents:
            self._documents_since_s = time.monotonic()
        self._documents.append(Document(int(time.time() * 1000), logs, plain_groups(groups)))

    def _store_state(self) -> None:
        if self._documents:
            store_documents(self._store, self._documents, self._topics)
            self._stored += len(self._documents)
            self._documents = []

    def _ends(self) -> dict[TopicPartition, int]:
        return last_stable_offsets(self._admin, self._logs)[0]

    def _has(self, until: dict[TopicPartition, int]) -> bool:
        return all(log.halted or log.position >= until.get(log.place, 0) for log in self._logs.values())

    def _tell(self, line: str) -> None:
        if line not in self._notes:
            self._notes.append(line)
            self._say(line)
