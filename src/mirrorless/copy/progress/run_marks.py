"""Decides which of several runs of a flow's copy goes first where the target could not distinguish them.

Two runs append the same batches with the same sequences, and the target accepts each once, unless it has forgotten the
producer, as it does with old records (`SendWindow`). So every run keeps a mark in the progress topic, renewed every few
seconds, and a run that finds an earlier one leaves old records to it. All marks are in one partition: the offset of a
run's first mark, its claim, says which run was first. Kafka Connect ignores these records.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mirrorless.clusters.producer import TopicProducer
from mirrorless.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message

    from mirrorless.settings import Flow

_BEYOND_A_LEASE_MS: Final = 50_000
"""Slots outlive a killed driver: until their lease ends, and thirty seconds more if they continue after it."""
RENEW_S: Final = 5.0
_CLOCKS_MS: Final = 600_000
_WRITE_S: Final = 10.0
_TAKE_BACK_S: Final = 2.0
_PARTITION: Final = 0


@dataclass(frozen=True, slots=True)
class RunMark:
    """A run's mark: what it copies, its claim, and when it was renewed, in ms by the clock of its machine.

    A mark that was not renewed for `valid_ms` is that of a run that ended without deleting it, and of which no slot
    copies any more.
    """

    run: str
    copied: str
    claim: int
    renewed_ms: int
    valid_ms: int


def key_of(flow: Flow, run: str) -> bytes:
    """Key of the mark of a run of the flow's copy."""
    said = b'"%s","run":%s}]' % (_selection(flow).encode(), json.dumps(run).encode())
    return _prefix(flow.source.alias) + said


def _prefix(cluster: str) -> bytes:
    return b'["mirrorless",{"cluster":%s,"copied":' % json.dumps(cluster, ensure_ascii=False).encode()


def _selection(flow: Flow) -> str:
    """Identifies what a flow copies: flows of one pair of clusters with separate topics do not compete."""
    selects = (flow.connector_name, flow.topics, flow.topics_exclude, flow.topic_filter_class)
    return hashlib.sha256(repr((selects, flow.replication_policy_class)).encode()).hexdigest()[:16]


class RunMarks:
    """The marks in the progress topic, of flows whose source is `cluster`.

    What a flow copies may change while it runs, so the relevant marks are determined each time.
    """

    def __init__(self, cluster: str) -> None:
        self._begins = _prefix(cluster)
        self._marks: dict[bytes, RunMark] = {}
        self._changed: dict[bytes, float] = {}

    def take(self, key: bytes | None, value: bytes | None, offset: int, *, now: float, is_news: bool) -> bool:
        """Process a record of the progress topic if it is a mark, read at `time.monotonic` seconds; returns if it is.

        It `is_news` if the topic was read to its end before: then it was written since.
        """
        if key is None or not key.startswith(self._begins):
            return False
        try:
            names = json.loads(key)[1]
            run, copied = str(names["run"]), str(names["copied"])
            said = None if value is None else json.loads(value)
            mark = said and RunMark(
                run, copied, int(said.get("claim", offset)), int(said["renewedMs"]), int(said["validMs"])
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return True
        if mark is None:
            self._marks.pop(key, None)
            self._changed.pop(key, None)
            return True
        if is_news:
            self._changed[key] = now  # it is alive, whatever its clock says
        self._marks[key] = mark
        return True

    def may_be_alive(self, flow: Flow, *, now_ms: int, besides: str) -> bool:
        """Whether another run has a mark that has expired by its clock, which may be wrong by some minutes."""
        return any(
            mark.run != besides and mark.valid_ms <= abs(now_ms - mark.renewed_ms) < mark.valid_ms + _CLOCKS_MS
            for mark in self._marks.values()
            if mark.copied == _selection(flow)
        )

    def forget(self) -> None:
        """Forget all marks: the topic is read from its beginning again."""
        self._marks.clear()
        self._changed.clear()

    def first(self, flow: Flow, *, now_ms: int, now: float) -> RunMark | None:
        """The valid mark with the earliest claim."""
        valid = [
            mark
            for key, mark in self._marks.items()
            if mark.copied == _selection(flow)
            and (
                abs(now_ms - mark.renewed_ms) < mark.valid_ms
                or (key in self._changed and now - self._changed[key] < mark.valid_ms / 1000)
            )
        ]
        return min(valid, key=lambda mark: mark.claim, default=None)


def run_in(folder: str) -> str:
    """Name the run that has a folder on this machine: all its processes, and a restarted query, are one run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{socket.gethostname()}{folder}"))


def take_back(flow: Flow, run: str) -> None:
    """Delete the mark of a run that has ended, so that the next one need not wait; if that fails, it expires."""
    producer = TopicProducer(flow.target)
    producer.send(flow.offset_storage_topic, key=key_of(flow, run), value=None, partition=_PARTITION)
    producer.flush(_TAKE_BACK_S)


class MarkWriter:
    """Keeps the mark of one run of the flow's copy in the progress topic, from `claim` until `close`.

    Once `stopping` returns true it is not renewed any more.
    """

    def __init__(self, flow: Flow, run: str, *, stopping: Callable[[], bool] = lambda: False) -> None:
        self._stopping = stopping
        self._topic = flow.offset_storage_topic
        self.key = key_of(flow, run)
        self._alias = flow.target.alias
        self._valid_ms = round(flow.lease_seconds * 1000) + _BEYOND_A_LEASE_MS
        self._producer = TopicProducer(flow.target)
        self._claim: int | None = None
        self._error: str | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def claim(self) -> None:
        """Write the mark, if it does not exist yet, and keep renewing it; raises `ClusterUnavailable`."""
        if self._claim is not None:
            return
        self._write(self._value())
        if self._producer.flush(_WRITE_S) or self._error is not None:
            reason = self._error or f"no acknowledgement in {_WRITE_S:.0f} s"
            raise ClusterUnavailable(f"{self._topic}: writing this run's mark failed: {reason}", cluster=self._alias)
        self._thread = threading.Thread(target=self._renew, name="run mark", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Delete the mark."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
            self._write(None)
            self._producer.flush(_WRITE_S)

    def _renew(self) -> None:
        while not self._closed.wait(RENEW_S) and not self._stopping():
            self._write(self._value())
            self._producer.flush(RENEW_S)

    def _value(self) -> bytes:
        said = {"renewedMs": int(time.time() * 1000), "validMs": self._valid_ms}
        return json.dumps(said if self._claim is None else said | {"claim": self._claim}).encode()

    def _write(self, value: bytes | None) -> None:
        self._error = self._producer.send(
            self._topic, key=self.key, value=value, partition=_PARTITION, delivered=self._delivered
        )

    def _delivered(self, error: str | None, message: Message) -> None:
        self._error = error
        if error is None and self._claim is None:
            self._claim = message.offset()
