"""Checks what a connection to a far cluster can carry: the brokers' socket buffers and the round trip to them.

A sender has at most a buffer of unacknowledged bytes under way, so a connection carries a buffer for each round trip.
Kafka's default of 100 KiB fixes the buffers, and turns the kernel's own tuning off; -1 leaves them to the kernel.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

from mirrorless.clusters import round_trips
from mirrorless.clusters.side_by_side import each
from mirrorless.doctor.findings import Finding, Status
from mirrorless.doctor.probes import NotSaid
from mirrorless.protocol.requests import describe_broker, described_configs
from mirrorless.rights import Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mirrorless.doctor.probes import Probes

BUFFERS: Final = "socket buffers"
_CONFIG: Final = {Side.SOURCE: "socket.send.buffer.bytes", Side.TARGET: "socket.receive.buffer.bytes"}
"""What limits reads from the source, and appends to the target."""
_ENOUGH_BYTES_PER_S: Final = 10e6
_KERNEL: Final = -1


def socket_buffers(
    probes: Probes, side: Side, alias: str, *, brokers: Iterable[int], round_trip_s: float | None
) -> Finding:
    """Compare the smallest buffer of a far cluster's brokers with the round trip; a warning below 10 MB/s.

    A cluster is far from 20 ms on. `round_trip_s` is None if it is not known.
    """
    name = _CONFIG[side]
    if round_trip_s is None:
        text = "the round trip could not be measured"
        return Finding(check=BUFFERS, status=Status.NOT_CHECKED, text=text, cluster=alias)
    told = f"round trip {round_trip_s * 1000:.1f} ms"
    if round_trip_s < round_trips.FAR_S:
        text = f"{told}: the cluster is near, and buffers do not matter"
        return Finding(check=BUFFERS, status=Status.OK, text=text, cluster=alias)
    told = f"{told}, {name}"
    try:
        sizes = each([lambda node=node: _size(probes, node, name) for node in brokers])  # type: ignore[misc]
    except NotSaid as error:
        return Finding(check=BUFFERS, status=Status.NOT_CHECKED, text=str(error), cluster=alias)
    known = [size for size in sizes if size is not None]
    if not known:
        text = f"{told} is not visible; grant DESCRIBE_CONFIGS on the cluster"
        return Finding(check=BUFFERS, status=Status.NOT_CHECKED, text=text, cluster=alias)
    fixed = [size for size in known if size != _KERNEL]
    if not fixed:
        text = f"{told}=-1, tuned by the kernel"
        return Finding(check=BUFFERS, status=Status.OK, text=text, cluster=alias)
    size = min(fixed)
    bytes_per_s = size / round_trip_s
    if bytes_per_s >= _ENOUGH_BYTES_PER_S:
        text = f"{told}={size}: more than {_ENOUGH_BYTES_PER_S / 1e6:.0f} MB/s for each connection"
        return Finding(check=BUFFERS, status=Status.OK, text=text, cluster=alias)
    text = f"{told}={size}: a connection carries at most {bytes_per_s / 1e6:.1f} MB/s"
    return Finding(check=BUFFERS, status=Status.WARNING, text=text, cluster=alias, fix=_fix(side, alias, round_trip_s))


def shortest_round_trip_s(probes: Probes, *, clock: Callable[[], float] = time.monotonic) -> float | None:
    """Return the shortest time of a few requests without work for the broker, in seconds; None without an answer."""
    try:
        return round_trips.shortest_round_trip_s(probes.ask, clock=clock)
    except NotSaid:
        return None


def _size(probes: Probes, node: int, name: str) -> int | None:
    """One broker's buffer in bytes; None if it is not visible."""
    value = described_configs(probes.ask(describe_broker(node, [name]), node=node)).get(name)
    return None if value is None else int(value)


def _fix(side: Side, alias: str, round_trip_s: float) -> str:
    needed = 1 << math.ceil(math.log2(_ENOUGH_BYTES_PER_S * round_trip_s))
    fix = f"set {_CONFIG[side]} on {alias}'s brokers to -1, which is the kernel's own tuning, or to at least {needed} "
    fix += "(on MSK by a custom configuration)"
    return fix if side is Side.SOURCE else f"{fix}, or run the engine beside {alias}"
