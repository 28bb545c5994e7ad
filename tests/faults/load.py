"""Continuous load on a source: ordinary records, transactions, some of them aborted, and keys that are overwritten.

Of the ordinary ones, two partitions have records of three days ago, by which a target forgets the producer, and one has
such among others.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, Producer

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError, Message

    from mirrorless.local.embedded_kafka import EmbeddedCluster

PLAIN, TRANSACTIONS, COMPACTED = "plain", "transactions", "compacted"
PARTITIONS = {PLAIN: 6, TRANSACTIONS: 4, COMPACTED: 2}
_KEYS = 500
_TICK_S = 0.05
_OLD, _MIXED = (1, 3), 5
"""Partitions of the plain topic."""
_OLD_MS = 3 * 86_400_000


class Load:
    """Writes to the three topics until it is stopped; `written` is what the compacted topic's partitions were given."""

    def __init__(self, source: EmbeddedCluster, *, per_second: int) -> None:
        self._servers = source.bootstrap_servers
        self._per_tick = max(1, int(per_second * _TICK_S / 3))
        self._stop = threading.Event()
        self._random = random.Random(7)
        self.errors: list[str] = []
        self.committed = self.aborted = 0
        self.written: dict[int, list[tuple[bytes, bytes]]] = {number: [] for number in range(PARTITIONS[COMPACTED])}
        works = (self._plain, self._transactions, self._compacted)
        self._threads = [threading.Thread(target=self._guarded, args=(work,), name=work.__name__) for work in works]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, with everything acknowledged."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if not (self.committed and self.aborted):
            self.errors.append(f"transactions: {self.committed} committed and {self.aborted} aborted prove nothing")

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- told at the end, with the verdict
            self.errors.append(f"{work.__name__}: {error}")

    def _producer(self, **more: str | int) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": 0,
                "message.timeout.ms": 300_000,
                **{key.replace("_", "."): value for key, value in more.items()},
            }
        )

    def _plain(self) -> None:
        client = self._producer(compression_type="lz4")
        numbers = itertools.count()
        while not self._stop.wait(_TICK_S):
            now_ms = int(time.time() * 1000)
            for number in itertools.islice(numbers, self._per_tick):
                turn, partition = divmod(number, PARTITIONS[PLAIN])
                old = partition in _OLD or (partition == _MIXED and turn % 3 == 0)
                timestamp = now_ms - _OLD_MS if old else now_ms
                client.produce(
                    PLAIN, key=b"k%d" % number, value=b"%d" % number, partition=partition, timestamp=timestamp
                )
            client.poll(0)
        if client.flush(120):
            self.errors.append("plain: not everything was acknowledged")

    def _compacted(self) -> None:
        client = self._producer(compression_type="zstd")
        numbers = itertools.count()

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.errors.append(f"compacted: {error}")
            else:
                self.written[message.partition() or 0].append((message.key() or b"", message.value() or b""))

        while not self._stop.wait(_TICK_S):
            for number in itertools.islice(numbers, self._per_tick):
                key = b"k%d" % self._random.randrange(_KEYS)
                partition = number % PARTITIONS[COMPACTED]
                client.produce(COMPACTED, key=key, value=b"%d" % number, partition=partition, on_delivery=delivered)
            client.poll(0)
        if client.flush(120):
            self.errors.append("compacted: not everything was acknowledged")

    def _transactions(self) -> None:
        numbers = itertools.count()
        client: Producer | None = None
        while not self._stop.is_set():
            try:
                if client is None:
                    client = self._producer(
                        transactional_id="load", transaction_timeout_ms=30_000, message_timeout_ms=20_000
                    )
                    client.init_transactions(60)
                client.begin_transaction()
                for number in itertools.islice(numbers, self._per_tick * 5):
                    partition = number % PARTITIONS[TRANSACTIONS]
                    client.produce(TRANSACTIONS, key=b"k%d" % number, value=b"%d" % number, partition=partition)
                    client.poll(0)
                time.sleep(_TICK_S * 5)
                if self._random.random() < 0.2:
                    client.abort_transaction(60)
                    self.aborted += 1
                else:
                    client.commit_transaction(60)
                    self.committed += 1
            except KafkaException as error:
                # A broker was killed: whatever became of this transaction, the source's log says it.
                if client is not None and error.args[0].txn_requires_abort():
                    try:
                        client.abort_transaction(60)
                    except KafkaException:
                        client = None
                else:
                    client = None
