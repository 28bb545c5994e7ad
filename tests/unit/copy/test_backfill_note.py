"""When `plan` warns of a backfill that a far target slows down, and what it says."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from mirrorless.copy.planning import backfill_note as module
from mirrorless.copy.planning.backfill_note import Distance, backfill_note
from mirrorless.progress.records import Known, Progress
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from mirrorless.clusters.admin import Admin

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
FAR = Distance(round_trip_s=0.150)
HOUR_S = 3600


class Source:
    """A source whose partitions begin at 100 and end at 200; the record at 160 is the first of the last 12 hours."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, young: int = 160) -> None:
        self.client = self
        self._young = young
        self.asked_ms = 0
        monkeypatch.setattr(module, "log_starts", lambda _, places: (dict.fromkeys(places, 100), {}))
        monkeypatch.setattr(module, "high_watermarks", lambda _, places: (dict.fromkeys(places, 200), {}))

    def list_offsets(self, wanted: dict[Any, Any]) -> dict[Any, Any]:
        self.asked_ms = {spec._value for spec in wanted.values()}.pop() if wanted else 0
        return dict.fromkeys(wanted, SimpleNamespace(offset=self._young))

    def result(self, answer: Any) -> Any:  # noqa: ANN401
        return answer


def note(source: Source, distance: Distance = FAR, flow: Flow = FLOW, **copied_to: int) -> str | None:
    known = {(topic, 0): Known() for topic in copied_to}
    for topic, offset in copied_to.items():
        known[topic, 0].take(Progress(last_offset=offset - 1))
    counts = {"orders": 1, "payments": 1}
    return backfill_note(flow, distance, source=cast("Admin", source), counts=counts, known=known)


def test_old_records_that_are_left_are_counted_from_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(monkeypatch)
    assert note(source, orders=150) == (
        "70 offsets of 2 partitions have records older than 12 h, half of producer.id.expiration.ms of B: while these "
        "are copied, one batch of each partition is in flight, so that a round trip of 150 ms allows 6.7 batches/s for "
        "each partition; run the engine beside B, or raise producer.id.expiration.ms of its brokers, for this "
        "backfill, to more than twice the age of the oldest record"
    )
    assert source.asked_ms == pytest.approx((time.time() - 12 * HOUR_S) * 1000, abs=60_000)


def test_a_partition_without_younger_records_is_old_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(note(Source(monkeypatch, young=-1), orders=150)).startswith("150 offsets of 2 partitions")


def test_there_is_nothing_to_say_of_a_near_target(monkeypatch: pytest.MonkeyPatch) -> None:
    assert note(Source(monkeypatch), Distance(round_trip_s=0.002)) is None


def test_there_is_nothing_to_say_once_the_old_records_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    assert note(Source(monkeypatch), orders=160, payments=180) is None


def test_a_copy_that_starts_at_the_latest_offset_has_no_backfill(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = FLOW.model_copy(update={"auto_offset_reset": "latest"})
    assert note(Source(monkeypatch), flow=latest) is None


def test_the_expiry_of_the_target_decides_which_records_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(monkeypatch)
    week = Distance(round_trip_s=0.1, expiry_ms=14 * 24 * HOUR_S * 1000)
    assert "older than 168 h" in str(note(source, week))
    assert source.asked_ms == pytest.approx((time.time() - 168 * HOUR_S) * 1000, abs=60_000)
