"""Keeps the mark of a run in the progress topic while the run copies; writes the choice of an engine, and deals."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from mirrorless.clusters.client_settings import SOON_RECONNECTED
from mirrorless.clusters.producer import TopicProducer
from mirrorless.errors import ClusterUnavailable
from mirrorless.progress.run_marks import MARKS_PARTITION, WHOLE, Share, Work, choice_key, deal_key, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from confluent_kafka import Message

    from mirrorless.progress.deals import Deal
    from mirrorless.progress.engine_choice import EngineChoice, EngineName
    from mirrorless.settings import Flow

_BEYOND_A_LEASE_MS: Final = 50_000
"""Slots outlive a killed driver: until their lease ends, and thirty seconds more if they continue after it."""
_FUNCTION_MS: Final = 15_000
"""A killed function copies nothing more; one that cannot renew its mark for two thirds of this stops by itself."""
_STALE: Final = 2 / 3
RENEW_S: Final[dict[EngineName, float]] = {"spark": 5.0, "functions": 2.0}
_WRITE_S: Final = 10.0
_REQUEST_MS: Final = 5_000
"""Less than a function's mark is valid: then a connection that is dead is opened again."""
_TAKE_BACK_S: Final = 2.0


def take_back(flow: Flow, run: str) -> None:
    """Delete the mark of a run that has ended, so that the next one need not wait; if that fails, it expires."""
    producer = TopicProducer(flow.target)
    producer.send(flow.offset_storage_topic, key=key_of(flow, run), value=None, partition=MARKS_PARTITION)
    producer.flush(_TAKE_BACK_S)


def write_choice(flow: Flow, choice: EngineChoice, deployment: str) -> None:
    """Write the choice of the flow's engine; raises `ClusterUnavailable`."""
    producer = TopicProducer(flow.target)
    topic = flow.offset_storage_topic
    producer.send(topic, key=choice_key(flow, deployment), value=choice.to_json(), partition=MARKS_PARTITION)
    producer.confirm(topic, _WRITE_S)


def _producer(flow: Flow) -> TopicProducer:
    """Return a producer that keeps the order also of what it sends again: a renewal must not follow a deletion."""
    return TopicProducer(
        flow.target, request_timeout_ms=_REQUEST_MS, max_in_flight_requests_per_connection=1, **SOON_RECONNECTED
    )


