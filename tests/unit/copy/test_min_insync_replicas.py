"""Appends that are refused for too few replicas: waited for where more may come, and else ended with what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from mirrorless.copy.partition.min_insync_replicas import too_few_replicas
from mirrorless.protocol.cluster_client import ClusterClient

if TYPE_CHECKING:
    from mirrorless.kafka_python.event_loop import EventLoop

PLACE = ("A.t", 0)


def cluster(loop: EventLoop, *, in_sync: list[int], replicas: list[int]) -> ClusterClient:
    found = ClusterClient(loop, cluster="backup", config={"bootstrap_servers": ["127.0.0.1:1"]})
    one = SimpleNamespace(isr_nodes=in_sync, replica_nodes=replicas)
    found._manager.cluster._partitions = {"A.t": {0: one}}
    return found


@pytest.mark.parametrize(
    ("code", "name"), [(19, "NOT_ENOUGH_REPLICAS (19)"), (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND (20)")]
)
def test_all_replicas_in_sync_and_too_few(loop: EventLoop, code: int, name: str) -> None:
    error = too_few_replicas(cluster(loop, in_sync=[1], replicas=[1]), PLACE, code)

    assert error.lasting
    assert error.text == (
        f"append: {name}: backup refuses appends to A.t-0: replication factor 1 is below its min.insync.replicas; "
        "add replicas to A.t (kafka-reassign-partitions), or set its min.insync.replicas to 1"
    )


def test_replicas_that_fell_out_of_sync(loop: EventLoop) -> None:
    error = too_few_replicas(cluster(loop, in_sync=[1], replicas=[1, 2]), PLACE, 19)

    assert not error.lasting
    assert error.text == (
        "append: NOT_ENOUGH_REPLICAS (19): backup refuses appends to A.t-0: 1 of its 2 replicas are in sync, fewer "
        "than its min.insync.replicas; it is retried"
    )
    assert not too_few_replicas(cluster(loop, in_sync=[], replicas=[]), ("A.t", 7), 19).lasting
