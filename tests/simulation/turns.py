"""The turn of two flows that keep names moves: what an operation does with resets, without its fences and switches."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from mirrorless.copy.resume.reset import Resetter
from mirrorless.errors import MirrorlessError
from mirrorless.kafka_python import errors as kafka_errors
from mirrorless.progress.records import Progress, SourcePartition
from mirrorless.progress.writer import ProgressWriter
from tests.simulation.client import SimulatedClient
from tests.simulation.copier import ProgressReader
from tests.simulation.world import Process

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.settings import Flow
    from tests.simulation.world import World

_LOOK_S = 0.3


class TurnProcess(Process):
    """Waits until the flow `before` has copied everything, stops it, and begins `after` where its progress ends.

    Applications write to no cluster meanwhile. `stop` stops what copies, and returns whether nothing does any more;
    `begin` has the flow `after` copied, and applications write to its source.
    """

    def __init__(
        self,
        world: World,
        before: Flow,
        after: Flow,
        *,
        topic: str,
        stop: Callable[[], bool],
        begin: Callable[[], None],
    ) -> None:
        super().__init__(world, "turn")
        self.is_over = False
        self._before, self._after, self._topic = before, after, topic
        self._stop, self._begin = stop, begin
        self._progress = ProgressReader(world.clusters[before.target.alias], before.offset_storage_topic)
        self.start(self._move())

    async def _move(self) -> None:
        while (starts := self._ends()) is None:
            await self.sleep(_LOOK_S)
        while not self._stop():
            await self.sleep(_LOOK_S)
        starts = self._ends() or starts
        while True:
            try:
                await self._reset(starts)
                break
            except (MirrorlessError, kafka_errors.KafkaError) as error:
                self.world.note(f"turn: {error}")
                await self.sleep(1.0)
        self.world.note(f"turn begins at {starts}")
        self._begin()
        self.is_over = True

    def _ends(self) -> dict[int, int] | None:
        """Where the copies end on the target; None while the source has more, or none was begun."""
        source, known = self.world.clusters[self._before.source.alias], self._progress.read()
        found = {}
        for number, partition in enumerate(source.topics[self._topic].partitions):
            said = known.get((self._topic, number))
            progress = None if said is None else said.progress
            if progress is None or progress.last_downstream is None:
                if partition.log.end:
                    return None
                found[number] = 0
                continue
            if progress.last_offset + 1 < partition.log.end or partition.log.open:
                return None
            found[number] = progress.last_downstream + 1
        return found

    async def _reset(self, starts: dict[int, int]) -> None:
        """As `Resetter.plan` and `Resetter.apply`, whose clients block a thread."""
        flow = self._after
        source = SimulatedClient(self, self.world.clusters[flow.source.alias])
        target = SimulatedClient(self, self.world.clusters[flow.target.alias])
        reader = ProgressReader(self.world.clusters[flow.target.alias], flow.offset_storage_topic)

        async def connect(_: Flow, *, topics: set[str], remote_topics: set[str]) -> None:
            await source.connect(timeout_ms=20_000, topics=topics)
            await target.connect(timeout_ms=20_000, topics={*remote_topics, flow.offset_storage_topic})

        resetter = Resetter.__new__(Resetter)
        ends = SimpleNamespace(connect=connect, net=self, progress=reader)
        resetter._flow, resetter._ends = flow, cast("Any", ends)
        resetter._source, resetter._target = source.client, target.client
        resets = await resetter._plan(self._topic, self._topic, starts, (), turn=False)
        await resetter._announce(resets)
        writer = ProgressWriter(topic=flow.offset_storage_topic, cluster=flow.target)
        for one in resets:
            where = SourcePartition(flow.progress_alias, one.topic, one.partition, flow.connector_name)
            progress = Progress(one.start - 1, 0, one.epoch, one.downstream - 1)
            writer.write(where.progress_key(), progress.to_bytes())
        while not writer.flush(1.0):
            await self.sleep(_LOOK_S)