class MarkWriter:
    """Keeps the mark of one run at a time in the progress topic, from `claim` until `release`.

    Once `stopping` returns true it is not renewed any more. `work` returns what the mark says of the copy. `flow` may
    be replaced when its configuration changes; `key` is that of the mark, None if there is none.
    """

    def __init__(
        self,
        flow: Flow,
        *,
        engine: EngineName,
        share: Share = WHOLE,
        deployment: str = "",
        stopping: Callable[[], bool] = lambda: False,
        work: Callable[[], Work | None] = lambda: None,
    ) -> None:
        self.key: bytes | None = None
        self.claimed: int | None = None
        self._stopping = stopping
        self._work = work
        self._engine = engine
        self._share = share
        self._deployment = deployment
        self.flow = flow
        self._topic = flow.offset_storage_topic
        self._alias = flow.target.alias
        self._producer = _producer(flow)
        self._is_ready = True
        self._deal = 0
        self._renewed_s = 0.0
        self._has_lapsed = False
        self._error: str | None = None
        self._claims = 0
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def _valid_ms(self) -> int:
        if self._engine == "functions":
            return _FUNCTION_MS
        return round(self.flow.lease_seconds * 1000) + _BEYOND_A_LEASE_MS

    @property
    def is_stale(self) -> bool:
        """Whether the mark may soon count as that of a dead run, or has, because it was not renewed.

        It remains so if a process that was suspended renews it: another run may have begun meanwhile.
        """
        return self._has_lapsed or self._lapses(time.monotonic())

    def _lapses(self, now: float) -> bool:
        return now - self._renewed_s > self._valid_ms / 1000 * _STALE

    def claim(self, run: str, *, ready: bool = True) -> int:
        """Write the mark, and keep renewing it; returns the claim. Raises `ClusterUnavailable`."""
        self.release()
        self._claims += 1
        self.key, self.claimed, self._is_ready = key_of(self.flow, run), None, ready
        self._has_lapsed = False
        self._released.clear()
        claimed = self._claim()
        if claimed is None:
            reason = self._error or f"no acknowledgement in {_WRITE_S:.0f} s"
            self._write(None)  # the mark may still be written, and would not be renewed
            self.key = None
            raise ClusterUnavailable(f"{self._topic}: writing this run's mark failed: {reason}", cluster=self._alias)
        self._thread = threading.Thread(target=self._renew, name="run mark", daemon=True)
        self._thread.start()
        return claimed

    def be_ready(self) -> None:
        """Tell the run before this one that it may end; the caller need not wait until it is written."""
        self._is_ready = True
        self._write(self._value())

    def adopt(self, deal: int) -> None:
        """Let the mark show that the run copies by a deal; the caller need not wait until it is written."""
        if deal != self._deal:
            self._deal = deal
            if self._thread is not None:
                self._write(self._value())

    def write_deal(self, deal: Deal, earlier: Iterable[bytes]) -> None:
        """Write a deal, and delete `earlier` ones after it; the caller reads whether it counts."""
        key = deal_key(self.flow, self._deployment, deal)
        with self._lock:
            error = self._producer.send(self._topic, key=key, value=deal.to_json(), partition=MARKS_PARTITION)
        if error is None:
            self.delete(earlier)

    def log_in_again(self) -> None:
        """Use a new producer from now on; raises `MirrorlessError`."""
        producer = _producer(self.flow)
        with self._lock:
            self._producer = producer

    def release(self) -> None:
        """Delete the mark."""
        if self._thread is None:
            return
        self._released.set()
        self._thread.join()
        self._thread = None
        self._write(None)
        self._producer.flush(_WRITE_S)
        self.key = self.claimed = None

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete the marks of runs that ended without doing so, or earlier deals."""
        for key in keys:
            self._producer.send(self._topic, key=key, value=None, partition=MARKS_PARTITION)

    def _claim(self) -> int | None:
        self._write(self._value())
        self._producer.flush(_WRITE_S)
        return self.claimed

    def _renew(self) -> None:
        every_s = RENEW_S[self._engine]
        while not self._released.wait(every_s) and not self._stopping():
            self._write(self._value())
            self._producer.flush(every_s)

    def _value(self) -> bytes:
        said: dict[str, Any] = {"renewedMs": int(time.time() * 1000), "validMs": self._valid_ms}
        if self.claimed is not None:
            said["claim"] = self.claimed
        if self._deployment:
            said["deployment"] = self._deployment
        if self._engine == "functions":
            said |= {"engine": self._engine, "share": list(self._share), "ready": self._is_ready}
            if self._deal:
                said["deal"] = self._deal
        if (work := self._work()) is not None:
            said |= work.as_fields()
        return json.dumps(said).encode()

    def _write(self, value: bytes | None) -> None:
        sent_s, claim = time.monotonic(), self._claims

        def delivered(error: str | None, message: Message) -> None:
            if claim != self._claims:
                return  # a mark of before, which was written late
            self._error = error
            if error is None:
                self._has_lapsed |= self.claimed is not None and self._lapses(sent_s)
                self._renewed_s = max(self._renewed_s, sent_s)
                offset = message.offset() or 0
                if self.claimed is None or offset < self.claimed:  # smaller in a topic that was recreated
                    self.claimed = offset

        with self._lock:
            self._error = self._producer.send(
                self._topic, key=self.key, value=value, partition=MARKS_PARTITION, delivered=delivered
            )
