"""Resets a copy: its next epoch begins at another offset, or in a remote topic that was emptied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mirrorless.copy.flow.connections import FlowConnections
from mirrorless.copy.resume.epochs import Epochs
from mirrorless.errors import ClusterError, ConfigurationError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.metadata.plan import replicated
from mirrorless.progress.epoch_kind import EpochKind
from mirrorless.progress.producer_ids import producer_id
from mirrorless.progress.records import Announcement, Known, Progress, SourcePartition
from mirrorless.progress.writer import ProgressWriter
from mirrorless.protocol import cluster_client
from mirrorless.protocol.broker_errors import error_for
from mirrorless.protocol.leaders import by_leader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence

    from mirrorless.clusters.topic_partition import TopicPartition
    from mirrorless.protocol.cluster_client import ClusterClient
    from mirrorless.settings import Flow

_FLUSH_S = 30.0
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """One partition to reset: epoch `epoch` begins at source offset `start`; `position` is the next offset until then.

    `end` is the source's last stable offset, `remote_begin` and `remote_end` what the remote partition holds.
    `stood_at` is the epoch of its last record of ours, None where the target does not remember it. `turn`: with
    identical offsets a turn begins, at the same offset on both sides.
    """

    topic: str
    partition: int
    remote_topic: str
    position: int | None
    start: int
    end: int
    remote_begin: int
    remote_end: int
    epoch: int
    topic_id: str | None
    stood_at: int | None = None
    turn: bool = False

    @property
    def downstream(self) -> int:
        """The offset of the remote partition where the epoch begins."""
        return self.start if self.turn else self.remote_end

    @property
    def repeated(self) -> int:
        """Offsets that were copied and will be copied again, some of which the remote partition may still hold."""
        if self.position is None or self.remote_begin == self.remote_end:
            return 0
        return max(0, min(self.position, self.end) - self.start)

    @property
    def skipped(self) -> int:
        """Offsets that were not copied and will not be."""
        return max(0, self.start - (0 if self.position is None else self.position))


class Resetter:
    """Connections to both ends of a flow for as long as a reset takes; raises `ClusterError` where one fails."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._ends = FlowConnections(flow)
        self._source, self._target = self._ends.source, self._ends.target

    def plan(
        self, topic: str, to: int | Mapping[int, int], *, partitions: Collection[int] = (), turn: bool = False
    ) -> list[Reset]:
        """Plan the reset of these partitions of a source topic, of all if none is named.

        `to` is `EARLIEST`, `LATEST`, an offset, or minus a time in ms; or an offset by partition. `turn` is as in
        `Reset`. Raises `ConfigurationError` for a topic that the flow does not replicate, and for a partition that one
        side does not have. Nothing is written.
        """
        remote = replicated(self._flow, {topic: 1}).get(topic)
        if remote is None:
            raise ConfigurationError(f"flow {self._flow.name} does not replicate this topic", key="topic", value=topic)
        return self._run(lambda: self._plan(topic, remote, to, partitions, turn=turn))

    def apply(self, resets: Sequence[Reset]) -> None:
        """Announce the new epochs and write the new progress; a running copy continues there at its next lease."""
        self._run(lambda: self._announce(resets))
        flow = self._flow
        progress_writer = ProgressWriter(topic=flow.offset_storage_topic, cluster=flow.target)
        for one in resets:
            where = SourcePartition(flow.progress_alias, one.topic, one.partition, flow.connector_name)
            # MirrorMaker 2 would continue from here too.
            progress = Progress(
                last_offset=one.start - 1, sequence=0, epoch=one.epoch, last_downstream=one.downstream - 1
            )
            progress_writer.write(where.progress_key(), progress.to_bytes())
        if not progress_writer.flush(_FLUSH_S) or progress_writer.failures:
            reason = progress_writer.error or f"{flow.offset_storage_topic} does not take the new positions"
            raise ClusterError(f"{reason}; the new epochs are announced, repeat the reset", cluster=flow.target.alias)

    def close(self) -> None:
        """Close all connections."""
        self._ends.close()

    def _run(self, work: Callable[[], Coroutine[Any, Any, _Answer]]) -> _Answer:
        try:
            return self._ends.run(work)
        except kafka_errors.KafkaError as error:
            raise ClusterError(str(error), cluster=f"{self._flow.source.alias} or {self._flow.target.alias}") from error

    async def _plan(
        self, topic: str, remote: str, to: int | Mapping[int, int], wanted: Collection[int], *, turn: bool
    ) -> list[Reset]:
        await self._ends.connect(self._flow, topics={topic}, remote_topics={remote})
        partitions = self._source.partition_count(topic)
        if not partitions:
            raise ConfigurationError(f"{self._flow.source.alias} has no such topic", key="topic", value=topic)
        remote_partitions = self._target.partition_count(remote)
        if not remote_partitions:
            raise ConfigurationError(_range(remote, 0), key="topic", value=topic)
        numbers = sorted(set(wanted)) or range(min(partitions, remote_partitions))
        for number in numbers:
            for name, count in ((topic, partitions), (remote, remote_partitions)):
                if not 0 <= number < count:
                    raise ConfigurationError(_range(name, count), key="partition", value=str(number))
        known = self._ends.progress.read()
        places, remotes = ([(name, number) for number in numbers] for name in (topic, remote))
        first, end = [
            await self._offsets(self._source, places, at) for at in (cluster_client.EARLIEST, cluster_client.LATEST)
        ]
        remembered = await self._epochs({(remote, number): (topic, number) for number in numbers})
        begins, ends = [
            await self._offsets(self._target, remotes, at) for at in (cluster_client.EARLIEST, cluster_client.LATEST)
        ]
        timed: dict[TopicPartition, int] = {}
        if isinstance(to, int) and to < cluster_client.EARLIEST:
            timed = await self._offsets(self._source, places, -to)
        topic_id = self._source.topic_id(topic)
        resets = []
        for place, there in zip(places, remotes, strict=True):
            at = to if isinstance(to, int) else to[place[1]]
            start = {cluster_client.EARLIEST: first[place], cluster_client.LATEST: end[place]}.get(at, at)
            if timed:
                start = end[place] if timed[place] < 0 else timed[place]
            now = known.get(place, Known())
            stood_at = remembered.get(there)
            epochs = [-1 if stood_at is None else stood_at, *now.announced]
            if now.progress is not None and now.progress.epoch is not None:
                epochs.append(now.progress.epoch)
            resets.append(
                Reset(
                    topic=topic,
                    partition=place[1],
                    remote_topic=remote,
                    position=None if now.progress is None else now.progress.last_offset + 1,
                    # A turn that begins before what retention left has a gap, which the copy reports.
                    start=min(start if turn else max(start, first[place]), end[place]),
                    end=end[place],
                    remote_begin=begins[there],
                    remote_end=ends[there],
                    epoch=max(epochs) + 1,
                    topic_id=None if topic_id is None else str(topic_id),
                    stood_at=stood_at,
                    turn=turn,
                )
            )
        return resets

    async def _epochs(self, remotes: Mapping[TopicPartition, TopicPartition]) -> dict[TopicPartition, int]:
        """Return the epoch of our producer that the target's brokers remember on each remote partition, if they do."""
        found: dict[TopicPartition, int] = {}
        for node, led in by_leader(self._target, remotes).items():
            wanted = {there: producer_id(self._source.cluster_id, *remotes[there]) for there in led}
            for there, state in (await self._target.producers(node, wanted)).items():
                if isinstance(state, int):
                    raise error_for(state)
                if state is not None:
                    found[there] = state.epoch
        return found

    async def _offsets(
        self, client: ClusterClient, places: Sequence[TopicPartition], at: int
    ) -> dict[TopicPartition, int]:
        isolation = cluster_client.READ_COMMITTED if client is self._source else cluster_client.READ_UNCOMMITTED
        found: dict[TopicPartition, int] = {}
        for node, led in by_leader(client, places).items():
            for place, one in (await client.offsets(node, led, at=at, isolation=isolation)).items():
                if one.error_code:
                    raise error_for(one.error_code)
                found[place] = one.offset
        return found

    async def _announce(self, resets: Sequence[Reset]) -> None:
        flow = self._flow
        epochs = Epochs(
            net=self._ends.net,
            source=self._source,
            target=self._target,
            source_alias=flow.progress_alias,
            source_id=self._source.cluster_id,
            progress_topic=flow.offset_storage_topic,
        )
        for one in resets:
            wanted = Announcement(
                epoch=one.epoch,
                start=one.start,
                downstream=one.downstream,
                kind=EpochKind.TURN if one.turn else EpochKind.RESET,
                reason=f"{'turn from' if one.turn else 'reset to'} {one.start}",
                topic_id=one.topic_id,
                stood_at=one.stood_at,
                source_end=one.end,
            )
            if await epochs.announce((one.topic, one.partition), wanted) != wanted:
                raise ClusterError(
                    f"{one.topic}-{one.partition}: another process began epoch {one.epoch} just now; repeat the reset",
                    cluster=flow.target.alias,
                )


def _range(topic: str, count: int) -> str:
    return f"{topic} has partitions 0 to {count - 1}" if count else f"{topic} does not exist yet"


def flow_of(flows: Sequence[Flow], topic: str) -> Flow:
    """Return the one flow that replicates `topic`; raises `ConfigurationError` if there is none or more than one."""
    found = [flow for flow in flows if replicated(flow, {topic: 1})]
    if len(found) == 1:
        return found[0]
    names = ", ".join(flow.name for flow in found or flows)
    reason = f"no flow replicates it; flows: {names}"
    if found:
        reason = f"more than one flow replicates it: {names}; name one with --flow"
    raise ConfigurationError(reason, key="topic", value=topic)
