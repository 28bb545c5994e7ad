"""Which of several runs of a flow's copy goes first, where the target could not tell them apart.

Two runs append the same batches under the same sequences, and the target takes each once, unless it has forgotten the
producer, as it does with old records (`SendWindow`). So every run keeps a mark in the progress topic, renewed every few
seconds, and a run that finds an earlier one leaves old records to it. All marks are in one partition: the offset of a
run's first mark, its claim, says which run was first. Kafka Connect ignores these records.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, Producer

from mirrorless.clusters.admin import QUIET
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from confluent_kafka import KafkaError, Message

VALID_MS: Final = 20_000
"""A mark that was not renewed for so long is that of a run that ended without taking it back."""
_RENEW_S: Final = 5.0
_WRITE_S: Final = 10.0
_PARTITION: Final = 0


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run's mark: its claim, and when it was renewed, in ms by the clock of its machine."""

    run: str
    claim: int
    renewed_ms: int


def key_of(cluster: str, run: str) -> bytes:
    """Key of a run's mark; `cluster` is the source's alias."""
    return _prefix(cluster) + json.dumps(run).encode() + b"}]"


def _prefix(cluster: str) -> bytes:
    return b'["mirrorless",{"cluster":%s,"run":' % json.dumps(cluster, ensure_ascii=False).encode()


class RunMarks:
    """The marks that a reader of the progress topic has met, of the flow whose source is `cluster`."""

    def __init__(self, cluster: str) -> None:
        self._begins = _prefix(cluster)
        self._marks: dict[str, RunMark] = {}
        self._changed: dict[str, float] = {}

    def take(self, key: bytes | None, value: bytes | None, offset: int, *, now: float) -> bool:
        """Take a record of the progress topic if it is a mark, read at `time.monotonic` seconds; says whether it is."""
        if key is None or not key.startswith(self._begins):
            return False
        try:
            run = str(json.loads(key)[1]["run"])
            said = None if value is None else json.loads(value)
            mark = said and RunMark(run, int(said.get("claim", offset)), int(said["renewedMs"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return True
        if mark is None:
            self._marks.pop(run, None)
            self._changed.pop(run, None)
            return True
        if run in self._marks:
            self._changed[run] = now  # whatever its clock says, it is alive
        self._marks[run] = mark
        return True

    def forget(self) -> None:
        """Forget all: the topic is read from its beginning again."""
        self._marks.clear()
        self._changed.clear()

    def first(self, *, now_ms: int, now: float) -> RunMark | None:
        """The valid mark with the earliest claim."""
        valid = [
            mark
            for run, mark in self._marks.items()
            if now_ms - mark.renewed_ms < VALID_MS or now - self._changed.get(run, -VALID_MS) < VALID_MS / 1000
        ]
        return min(valid, key=lambda mark: mark.claim, default=None)


class MarkWriter:
    """Keeps one run's mark in the progress topic `topic`, from `claim` until `close`.

    `config` are confluent-kafka's producer settings for the target cluster.
    """

    def __init__(self, *, topic: str, cluster: str, run: str, alias: str, config: Mapping[str, Any]) -> None:
        self.run = run
        self._topic = topic
        self._key = key_of(cluster, run)
        self._alias = alias
        self._producer = Producer({**config, "acks": "all", "logger": QUIET})
        self._claim: int | None = None
        self._error: str | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def claim(self) -> None:
        """Write the mark, if it is not there yet, and have it renewed; raises `ClusterUnavailable`."""
        if self._claim is not None:
            return
        self._write(json.dumps({"renewedMs": _now_ms()}).encode())
        if self._producer.flush(_WRITE_S) or self._error is not None:
            reason = self._error or f"no acknowledgement in {_WRITE_S:.0f} s"
            raise ClusterUnavailable(f"{self._topic}: this run's mark was not written: {reason}", cluster=self._alias)
        self._thread = threading.Thread(target=self._renew, name="run mark", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take the mark back."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
            self._write(None)
            self._producer.flush(_WRITE_S)

    def _renew(self) -> None:
        while not self._closed.wait(_RENEW_S):
            self._write(json.dumps({"claim": self._claim, "renewedMs": _now_ms()}).encode())
            self._producer.flush(_RENEW_S)

    def _write(self, value: bytes | None) -> None:
        try:
            self._producer.produce(
                self._topic, key=self._key, value=value, partition=_PARTITION, on_delivery=self._delivered
            )
        except (BufferError, KafkaException) as error:
            self._error = str(error)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self._error = None if error is None else error.str()
        if error is None and self._claim is None:
            self._claim = message.offset()


def _now_ms() -> int:
    return int(time.time() * 1000)
