"""Writes records to this program's topics: acknowledged by all in-sync replicas, one line for an error.

Writing to a missing topic does not create it, whatever brokers allow (`for_confluent`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException

from mirrorless.client_logs import LIBRDKAFKA
from mirrorless.clusters import clients, outages
from mirrorless.clusters.client_settings import for_confluent
from mirrorless.clusters.connection_errors import grant, unwritten
from mirrorless.errors import ClusterError, ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from confluent_kafka import KafkaError, Message

    from mirrorless.settings import Cluster

    Delivered = Callable[[str | None, Message], None]
    Headers = Sequence[tuple[str, str | bytes | None]]

_ROOM_S: Final = 0.1
_ANY_PARTITION: Final = -1
_NOW: Final = 0


class TopicProducer:
    """A producer for one cluster; `creator` is what recreates a missing topic.

    `gives_up_after_s` is how long librdkafka retries a record, its default of five minutes if it is None. `own` are
    librdkafka's settings, with `_` for `.`. Raises ConfigurationError and `ClusterUnavailable` as `for_confluent` does.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        creator: str = "topic discovery",
        gives_up_after_s: float | None = None,
        **own: Any,  # noqa: ANN401 -- librdkafka's values
    ) -> None:
        self.alias = cluster.alias
        self._creator = creator
        self._failures: list[str] = []
        settings = {key.replace("_", "."): value for key, value in own.items()}
        if gives_up_after_s is not None:
            settings["message.timeout.ms"] = int(gives_up_after_s * 1000)
        noticed = partial(outages.noticed, cluster.alias)
        extra = {"error_cb": noticed, **settings, "acks": "all", "logger": LIBRDKAFKA}
        self._producer = clients.producer(for_confluent(cluster, role="producer", extra=extra))

    def send(
        self,
        topic: str,
        *,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = _ANY_PARTITION,
        timestamp_ms: int = _NOW,
        headers: Headers = (),
        delivered: Delivered | None = None,
        waits: bool = False,
    ) -> str | None:
        """Queue a record, or a tombstone; returns None, or why it cannot be queued.

        `delivered` is called by `poll` and `flush`, with None or why the record was not written; without it `confirm`
        raises that error. If the queue is full, a call that `waits` waits until there is room.
        """
        while True:
            try:
                self._producer.produce(
                    topic,
                    key=key,
                    value=value,
                    partition=partition,
                    timestamp=timestamp_ms,
                    headers=list(headers),
                    on_delivery=partial(_heard, self._creator, self._failures, delivered),
                )
            except BufferError:
                if waits:
                    self._producer.poll(_ROOM_S)
                    continue
                reason = "too many records are queued"
            except KafkaException as error:
                reason = unwritten(error.args[0], creator=self._creator)
            else:
                return None
            if delivered is None:
                self._failures.append(reason)
            return reason

    def poll(self, seconds: float = 0.0) -> None:
        """Process acknowledgements of records that were queued before; waits at most so long for the first."""
        self._producer.poll(seconds)

    def flush(self, seconds: float) -> int:
        """Wait until everything queued was written or dropped, at most so long; returns how many records are left."""
        return self._producer.flush(seconds)

    def fence_others(self, seconds: float) -> None:
        """Fence the producers with this transactional id that began before, and end their transactions (KIP-98).

        Raises `ClusterError`.
        """
        self._in_transaction(lambda: self._producer.init_transactions(seconds))

    def begin(self) -> None:
        """Begin a transaction; raises `ClusterError`."""
        self._in_transaction(self._producer.begin_transaction)

    def commit(self, topic: str, seconds: float) -> None:
        """Wait until everything queued for a topic was written, and commit it; raises `ClusterError`."""
        self.confirm(topic, seconds)
        self._in_transaction(lambda: self._producer.commit_transaction(seconds))

    def _in_transaction(self, do: Callable[[], None]) -> None:
        try:
            do()
        except KafkaException as error:
            reason = error.args[0]
            kind = ClusterUnavailable if reason.retriable() else ClusterError
            right = grant(reason.code(), "WRITE on transactional ids that begin with mirrorless-stranded-")
            raise kind(f"transaction: {reason.str()}{right}", cluster=self.alias) from error

    def confirm(self, topic: str, seconds: float, *, refused: type[ClusterError] = ClusterUnavailable) -> None:
        """Wait until everything queued for a topic was written; raises in one line that names cluster and topic.

        `ClusterUnavailable` if there is no acknowledgement within `seconds`, `refused` if a record was refused.
        """
        left = self._producer.flush(seconds)
        failures = self._failures.copy()
        self._failures.clear()
        if failures:
            raise refused(f"{topic}: {failures[0]}", cluster=self.alias)
        if left:
            raise ClusterUnavailable(f"{topic}: no acknowledgement in {seconds:.0f} s", cluster=self.alias)


def _heard(
    creator: str, failures: list[str], delivered: Delivered | None, error: KafkaError | None, message: Message
) -> None:
    """Process an acknowledgement. It must not hold the producer, which could otherwise not end while records wait."""
    reason = None if error is None else unwritten(error, creator=creator)
    if delivered is not None:
        delivered(reason, message)
    elif reason is not None:
        failures.append(reason)
