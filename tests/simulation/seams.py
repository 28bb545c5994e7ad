"""What the product's code gets in place of its own clients: a producer, and limits of topics."""

# ruff: noqa: ARG002 -- they take what the real ones take
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.partitioner.default import murmur2

from tests.simulation.cluster import NAMES
from tests.simulation.log import batch_of
from tests.simulation.world import clock
from tests.support.fake_flow import FakeLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from mirrorless.settings import Cluster
    from tests.simulation.client import Link
    from tests.simulation.cluster import SimulatedCluster
    from tests.simulation.world import Process

    Delivered = Callable[[str | None, Any], None]
_LINGER_S = 0.005
_RETRY_S = 0.2


class _Message:
    def __init__(self, topic: str, offset: int = 0) -> None:
        self._topic = topic
        self._offset = offset

    def offset(self) -> int:
        return self._offset

    def topic(self) -> str:
        return self._topic


class SimulatedProducer:
    """In place of `TopicProducer`, for coroutines: what is sent arrives in order, however often it has to be sent.

    As librdkafka's, its requests are its own: a process that is killed loses what has not left it. A flush cannot wait
    on an event loop of this thread, so it is as if all answers came at once.
    """

    def __init__(self, cluster: Cluster, **_: Any) -> None:  # noqa: ANN401
        world = clock._world()
        assert world.current is not None
        self.alias = cluster.alias
        self._process: Process = world.current
        self._cluster: SimulatedCluster = world.clusters[cluster.alias]
        self._waiting: list[tuple[str, bytes | None, bytes | None, int, Delivered | None]] = []
        self._sending = False
        self.under_way = 0
        self.link: Link | None = None

    def send(
        self,
        topic: str,
        *,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = -1,
        timestamp_ms: int = 0,
        headers: Any = (),  # noqa: ANN401
        delivered: Delivered | None = None,
        waits: bool = False,
    ) -> str | None:
        """As of `TopicProducer`."""
        self._waiting.append((topic, key, value, partition, delivered))
        if not self._sending:
            self._sending = True
            self._process.call_later(_LINGER_S, self._carry)
        return None

    def _carry(self) -> None:
        world = self._process.world
        if world.random.random() < 0.02:
            self._process.call_later(_RETRY_S, self._carry)
            return
        some, self._waiting = self._waiting, []
        self._sending = False
        self.under_way += len(some)
        delay = 0.002 + 0.003 * world.random.random()

        def arrive() -> None:
            offsets = [self._append(*one[:4]) for one in some]

            def heard() -> None:
                self.under_way -= len(some)
                left = [one for one, offset in zip(some, offsets, strict=True) if offset is None]
                for (topic, _, _, _, delivered), offset in zip(some, offsets, strict=True):
                    if delivered is not None and offset is not None:
                        delivered(None, _Message(topic, offset))
                if left:
                    self._waiting = left + self._waiting
                    if not self._sending:
                        self._sending = True
                        self._process.call_later(_RETRY_S, self._carry)

            world.later(delay, self._process, heard)

        world.later(delay, None, arrive)

    def _append(self, topic: str, key: bytes | None, value: bytes | None, partition: int) -> int | None:
        there = self._cluster.topics.get(topic)
        if there is None:
            return None
        if partition < 0:
            partition = (murmur2(key or b"") & 0x7FFFFFFF) % len(there.partitions)
        found = there.partitions[partition]
        if found.leader is None or found.leader % NAMES in self._cluster.down:
            return None
        return found.log.write(batch_of([(key, value)], timestamp_ms=self._process.world.now_ms))

    def poll(self, seconds: float = 0.0) -> None:
        """As of `TopicProducer`."""

    def flush(self, seconds: float) -> int:
        """As of `TopicProducer`."""
        left = []
        some, self._waiting = self._waiting, []
        for one in some:
            offset = self._append(*one[:4])
            if offset is None:
                left.append(one)
            elif one[4] is not None:
                one[4](None, _Message(one[0], offset))
        self._waiting = left
        return len(left)

    def confirm(self, topic: str, seconds: float, **_: Any) -> None:  # noqa: ANN401
        """As of `TopicProducer`."""
        self.flush(seconds)


class SimulatedLimits(FakeLimits):
    """In place of `SizeLimits`: `max.message.bytes` of remote topics as they are now."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def _limit(self, remote_topic: str) -> int:
        topic = self._cluster.topics.get(remote_topic)
        limit = topic.partitions[0].log.max_message_bytes if topic is not None else None
        return 1_048_588 if limit is None else limit
