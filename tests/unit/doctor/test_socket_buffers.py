"""What the doctor says of a connection to a far cluster, by round trip and the brokers' socket buffers."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import pytest
from kafka.protocol.admin import DescribeConfigsResponse

from mirrorless.doctor.findings import Finding, Status
from mirrorless.doctor.probes import NotSaid
from mirrorless.doctor.socket_buffers import shortest_round_trip_s, socket_buffers
from mirrorless.rights import Side

if TYPE_CHECKING:
    from mirrorless.doctor.probes import Probes

DEFAULT = 102_400


class Answers:
    """Probes of brokers with these buffers, in bytes by id; None is one that does not show it."""

    def __init__(self, sizes: dict[int, int | None]) -> None:
        self._sizes = sizes

    def ask(self, request: Any, *, node: int | None = None) -> Any:  # noqa: ANN401 -- the library's messages
        if node is None:
            return None
        (wanted,) = request.resources
        assert wanted.resource_name == str(node)
        result = DescribeConfigsResponse.DescribeConfigsResult
        config = result.DescribeConfigsResourceResult
        value = self._sizes[node]
        shown = [] if value is None else [config(name=wanted.configuration_keys[0], value=str(value))]
        return DescribeConfigsResponse(throttle_time_ms=0, results=[result(error_code=0, configs=shown)])


def finding(
    sizes: dict[int, int | None], *, round_trips_s: tuple[float, ...] = (0.1,), side: Side = Side.SOURCE
) -> Finding:
    takes = itertools.cycle(round_trips_s)
    times = itertools.accumulate((one for took in takes for one in (took, 1.0)), initial=0.0)
    probes = cast("Probes", Answers(sizes))
    round_trip_s = shortest_round_trip_s(probes, clock=lambda: next(times))
    return socket_buffers(probes, side, "B", brokers=sizes, round_trip_s=round_trip_s)


def test_a_far_source_whose_buffers_are_fixed_sends_little_over_a_connection() -> None:
    found = finding({1: DEFAULT, 2: 1 << 20}, round_trips_s=(0.2, 0.1, 0.15))
    assert found == Finding(
        check="socket buffers",
        status=Status.WARNING,
        text="round trip 100.0 ms, socket.send.buffer.bytes=102400: a connection carries at most 1.0 MB/s",
        cluster="B",
        fix="set socket.send.buffer.bytes on B's brokers to -1, which is the kernel's own tuning, or to at least "
        "1048576 (on MSK by a custom configuration)",
    )


def test_a_far_target_takes_little_and_the_engine_may_run_beside_it() -> None:
    found = finding({1: DEFAULT}, side=Side.TARGET)
    assert "socket.receive.buffer.bytes=102400: a connection carries at most 1.0 MB/s" in found.text
    assert str(found.fix).endswith("(on MSK by a custom configuration), or run the engine beside B")


@pytest.mark.parametrize(
    ("sizes", "round_trip_s", "text"),
    [
        ({1: DEFAULT}, 0.012, "round trip 12.0 ms: the cluster is near, and buffers do not matter"),
        ({1: 2 << 20}, 0.1, "round trip 100.0 ms, socket.send.buffer.bytes=2097152: more than 10 MB/s"),
        ({1: -1, 2: -1}, 0.1, "round trip 100.0 ms, socket.send.buffer.bytes=-1, tuned by the kernel"),
    ],
)
def test_near_brokers_and_larger_buffers_are_fine(sizes: dict[int, int | None], round_trip_s: float, text: str) -> None:
    found = finding(sizes, round_trips_s=(round_trip_s,))
    assert (found.status, found.fix) == (Status.OK, None)
    assert found.text.startswith(text)


def test_buffers_of_a_far_cluster_that_are_not_visible_are_not_checked() -> None:
    found = finding({1: None})
    assert found.status is Status.NOT_CHECKED
    assert found.text.endswith("socket.send.buffer.bytes is not visible; grant DESCRIBE_CONFIGS on the cluster")


def test_buffers_of_a_near_cluster_need_not_be_visible() -> None:
    found = finding({1: None}, round_trips_s=(0.001,))
    assert found.status is Status.OK
    assert found.text == "round trip 1.0 ms: the cluster is near, and buffers do not matter"


def test_a_broker_that_does_not_answer_is_not_checked() -> None:
    class Silent:
        def ask(self, *_: object, **__: object) -> None:
            raise NotSaid("connection lost")

    silent = cast("Probes", Silent())
    assert shortest_round_trip_s(silent) is None
    found = socket_buffers(silent, Side.TARGET, "B", brokers=[1], round_trip_s=0.1)
    assert (found.status, found.text) == (Status.NOT_CHECKED, "connection lost")
    found = socket_buffers(silent, Side.TARGET, "B", brokers=[1], round_trip_s=None)
    assert (found.status, found.text) == (Status.NOT_CHECKED, "the round trip could not be measured")
