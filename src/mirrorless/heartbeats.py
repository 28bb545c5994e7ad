"""Signs of life: one record an interval into the target's `heartbeats` (reference, section 1.1).

They replicate onward as `<source>.heartbeats`, by which a client learns who is upstream and how many hops away.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, Producer

from mirrorless.clusters.admin import QUIET, Admin
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.internal_topics import ensure, heartbeats_topic
from mirrorless.errors import ClusterError, ClusterUnavailable
from mirrorless.formats import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from mirrorless.settings import Flow

_TIMEOUT_S: Final = 10.0


class Heartbeats:
    """Emits the heartbeats of one pair of clusters; the topic is created if it is missing.

    Raises `ClusterError` where it can be neither found nor created.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._topic = heartbeats_topic(flow)
        if (reason := ensure(Admin(flow.target), self._topic)) is not None:
            raise ClusterError(f"topic {self._topic.name} cannot be created: {reason}", cluster=flow.target.alias)
        self._error: KafkaError | None = None
        extra = {"acks": "all", "message.timeout.ms": int(_TIMEOUT_S * 1000), "logger": QUIET}
        self._producer = Producer(for_confluent(flow.target, role="producer", extra=extra))

    def beat(self, *, timestamp_ms: int) -> None:
        """Write one heartbeat and wait until it is acknowledged; raises `ClusterUnavailable`."""
        beat = Heartbeat(source=self._flow.source.alias, target=self._flow.target.alias, timestamp_ms=timestamp_ms)
        self._error = None
        self._producer.produce(
            self._topic.name,
            key=beat.key(),
            value=beat.value(),
            partition=0,
            timestamp=timestamp_ms,
            on_delivery=self._delivered,
        )
        left = self._producer.flush(_TIMEOUT_S + 1)
        if left or self._error is not None:
            reason = self._error.str() if self._error is not None else f"no acknowledgement in {_TIMEOUT_S:.0f} s"
            raise ClusterUnavailable(f"{self._topic.name}: {reason}", cluster=self._flow.target.alias)

    def emit(
        self,
        seconds: float,
        *,
        stopping: Callable[[], bool] = lambda: False,
        wait: Callable[[float], object] = time.sleep,
    ) -> int:
        """Beat once an interval for so many seconds, the first time after one interval, as MirrorMaker 2 does.

        Returns how many heartbeats were written. A beat that is late does not make the next ones hurry.
        """
        interval_s = self._flow.emit_heartbeats_interval_seconds
        until = time.monotonic() + seconds
        beats = 0
        due = time.monotonic() + interval_s
        while due <= until and not stopping():
            wait(max(0.0, due - time.monotonic()))
            if stopping():
                break
            self.beat(timestamp_ms=int(time.time() * 1000))
            beats += 1
            due = max(due + interval_s, time.monotonic())
        return beats

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        self._error = error
