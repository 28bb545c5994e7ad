"""How often it is looked for new partitions while a cluster answers late, or not at all."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from mirrorless.copy.partition.lease_rows import LeaseRow
from mirrorless.copy.slot import added_partitions
from mirrorless.copy.slot.added_partitions import AddedPartitions
from mirrorless.errors import ClusterUnavailable
from mirrorless.settings import Cluster, Flow

if TYPE_CHECKING:
    from collections.abc import Callable

FLOW = Flow(source=Cluster(alias="A", bootstrap_servers="a:1"), target=Cluster(alias="B", bootstrap_servers="b:1"))
ROW = LeaseRow(topic="t", partition=0, remote_topic="A.t", source_end=9, planned="{}")


def no_answer() -> list[LeaseRow]:
    time.sleep(0.2)
    raise ClusterUnavailable("no answer", cluster="A")


def late() -> list[LeaseRow]:
    time.sleep(0.2)
    return []


@pytest.mark.parametrize("slow", [no_answer, late])
def test_a_link_that_was_cut_does_not_delay_the_next_looks(
    monkeypatch: pytest.MonkeyPatch, slow: Callable[[], list[LeaseRow]]
) -> None:
    """Looks take a fiftieth of the time at most: by the slow one alone the next would be ten seconds later."""
    looks: list[Callable[[], list[LeaseRow]]] = [list, slow, list, lambda: [ROW]]
    found = threading.Event()

    class Look:
        flow = FLOW

        def __init__(self, _flow: Flow) -> None:
            pass

        def rows(self, _lease: Any) -> list[LeaseRow]:  # noqa: ANN401
            rows = looks.pop(0)() if looks else []
            if rows:
                found.set()
            return rows

        def close(self) -> None:
            pass

    monkeypatch.setattr(added_partitions, "_Look", Look)
    monkeypatch.setattr(added_partitions, "_EVERY_S", 0.01)
    monkeypatch.setattr(added_partitions, "_AGAIN_S", 0.01)
    added = AddedPartitions()
    added.begin(FLOW, [ROW], slot=0)
    try:
        assert found.wait(5)
    finally:
        added.close()
