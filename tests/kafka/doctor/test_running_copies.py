"""The doctor reads which runs copy a flow at present, and reports functions with different numbers."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from mirrorless.doctor.checks import examine
from mirrorless.doctor.findings import Status
from mirrorless.progress.run_marks import MARKS_PARTITION, key_of
from mirrorless.rights import Function
from mirrorless.settings import load

if TYPE_CHECKING:
    from mirrorless.doctor.findings import Finding
    from mirrorless.settings import Flow
    from tests.support.world import World


def mark(world: World, flow: Flow, number: int, of: int, *, seconds_ago: float = 0) -> None:
    """Write the mark of a function that has a share of the flow."""
    renewed_ms = int((time.time() - seconds_ago) * 1000)
    value = {"renewedMs": renewed_ms, "validMs": 60_000, "engine": "functions", "share": [number, of]}
    client = Producer({"bootstrap.servers": world.target.bootstrap_servers})
    key = key_of(flow, f"{number} of {of}")
    client.produce(world.progress_topic, key=key, value=json.dumps(value).encode(), partition=MARKS_PARTITION)
    assert client.flush(30) == 0


def found(flow: Flow) -> Finding:
    (one,) = [one for one in examine(flow, [Function.COPY]) if one.check == "running copies"]
    return one


def test_marks_of_functions_are_compared(world: World) -> None:
    world.topic()
    flow = load(world.write_settings()).flow(world.flow)
    assert found(flow).text == "nothing has copied yet"
    world.discover()
    assert found(flow).text == "nothing copies at present"
    mark(world, flow, 0, 2)
    mark(world, flow, 0, 4, seconds_ago=3_600)  # that of a run that was killed
    assert found(flow).text == "no function copies share 1 of 2"
    mark(world, flow, 1, 2)
    assert (found(flow).status, found(flow).text) == (Status.OK, "copied by functions (2)")
    mark(world, flow, 0, 3)
    assert (found(flow).status, found(flow).text) == (
        Status.WARNING,
        "functions copy with different CopyFunctions: 2 and 3",
    )
