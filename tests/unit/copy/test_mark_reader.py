"""How the marks are read, with a consumer whose messages the test gives."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from mirrorless.errors import ClusterUnavailable
from mirrorless.progress import mark_reader
from mirrorless.progress.mark_reader import MarkReader
from mirrorless.progress.run_marks import key_of
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Iterable

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
END = KafkaError._PARTITION_EOF


def message(offset: int, *, error: int | None = None, run: str = "", renewed_ms: int = 0) -> Any:  # noqa: ANN401
    value = json.dumps({"renewedMs": renewed_ms, "validMs": 15_000}).encode()
    return SimpleNamespace(
        offset=lambda: offset,
        error=lambda: None if error is None else KafkaError(error),
        key=lambda: key_of(FLOW, run),
        value=lambda: value,
    )


class Target:
    """Gives one list of messages at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.messages: list[list[Any]] = []
        self.topic_error: KafkaError | None = None
        self.answers = True
        self.opened = self.end = 0
        monkeypatch.setattr(mark_reader, "reader", self._open)

    def _open(self, *_: object, **__: object) -> Target:
        self.opened += 1
        return self

    def list_topics(self, topic: str, **_: float) -> Any:  # noqa: ANN401
        if not self.answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=self.topic_error)})

    def assign(self, _: object) -> None:
        pass

    def consume(self, _: int, **__: float) -> Iterable[Any]:
        return self.messages.pop(0) if self.messages else []

    def get_watermark_offsets(self, *_: object, **__: float) -> tuple[int, int]:
        return 0, self.end

    def close(self) -> None:
        pass


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    return Target(monkeypatch)


def valid(reader: MarkReader) -> list[str]:
    now_ms = int(time.time() * 1000)
    return [mark.run for mark in reader.marks.valid(FLOW, now_ms=now_ms, now=time.monotonic())]


def test_a_topic_that_was_not_made_yet_has_no_marks(target: Target) -> None:
    target.topic_error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    reader = MarkReader(FLOW)
    reader.read()
    missing = reader.is_missing
    assert valid(reader) == []
    target.topic_error = None
    target.messages = [[message(0, run="one", renewed_ms=int(time.time() * 1000)), message(1, error=END)]]
    reader.read()
    assert (missing, reader.is_missing) == (True, False)
    assert valid(reader) == ["one"]
    assert target.opened == 2


def test_a_target_that_does_not_answer_is_unavailable(target: Target) -> None:
    target.answers = False
    reader = MarkReader(FLOW, patience_s=0.1)
    with pytest.raises(ClusterUnavailable, match=r"mm2-offsets\.A\.internal"):
        reader.read()
    target.answers = True
    with pytest.raises(ClusterUnavailable, match=r"could not be read to its end in 0 s"):
        reader.read()


def test_in_a_topic_that_was_recreated_marks_are_alive_when_they_are_renewed(target: Target) -> None:
    """Whatever their clock says, as before."""
    reader = MarkReader(FLOW)
    target.messages = [[message(5, error=END)]]
    reader.read()
    target.messages = [[message(6, error=KafkaError.OFFSET_OUT_OF_RANGE)]]
    reader.wait(0)
    target.messages = [[message(0, run="old"), message(1, error=END)], [message(1, run="renewed")]]
    reader.wait(0)
    assert valid(reader) == []
    reader.wait(0)
    assert valid(reader) == ["renewed"]
    assert target.opened == 2


def test_a_topic_that_was_recreated_is_read_from_its_beginning(target: Target) -> None:
    now_ms = int(time.time() * 1000)
    target.messages = [[message(1_000_000, run="one", renewed_ms=now_ms), message(1_000_001, error=END)]]
    reader = MarkReader(FLOW)
    reader.read()
    assert valid(reader) == ["one"]
    target.end = 5
    target.messages = [[message(4, run="two", renewed_ms=now_ms), message(5, error=END)]]
    reader.read()
    assert valid(reader) == ["two"]
    assert target.opened == 2


def test_marks_stay_until_the_topic_was_read_again(target: Target) -> None:
    """Otherwise a run whose clients log in again would believe that none was before it."""
    target.messages = [[message(0, run="one", renewed_ms=int(time.time() * 1000)), message(1, error=END)]]
    reader = MarkReader(FLOW)
    reader.read()
    reader.close()
    assert valid(reader) == ["one"]
    target.messages = [[message(1, error=END)]]
    reader.read()
    assert valid(reader) == []
